"""What is usual and what is not: nothing is told of steady, daily and noisy traffic, a stop always is, and soon."""

import math
import random
from collections.abc import Callable, Iterable
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgmt.patterns import usual
from mgmt.patterns.blocks import DAY_H, IN_HOUR, WEEK_H, Block, Hour
from mgmt.patterns.judge import PATTERNS, TOLD_AFTER, Reading, Watch, follow, read
from mgmt.patterns.usual import LEAST_BLOCKS, VOLUME, blocks_to_compare, usual_of
from mgmt.queries.blocks import with_block

DAY: Final = DAY_H * IN_HOUR
WEEK: Final = WEEK_H * IN_HOUR
FIRST: Final = 100 * WEEK  # the number of a block that begins an hour
BY_NAME: Final = {pattern.name: pattern for pattern in PATTERNS}
Told = list[tuple[int, str]]


class Pipe:
    """One pipe, judged block by block as the Observer does."""

    def __init__(self) -> None:
        self.number = FIRST
        self.known: dict[int, Hour] = {}
        self.watches: dict[str, Watch] = {}
        self.told: Told = []
        self.words: dict[str, str] = {}

    def does(self, blocks: Iterable[Block], silenced: str = "") -> None:
        for block in blocks:
            hour, place = divmod(self.number, IN_HOUR)
            readings = read(block, self.known, hour)
            for pattern in PATTERNS:
                self._follow(pattern.name, readings[pattern.signal.name], silenced)
            self.known[hour] = with_block(self.known.get(hour), place, block)
            self.number += 1

    def _follow(self, name: str, reading: Reading, silenced: str) -> None:
        before = self.watches.pop(name, None)
        watch = follow(before, self.number, shows=reading.shows(BY_NAME[name]), silenced=silenced)
        if watch and watch.told and not (before and before.told):
            self.told.append((self.number - FIRST, name))
            self.words[name] = reading.words
        if watch and not watch.over:
            self.watches[name] = watch


def steady(volume: int, blocks: int, **more: int) -> list[Block]:
    return [Block(volume=volume, **more) for _ in range(blocks)]


def daily(mean: float, swing: float, blocks: int, noise: Callable[[float], int] = round, start: int = 0) -> list[Block]:
    turns = (2 * math.pi * number / DAY for number in range(start, start + blocks))
    return [Block(volume=noise(mean * (1 + swing * math.sin(turn)))) for turn in turns]


def poisson(chance: random.Random) -> Callable[[float], int]:
    """Counts of independent events with this mean; the normal's where that is as good."""

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
def test_a_days_cycle_is_never_unusual_after_two_days(mean: float, swing: float, start: int):
    pipe = Pipe()
    pipe.does(daily(mean, swing, 3 * DAY, start=start))
    assert [told for told in pipe.told if told[0] >= 2 * DAY] == []


@given(st.integers(0, 2**32), st.floats(20, 2_000))
@settings(max_examples=8, deadline=None)
def test_nor_is_one_with_the_noise_of_counts(seed: int, mean: float):
    pipe = Pipe()
    pipe.does(daily(mean, 0.8, 4 * DAY, noise=poisson(random.Random(seed))))
    assert [told for told in pipe.told if told[0] >= 2 * DAY] == []


@given(st.integers(8, 1_000_000), st.integers(3 * IN_HOUR, DAY))
@settings(max_examples=30, deadline=None)
def test_a_stop_of_steady_traffic_is_told_with_the_second_block_without_any(volume: int, after: int):
    pipe = Pipe()
    pipe.does(steady(volume, after + IN_HOUR))
    pipe.does(steady(0, TOLD_AFTER))
    assert pipe.told == [(after + IN_HOUR + TOLD_AFTER - 1, "quiet")]


@given(st.integers(0, 2**32), st.integers(2 * DAY, 3 * DAY), st.floats(150, 5_000))
@settings(max_examples=12, deadline=None)
def test_a_stop_is_told_at_every_hour_of_a_day_with_noise(seed: int, at: int, mean: float):
    pipe = Pipe()
    pipe.does(daily(mean, 0.8, at, noise=poisson(random.Random(seed))))
    before = len(pipe.told)
    pipe.does(steady(0, TOLD_AFTER))
    assert pipe.told[before:] == [(at + 1, "quiet")]


@pytest.mark.parametrize("mean", [0.2, 1, 3, 5, 6, 7, 8, 12, 25, 60, 200])
def test_noise_is_told_less_than_once_in_ten_thousand_hours(mean: float):
    """Exact for each of many short pasts: the chance that a block is outside, twice in a row, twelve times an hour."""
    chance = random.Random(int(mean * 10))
    draw = poisson(chance)
    rates = [_false_alarms_per_hour(mean, draw) for _ in range(400)]
    assert sum(rates) / len(rates) < 1e-4


