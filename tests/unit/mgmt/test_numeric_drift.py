"""Drift of numeric fields: stationary series are not reported; shifts of mean, spread and skew are, within the hour."""

import math
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

import pytest

from dataplane.ledger.number_sketch import NumberSketch
from mgmt.alerts.drift import number_words
from mgmt.patterns.blocks import DAY_H, IN_HOUR
from mgmt.patterns.numbers import (
    LEAST_HOURS,
    LEAST_NOW,
    SIGNIFICANT,
    NumberWatch,
    follow_numbers,
    ranges_of,
    stability_index,
)
from tests.support.numeric_drift import details, drifting, number_sketch

DAY: Final = DAY_H * IN_HOUR
Draw = Callable[[Random, int], float]  # a value of a block


class Replay(NamedTuple):
    """Course of one field: its reports, as blocks in which they began and ended, and the windows that were judged."""

    began: list[int]
    ended: list[int]
    windows: int
    last: NumberWatch


def replay(
    draw: Draw,
    *,
    days: int,
    per_block: int = 70,
    seed: int = 1,
    quiet: range = range(0),
) -> Replay:
    """Watch a field for some days, as the Observer does: hour by hour it stores the sketch of the whole hour."""
    chance, hours = Random(seed), dict[int, bytes]()
    watch, began, ended, windows = NumberWatch(), list[int](), list[int](), 0
    for first in range(0, days * DAY, IN_HOUR):
        whole = NumberSketch()
        for block in range(first, first + IN_HOUR):
            values = number_sketch(*[draw(chance, block) for _ in range(per_block)])
            whole.merge(values)
            told = watch.told
            watch, judged = follow_numbers(watch, block, values, hours, is_quiet=block in quiet)
            windows += judged
            if watch.told and not told:
                began.append(block)
            if told and not watch.told:
                ended.append(block)
        hours[first // IN_HOUR] = whole.encode()
    return Replay(began, ended, windows, watch)


def daily(block: int) -> float:
    return math.sin(2 * math.pi * block / DAY)


def bimodal(chance: Random, block: int) -> float:
    return chance.gauss(0, 1) if chance.random() < 0.3 else chance.gauss(8, 1)


def wobbling(chance: Random, block: int) -> float:
    """Return a value whose mean differs from hour to hour by half of its spread."""
    mean = vars(chance).setdefault(f"hour {block // IN_HOUR}", chance.gauss(0, 0.5))
    return chance.gauss(mean, 1)


STATIONARY: Final[dict[str, Draw]] = {
    "normal": lambda chance, _: chance.gauss(0, 1),
    "log-normal": lambda chance, _: chance.lognormvariate(3, 1),
    "bimodal": bimodal,
    "scores": lambda chance, _: chance.betavariate(8, 2),
    "a few integers": lambda chance, _: chance.randrange(5),
    "a constant": lambda _chance, _block: 7,
    "mostly zero": lambda chance, _: 0 if chance.random() < 0.9 else chance.uniform(1, 500),
    "daily cycle of the mean": lambda chance, block: chance.gauss(2 * daily(block), 1),
    "daily cycle of the spread": lambda chance, block: chance.gauss(0, 2 + daily(block)),
    "daily cycle of the mixture": lambda chance, block: chance.gauss(8 * (chance.random() < 0.5 + daily(block) / 3), 1),
    "mean of each hour": wobbling,
    "increasing id": lambda chance, block: 10_000 + block * 20 + chance.randrange(20),
    "slowly increasing id": lambda chance, block: 1_000_000 + block * 3 + chance.randrange(3),
}
SERIES_DAYS: Final = 8


@pytest.mark.parametrize("name", STATIONARY)
def test_stationary_series_are_not_reported(name: str):
    found = replay(STATIONARY[name], days=4)
    assert found.began == []
    assert found.windows > 4 * DAY_H * 3


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_stationary_series_are_reported_less_than_once_in_a_year_of_a_field():
    hours = reports = 0
    for draw in STATIONARY.values():
        for seed in range(12):
            found = replay(draw, days=SERIES_DAYS, seed=seed)
            hours += (SERIES_DAYS - 2) * DAY_H
            reports += len(found.began)
    assert reports <= hours / (365 * DAY_H), f"{reports} reports in {hours} hours"


def test_false_alarm_test_detects_a_limit_that_is_too_narrow(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mgmt.patterns.numbers.SIGNIFICANT", 0.0)
    monkeypatch.setattr("mgmt.patterns.numbers.REACH", 0.4)
    assert replay(STATIONARY["normal"], days=4).began


SHIFT_AT: Final = 3 * DAY + 77


@pytest.mark.parametrize(
    ("before", "after", "most_minutes"),
    [
        pytest.param((0, 1), lambda chance: chance.gauss(0.8, 1), 45, id="mean by 0.8 sigma"),
        pytest.param((0, 1), lambda chance: chance.gauss(2, 1), 45, id="mean by 2 sigma"),
        pytest.param((0, 1), lambda chance: chance.gauss(0, 2), 45, id="twice the spread"),
        pytest.param((0, 1), lambda chance: chance.gauss(0, 0.5), 45, id="half the spread"),
        pytest.param((0, 1), lambda chance: chance.expovariate(1) - 1, 45, id="skew; mean and spread stay"),
        pytest.param((0, 1), lambda _: 0.0, 45, id="stuck at the median"),
        pytest.param((0, 1), lambda chance: 0 if chance.random() < 0.4 else chance.gauss(0, 1), 45, id="a default"),
    ],
)
def test_shift_is_reported_within_45_minutes_and_is_usual_after_a_day(
    before: tuple[float, float], after: Callable[[Random], float], most_minutes: int
):
    def draw(chance: Random, block: int) -> float:
        return after(chance) if block >= SHIFT_AT else chance.gauss(*before)

    found = replay(draw, days=5)
    assert len(found.began) == len(found.ended) == 1
    assert 5 * (found.began[0] + 1 - SHIFT_AT) <= most_minutes
    assert DAY - IN_HOUR <= found.ended[0] - SHIFT_AT <= DAY + 2 * IN_HOUR


def test_constant_that_becomes_another_is_reported():
    found = replay(lambda _chance, block: 9 if block >= SHIFT_AT else 0, days=4)
    assert 5 * (found.began[0] + 1 - SHIFT_AT) <= 45


def test_few_values_are_reported_later_and_very_few_not_at_all():
    def draw(chance: Random, block: int) -> float:
        return chance.gauss(2 if block >= SHIFT_AT else 0, 1)

    slow = replay(draw, days=4, per_block=40)
    assert 5 * (slow.began[0] + 1 - SHIFT_AT) <= 75
    assert replay(draw, days=1, per_block=LEAST_NOW // IN_HOUR - 1).windows == 0


def test_shift_that_ends_is_resolved_within_the_hour():
    def draw(chance: Random, block: int) -> float:
        return chance.gauss(2 if SHIFT_AT <= block < SHIFT_AT + 24 else 0, 1)

    found = replay(draw, days=4)
    assert (len(found.began), len(found.ended)) == (1, 1)
    assert 0 < found.ended[0] - SHIFT_AT - 24 <= IN_HOUR


def test_nothing_starts_and_nothing_ends_while_the_pipe_or_its_cell_changes():
    def draw(chance: Random, block: int) -> float:
        return chance.gauss(2 if SHIFT_AT <= block < SHIFT_AT + 60 else 0, 1)

    assert replay(draw, days=4, quiet=range(SHIFT_AT - 2, SHIFT_AT + 60)).began == []
    lasting = replay(draw, days=4, quiet=range(SHIFT_AT + 30, SHIFT_AT + 90))
    assert lasting.began[0] < SHIFT_AT + 30
    assert lasting.ended[0] >= SHIFT_AT + 90


def test_field_is_judged_only_once_its_own_windows_are_known():
    def draw(chance: Random, block: int) -> float:
        return chance.gauss(2 if block >= 2 * DAY + 20 else 0, 1)

    assert replay(draw, days=3).began == []
    assert LEAST_HOURS > 2


def test_index_is_the_sum_over_tenths_of_the_usual_values():
    usual, now = number_sketch(*range(1_000)), number_sketch(*range(500), *range(500))
    ranges = ranges_of(usual, now)
    assert [one.usual for one in ranges] == pytest.approx([0, *[one.usual for one in ranges[1:-1]], 0])
    assert sum(one.usual for one in ranges) == pytest.approx(1)
    assert sum(one.now for one in ranges) == pytest.approx(1)
    expected = 0.5 * math.log(2) + 0.5 * math.log(1_000)  # halves: 1 and 0 instead of 0.5; nearly nothing is left
    assert stability_index(ranges, 1_000, 1_000) == pytest.approx(expected, rel=0.35)
    assert stability_index(ranges_of(usual, usual), 1_000, 1_000) == 0


def test_values_beyond_all_usual_ones_are_in_ranges_of_their_own():
    ranges = ranges_of(number_sketch(*[5] * 400), number_sketch(*[1] * 100, *[9] * 100))
    assert [(one.usual, one.now) for one in ranges] == [(0, 0.5), (1, 0), (0, 0.5)]
    assert (ranges[0].low, ranges[-1].high) == (None, None)
    assert stability_index(ranges, 400, 200) > 10 * SIGNIFICANT


def test_words_name_the_medians_and_the_range_that_grew_most():
    (one,) = details()["fields"]
    assert one["words"] == (
        "score of source shop: median 0.199, usually 0.6 at this hour of the day; 48 % of the values are below "
        "0.195, usually 0 %"
    )
    assert one["quantiles"]["p50"] == pytest.approx(0.2, rel=0.05)
    assert one["usual_quantiles"]["p50"] == pytest.approx(0.6, rel=0.05)
    assert sum(part["percent"] for part in one["ranges"]) == pytest.approx(100, abs=1)
    assert sum(part["usual_percent"] for part in one["ranges"]) == pytest.approx(100, abs=1)


def test_alert_shows_the_five_fields_that_changed_most_and_counts_the_others():
    found = details(*[drifting(path=f"f{number}") for number in range(7)])
    assert ([one["field"] for one in found["fields"]], found["more"]) == (["f0", "f1", "f2", "f3", "f4"], 2)


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.3101, "0.31"), (-0.0, "0"), (1234.5, "1230"), (5e8, "500000000"), (-2.5, "-2.5"), (1e-9, "1e-09")],
)
def test_numbers_have_three_digits(value: float, words: str):
    assert number_words(value) == words
