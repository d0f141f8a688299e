"""Traffic patterns: steady, periodic and noisy traffic is never reported, a stop always is, and soon."""

import math
import random
from collections.abc import Callable, Iterable
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgmt.deliveries.queries.blocks import with_block
from mgmt.patterns import usual
from mgmt.patterns.blocks import DAY_H, IN_HOUR, WEEK_H, Hour, PatternBlock
from mgmt.patterns.judge import PATTERNS, REPORTED_AFTER, PatternStreak, SignalReading, follow, read
from mgmt.patterns.usual import LEAST_BLOCKS, VOLUME, blocks_to_compare, usual_of

DAY: Final = DAY_H * IN_HOUR
WEEK: Final = WEEK_H * IN_HOUR
FIRST: Final = 100 * WEEK  # number of the first block of an hour
BY_NAME: Final = {pattern.name: pattern for pattern in PATTERNS}
Told = list[tuple[int, str]]


class Pipe:
    """One pipe, evaluated block by block as the Observer does."""

    def __init__(self) -> None:
        self.number = FIRST
        self.known: dict[int, Hour] = {}
        self.watches: dict[str, PatternStreak] = {}
        self.told: Told = []
        self.words: dict[str, str] = {}

    def does(self, blocks: Iterable[PatternBlock], silenced: str = "") -> None:
        for block in blocks:
            hour, place = divmod(self.number, IN_HOUR)
            readings = read(block, self.known, hour)
            for pattern in PATTERNS:
                self._follow(pattern.name, readings[pattern.signal.name], silenced)
            self.known[hour] = with_block(self.known.get(hour), place, block)
            self.number += 1

    def _follow(self, name: str, reading: SignalReading, silenced: str) -> None:
        before = self.watches.pop(name, None)
        watch = follow(before, self.number, shows=reading.shows(BY_NAME[name]), silenced=silenced)
        if watch and watch.told and not (before and before.told):
            self.told.append((self.number - FIRST, name))
            self.words[name] = reading.words
        if watch and not watch.over:
            self.watches[name] = watch


def steady(volume: int, blocks: int, **more: int) -> list[PatternBlock]:
    return [PatternBlock(volume=volume, **more) for _ in range(blocks)]


def daily(
    mean: float, swing: float, blocks: int, noise: Callable[[float], int] = round, start: int = 0
) -> list[PatternBlock]:
    turns = (2 * math.pi * number / DAY for number in range(start, start + blocks))
    return [PatternBlock(volume=noise(mean * (1 + swing * math.sin(turn)))) for turn in turns]


def poisson(chance: random.Random) -> Callable[[float], int]:
    """Return a function that draws Poisson counts, by the normal distribution if that is close enough."""

    def draw(mean: float) -> int:
        if mean > 500:
            return max(0, round(chance.gauss(mean, math.sqrt(mean))))
        left, count = math.exp(-mean), -1
        product = 1.0
        while product > left:
            product *= chance.random()
            count += 1
        return max(0, count)

    return draw


@given(st.integers(0, 1_000_000))
@settings(max_examples=20, deadline=None)
def test_steady_traffic_is_never_unusual(volume: int):
    pipe = Pipe()
    pipe.does(steady(volume, 2 * DAY))
    assert pipe.told == []


@given(st.floats(10, 100_000), st.floats(0, 1), st.integers(0, DAY))
@settings(max_examples=8, deadline=None)
def test_daily_cycle_is_never_unusual_after_two_days(mean: float, swing: float, start: int):
    pipe = Pipe()
    pipe.does(daily(mean, swing, 3 * DAY, start=start))
    assert [told for told in pipe.told if told[0] >= 2 * DAY] == []


@given(st.integers(0, 2**32), st.floats(20, 2_000))
@settings(max_examples=8, deadline=None)
def test_daily_cycle_with_poisson_noise_is_never_unusual_after_two_days(seed: int, mean: float):
    pipe = Pipe()
    pipe.does(daily(mean, 0.8, 4 * DAY, noise=poisson(random.Random(seed))))
    assert [told for told in pipe.told if told[0] >= 2 * DAY] == []