def test_the_count_of_false_alarms_finds_a_border_that_is_too_near(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(usual, "REACH", 2.0)
    assert _false_alarms_per_hour(60, poisson(random.Random(1))) > 1e-4


def _false_alarms_per_hour(mean: float, draw: Callable[[float], int]) -> float:
    past = [Block(volume=draw(mean)) for _ in range(2 * IN_HOUR)]  # the shortest that is compared with: two days
    found = usual_of(VOLUME, past, "", Block())
    assert found
    quiet, busy = 0.0, 0.0
    for volume in range(int(mean + 60 * math.sqrt(mean) + 60)):
        likely = math.exp(volume * math.log(mean) - mean - math.lgamma(volume + 1))
        value = math.log1p(volume)
        quiet, busy = quiet + likely * (value < found.below), busy + likely * (value > found.above)
    return IN_HOUR * (quiet**TOLD_AFTER + busy**TOLD_AFTER)


GOOD: Final = {"delivered": 1_000, "arrived": 1_000, "lag_p95_us": 40_000}


@pytest.mark.parametrize(
    ("usually", "then", "told"),
    [
        pytest.param(Block(1_000), Block(15), ["quiet"], id="little comes where much is usual"),
        pytest.param(Block(1_000), Block(5_000), ["busy"], id="five times as much"),
        pytest.param(Block(1_000), Block(1_300), [], id="a third more"),
        pytest.param(Block(3), Block(0), [], id="none where three are usual: chance"),
        pytest.param(Block(0), Block(400), [], id="a pipe that is new"),
        pytest.param(Block(1_000, **GOOD), Block(1_000, 500, 500, 1_000, 40_000), ["failing"], id="half of it fails"),
        pytest.param(Block(1_000, **GOOD), Block(1_000, 999, 1, 1_000, 40_000), [], id="one fails"),
        pytest.param(Block(9, 9, 0, 9, 1), Block(9, 0, 9, 9, 1), [], id="nine fail: too few to say"),
        pytest.param(Block(1_000, **GOOD), Block(1_000, 1_000, 0, 1_000, 9_000_000), ["slow"], id="nine seconds late"),
        pytest.param(Block(1_000, **GOOD), Block(1_000, 1_000, 0, 1_000, 400_000), [], id="ten times a short lag"),
        pytest.param(
            Block(99, 99, 0, 99, 86_400_000_000),
            Block(99, 99, 0, 99, 80_000_000_000),
            [],
            id="a source that is a day late",
        ),
        pytest.param(Block(99, 99, 0, 99, -5_000), Block(99, 99, 0, 99, -9_000), [], id="a source's clock ahead"),
        pytest.param(Block(1_000, **GOOD), Block(1_000), [], id="nothing arrives any more: volume is as it was"),
    ],
)
def test_what_is_told(usually: Block, then: Block, told: list[str]):
    pipe = Pipe()
    pipe.does([usually] * 3 * IN_HOUR)
    pipe.does([then] * TOLD_AFTER)
    assert [name for _, name in pipe.told] == told


def test_a_finding_says_what_is_seen_and_what_is_usual_from_which_hours():
    pipe = Pipe()
    pipe.does([Block(volume=volume) for _ in range(2 * DAY_H) for volume in [900, 1_000, 1_100, 1_200] * 3])
    pipe.does(steady(15, TOLD_AFTER))
    assert pipe.words == {"quiet": "3 events/min where 180 to 240 are usual at this hour of the day"}


def test_weeks_are_compared_where_there_are_two_then_days_then_the_hours_before():
    hours = {hour: [Block(1)] * IN_HOUR for hour in range(2 * WEEK_H)}
    kinds = [blocks_to_compare({hour: hours[hour] for hour in range(known)}, known)[1] for known in (2, 3, 48, 336)]
    assert kinds == ["", "in the hours before", "at this hour of the day", "at this hour of the week"]


def test_a_weekend_is_no_news_when_it_comes_again():
    week = [block for day in range(7) for block in steady(1_000 if day < 5 else 50, DAY)]
    pipe = Pipe()
    pipe.does(week * 3)
    assert [(at // DAY, name) for at, name in pipe.told] == [(5, "quiet")]  # the first Saturday


def test_bursts_are_usual_where_events_come_in_bursts():
    pipe = Pipe()
    pipe.does(([Block(5_000)] * 2 + [Block(0)] * 4) * DAY)
    assert pipe.told == []


def test_one_odd_block_is_not_told_and_one_good_one_ends_nothing():
    pipe = Pipe()
    pipe.does(steady(1_000, DAY))
    pipe.does([Block(0), Block(1_000), Block(0)])
    assert pipe.told == []
    pipe.does([Block(0), Block(1_000)])
    assert pipe.watches["quiet"].told
    pipe.does([Block(1_000)])
    assert pipe.watches == {}


def test_what_is_explained_is_listed_and_told_only_if_it_outlasts_its_cause():
    pipe = Pipe()
    pipe.does(steady(1_000, DAY, **GOOD))
    slow = Block(1_000, 1_000, 0, 1_000, 30_000_000)
    pipe.does([slow] * 4, silenced="while a release was deployed")
    assert (pipe.told, pipe.watches["slow"].silenced) == ([], "while a release was deployed")
    pipe.does([slow] * TOLD_AFTER)
    assert [name for _, name in pipe.told] == ["slow"]


def test_blocks_that_nobody_listened_to_are_neither_compared_nor_judged():
    known = {hour: [None] * IN_HOUR for hour in range(48)}
    assert blocks_to_compare(known, 48) == ([], "")
    few = [Block(1_000)] * (LEAST_BLOCKS - 1)
    assert usual_of(VOLUME, few, "", Block()) is None


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_what_cannot_be_said_changes_nothing(pattern: object):
    watch = Watch(1, outside=1)
    assert follow(watch, 2, shows=None, silenced="") == watch