@given(st.integers(8, 1_000_000), st.integers(3 * IN_HOUR, DAY))
@settings(max_examples=30, deadline=None)
def test_stop_of_steady_traffic_is_reported_with_the_second_empty_block(volume: int, after: int):
    pipe = Pipe()
    pipe.does(steady(volume, after + IN_HOUR))
    pipe.does(steady(0, REPORTED_AFTER))
    assert pipe.told == [(after + IN_HOUR + REPORTED_AFTER - 1, "quiet")]


@given(st.integers(0, 2**32), st.integers(2 * DAY, 3 * DAY), st.floats(150, 5_000))
@settings(max_examples=12, deadline=None)
def test_stop_of_noisy_daily_traffic_is_reported_at_every_hour(seed: int, at: int, mean: float):
    pipe = Pipe()
    pipe.does(daily(mean, 0.8, at, noise=poisson(random.Random(seed))))
    before = len(pipe.told)
    pipe.does(steady(0, REPORTED_AFTER))
    assert pipe.told[before:] == [(at + 1, "quiet")]


@pytest.mark.parametrize("mean", [0.2, 1, 3, 5, 6, 7, 8, 12, 25, 60, 200])
def test_noise_is_reported_less_than_once_in_ten_thousand_hours(mean: float):
    """Exact for many short histories: the chance that a block is outside twice in a row, twelve times an hour."""
    chance = random.Random(int(mean * 10))
    draw = poisson(chance)
    rates = [_false_alarms_per_hour(mean, draw) for _ in range(400)]
    assert sum(rates) / len(rates) < 1e-4


def test_false_alarm_rate_detects_a_limit_that_is_too_narrow(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(usual, "REACH", 2.0)
    assert _false_alarms_per_hour(60, poisson(random.Random(1))) > 1e-4


def _false_alarms_per_hour(mean: float, draw: Callable[[float], int]) -> float:
    past = [PatternBlock(volume=draw(mean)) for _ in range(2 * IN_HOUR)]  # the shortest compared history: two days
    found = usual_of(VOLUME, past, "", PatternBlock())
    assert found
    quiet, busy = 0.0, 0.0
    for volume in range(int(mean + 60 * math.sqrt(mean) + 60)):
        likely = math.exp(volume * math.log(mean) - mean - math.lgamma(volume + 1))
        value = math.log1p(volume)
        quiet, busy = quiet + likely * (value < found.below), busy + likely * (value > found.above)
    return IN_HOUR * (quiet**REPORTED_AFTER + busy**REPORTED_AFTER)


GOOD: Final = {"delivered": 1_000, "arrived": 1_000, "lag_p95_us": 40_000}


@pytest.mark.parametrize(
    ("usually", "then", "told"),
    [
        pytest.param(PatternBlock(1_000), PatternBlock(15), ["quiet"], id="little comes where much is usual"),
        pytest.param(PatternBlock(1_000), PatternBlock(5_000), ["busy"], id="five times as much"),
        pytest.param(PatternBlock(1_000), PatternBlock(1_300), [], id="a third more"),
        pytest.param(PatternBlock(3), PatternBlock(0), [], id="none where three are usual: chance"),
        pytest.param(PatternBlock(0), PatternBlock(400), [], id="a pipe that is new"),
        pytest.param(
            PatternBlock(1_000, **GOOD),
            PatternBlock(1_000, 500, 500, 1_000, 40_000),
            ["failing"],
            id="half of it fails",
        ),
        pytest.param(PatternBlock(1_000, **GOOD), PatternBlock(1_000, 999, 1, 1_000, 40_000), [], id="one fails"),
        pytest.param(PatternBlock(9, 9, 0, 9, 1), PatternBlock(9, 0, 9, 9, 1), [], id="nine fail: too few to say"),
        pytest.param(
            PatternBlock(1_000, **GOOD),
            PatternBlock(1_000, 1_000, 0, 1_000, 9_000_000),
            ["slow"],
            id="nine seconds late",
        ),
        pytest.param(
            PatternBlock(1_000, **GOOD), PatternBlock(1_000, 1_000, 0, 1_000, 400_000), [], id="ten times a short lag"
        ),
        pytest.param(
            PatternBlock(99, 99, 0, 99, 86_400_000_000),
            PatternBlock(99, 99, 0, 99, 80_000_000_000),
            [],
            id="a source that is a day late",
        ),
        pytest.param(
            PatternBlock(99, 99, 0, 99, -5_000), PatternBlock(99, 99, 0, 99, -9_000), [], id="a source's clock ahead"
        ),
        pytest.param(
            PatternBlock(1_000, **GOOD), PatternBlock(1_000), [], id="nothing arrives any more: volume is as it was"
        ),
    ],
)
def test_change_is_reported_only_if_it_is_large_and_certain(usually: PatternBlock, then: PatternBlock, told: list[str]):
    pipe = Pipe()
    pipe.does([usually] * 3 * IN_HOUR)
    pipe.does([then] * REPORTED_AFTER)
    assert [name for _, name in pipe.told] == told


def test_finding_states_the_observed_and_the_usual_volume_and_the_hours_compared():
    pipe = Pipe()
    pipe.does([PatternBlock(volume=volume) for _ in range(2 * DAY_H) for volume in [900, 1_000, 1_100, 1_200] * 3])
    pipe.does(steady(15, REPORTED_AFTER))
    assert pipe.words == {"quiet": "3 events/min where 180 to 240 are usual at this hour of the day"}


def test_comparison_uses_weeks_if_there_are_two_else_days_else_the_hours_before():
    hours = {hour: [PatternBlock(1)] * IN_HOUR for hour in range(2 * WEEK_H)}
    kinds = [blocks_to_compare({hour: hours[hour] for hour in range(known)}, known)[1] for known in (2, 3, 48, 336)]
    assert kinds == ["", "in the hours before", "at this hour of the day", "at this hour of the week"]


def test_weekend_is_reported_only_the_first_time():
    week = [block for day in range(7) for block in steady(1_000 if day < 5 else 50, DAY)]
    pipe = Pipe()
    pipe.does(week * 3)
    assert [(at // DAY, name) for at, name in pipe.told] == [(5, "quiet")]  # the first Saturday


def test_bursts_are_usual_for_bursty_traffic():
    pipe = Pipe()
    pipe.does(([PatternBlock(5_000)] * 2 + [PatternBlock(0)] * 4) * DAY)
    assert pipe.told == []


def test_single_unusual_block_is_not_reported_and_single_normal_one_ends_nothing():
    pipe = Pipe()
    pipe.does(steady(1_000, DAY))
    pipe.does([PatternBlock(0), PatternBlock(1_000), PatternBlock(0)])
    assert pipe.told == []
    pipe.does([PatternBlock(0), PatternBlock(1_000)])
    assert pipe.watches["quiet"].told
    pipe.does([PatternBlock(1_000)])
    assert pipe.watches == {}


def test_change_with_a_known_cause_is_silenced_and_reported_only_if_it_lasts_longer():
    pipe = Pipe()
    pipe.does(steady(1_000, DAY, **GOOD))
    slow = PatternBlock(1_000, 1_000, 0, 1_000, 30_000_000)
    pipe.does([slow] * 4, silenced="while a release was deployed")
    assert (pipe.told, pipe.watches["slow"].silenced) == ([], "while a release was deployed")
    pipe.does([slow] * REPORTED_AFTER)
    assert [name for _, name in pipe.told] == ["slow"]


def test_blocks_without_observation_are_neither_compared_nor_evaluated():
    known = {hour: [None] * IN_HOUR for hour in range(48)}
    assert blocks_to_compare(known, 48) == ([], "")
    few = [PatternBlock(1_000)] * (LEAST_BLOCKS - 1)
    assert usual_of(VOLUME, few, "", PatternBlock()) is None


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_unknown_reading_does_not_change_a_streak(pattern: object):
    watch = PatternStreak(1, outside=1)
    assert follow(watch, 2, shows=None, silenced="") == watch
