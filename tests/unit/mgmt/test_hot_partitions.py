"""When a partition of a pipe is hot and harmful, for how long before it alerts, and when that ends."""

import math
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dataplane.ingest.stamp import key_bytes, partition_of
from mgmt.alerts.hot_partitions import (
    HotPartitionPolicy,
    HotState,
    PartitionFigures,
    figures_between,
    lag_elsewhere,
    next_state,
)
from mgmt.deliveries.health import Condition

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CHECK = timedelta(seconds=10)
MINUTE = timedelta(minutes=1)
POLICY = HotPartitionPolicy()
LANE = 1_000.0
HOT = PartitionFigures(partition=1, share=0.7, fair=0.25, per_s=700.0, lag=20_000)
ALERTED = HotState(1, NOW - 20 * MINUTE, Condition(NOW - 19 * MINUTE))


def step(was: HotState, figures: PartitionFigures | None, now: datetime = NOW, *, is_quiet: bool = False) -> HotState:
    return next_state(was, figures, POLICY, now, lane_per_s=LANE, is_quiet=is_quiet)


def partitions_of(keys: Sequence[str], partitions: int) -> list[int]:
    """Return the partition that ingest gives to each key."""
    return [partition_of(key_bytes("p", key) or b"", partitions) for key in keys]


def watched(readings: Sequence[Sequence[int]], lags: Sequence[Sequence[int]], fair: float) -> list[HotState]:
    """Return the state after each check; a reading has the pipe's events so far, a lag the records that wait."""
    states, was_lag = [HotState()], dict[int, int]()
    for number, (before, after) in enumerate(pairwise(readings), 1):
        found = figures_between({1: before}, {1: after}, CHECK, POLICY.least)
        figures = None
        if found:
            partition, share, per_s = found
            lag = dict(enumerate(lags[number]))
            figures = PartitionFigures(
                partition, share, fair, per_s, lag=lag[partition],
                shrinks=lag[partition] < was_lag.get(partition, 0), elsewhere=lag_elsewhere(lag, partition),
            )  # fmt: skip
            was_lag = lag
        states.append(step(states[-1], figures, NOW + number * CHECK))
    return states


def arrivals(chance: random.Random, shares: Sequence[float], events: int) -> list[int]:
    """Return how many of the events arrive on each partition, by chance."""
    return [max(0, round(chance.gauss(events * one, math.sqrt(events * one * (1 - one))))) for one in shares]


def shares_of(chance: random.Random, partitions: int, hot: float = 0.0, keys: int = 50) -> list[float]:
    """Return the shares of the partitions for `keys` keys for each, and one key `acme` with the share `hot`."""
    places = partitions_of([f"k{chance.random()}" for _ in range(keys * partitions)], partitions)
    found = [(1 - hot) * places.count(partition) / len(places) for partition in range(partitions)]
    found[partitions_of(["acme"], partitions)[0]] += hot
    return found


def added(reading: Sequence[int], counts: Sequence[int]) -> list[int]:
    return [before + count for before, count in zip(reading, counts, strict=True)]


@given(
    partitions=st.sampled_from([1, 2, 3, 4, 8, 16]),
    per_s=st.integers(1, 5_000),
    served_per_s=st.integers(0, 500),
    seed=st.integers(),
)
@settings(deadline=None)
def test_uniform_keys_never_alert_whatever_the_rate_and_the_lag(
    partitions: int, per_s: int, served_per_s: int, seed: int
):
    chance = random.Random(seed)
    shares = shares_of(chance, partitions)
    readings, lags = [[0] * partitions], [[0] * partitions]
    for check in range(1, 9):
        readings.append(added(readings[-1], arrivals(chance, shares, 10 * per_s)))
        lags.append([max(0, count - 10 * served_per_s * check) for count in readings[-1]])
    assert all(state.alert.since is None for state in watched(readings, lags, 1 / partitions))


@given(
    partitions=st.sampled_from([2, 3, 4, 8, 16]),
    per_s=st.integers(1_000, 5_000),
    onset_s=st.integers(0, 9),
    seed=st.integers(),
)
@settings(deadline=None)
def test_key_with_60_percent_at_a_high_rate_alerts_within_a_minute(
    partitions: int, per_s: int, onset_s: int, seed: int
):
    chance = random.Random(seed)
    # With 50 other keys for each of two partitions, chance gives the one of `acme` less than a hot share now and then.
    even, hot = shares_of(chance, partitions), shares_of(chance, partitions, 0.6, keys=400)
    readings, began_s = [[0] * partitions], 60 + onset_s  # the key begins between two checks
    for check in range(13):
        even_s = min(10, max(0, began_s - 10 * check))
        counts = added(arrivals(chance, even, even_s * per_s), arrivals(chance, hot, (10 - even_s) * per_s))
        readings.append(added(readings[-1], counts))
    states = watched(readings, [[0] * partitions] * len(readings), 1 / partitions)
    alerted = [number for number, state in enumerate(states) if state.alert.since]
    assert alerted, "no alert at all"
    assert began_s <= alerted[0] * 10 <= began_s + 50  # and ten seconds for the notification
    assert states[alerted[0]].partition == partitions_of(["acme"], partitions)[0]


@pytest.mark.parametrize(
    ("changed", "is_bad"),
    [
        pytest.param({}, True, id="hot, loaded and behind"),
        pytest.param({"lag": 0}, True, id="hot and loaded"),
        pytest.param({"per_s": 100.0}, True, id="hot and behind"),
        pytest.param({"per_s": 100.0, "lag": 900}, False, id="less than ten seconds behind"),
        pytest.param({"per_s": 100.0, "shrinks": True}, False, id="the lag shrinks"),
        pytest.param({"per_s": 100.0, "elsewhere": 15_000.0}, False, id="all partitions are behind"),
        pytest.param({"per_s": 100.0, "part": 0.1}, False, id="other pipes fill the partition"),
        pytest.param({"share": 0.49}, False, id="less than twice the fair share"),
        pytest.param({"share": 0.74, "fair": 0.5}, False, id="of two partitions, not half of the rest"),
        pytest.param({"share": 0.76, "fair": 0.5}, True, id="of two partitions, more than half of the rest"),
        pytest.param({"share": 1.0, "fair": 1.0}, False, id="one partition is all there is"),
    ],
)
def test_partition_is_suspect_only_if_it_is_hot_and_does_harm(changed: dict[str, Any], is_bad: bool):
    assert step(HotState(), replace(HOT, **changed)).suspect_since == (NOW if is_bad else None)


def test_alert_opens_once_the_same_partition_is_hot_for_20_seconds():
    state = step(HotState(), HOT)
    state = step(state, HOT, NOW + CHECK)
    assert state.alert.since is None
    assert step(state, HOT, NOW + 2 * CHECK).alert.since == NOW + 2 * CHECK
    assert step(state, replace(HOT, partition=2), NOW + 2 * CHECK).alert.since is None
    cooled = step(state, replace(HOT, share=0.3), NOW + 2 * CHECK)
    assert step(cooled, HOT, NOW + 3 * CHECK).suspect_since == NOW + 3 * CHECK


@pytest.mark.parametrize(
    ("figures", "is_well"),
    [
        pytest.param(HOT, False, id="still hot"),
        pytest.param(replace(HOT, share=0.45), False, id="below twice the fair share, but not halfway back"),
        pytest.param(replace(HOT, share=0.3), True, id="halfway back to the fair share"),
        pytest.param(replace(HOT, per_s=450.0, lag=0), False, id="nearly as much load"),
        pytest.param(replace(HOT, per_s=300.0, lag=0), True, id="less load and no lag"),
        pytest.param(replace(HOT, per_s=300.0, lag=2_000), False, id="less load, still behind"),
        pytest.param(None, True, id="no traffic"),
    ],
)
def test_alert_ends_after_five_minutes_at_stricter_thresholds(figures: PartitionFigures | None, is_well: bool):
    state = step(ALERTED, figures)
    assert state.alert.well_since == (NOW if is_well else None)
    assert step(state, HOT, NOW + MINUTE).alert == Condition(ALERTED.alert.since)
    later = step(state, figures, NOW + 5 * MINUTE)
    assert (later.alert.since is None) == is_well


def test_nothing_opens_and_nothing_ends_during_a_change_of_pipe_or_cell():
    suspect = HotState(1, NOW - MINUTE)
    assert step(suspect, HOT, is_quiet=True) == HotState(1)
    well = HotState(1, None, Condition(NOW - 9 * MINUTE, NOW - 6 * MINUTE))
    assert step(well, None, is_quiet=True).alert == Condition(NOW - 9 * MINUTE)


def test_share_is_of_the_events_between_two_checks_over_all_buckets():
    before, after = {7: [100, 100], 8: [10, 10]}, {7: [100, 110], 8: [20, 210], 9: [0, 90]}
    assert figures_between(before, after, CHECK, 100) == (1, 300 / 310, 30.0)


@pytest.mark.parametrize(
    ("after", "elapsed"),
    [({7: [50, 49]}, CHECK), ({}, CHECK), ({7: [500, 0]}, timedelta(0))],
    ids=["too few events", "no events", "no time"],
)
def test_small_pipe_has_no_figures(after: dict[int, list[int]], elapsed: timedelta):
    assert figures_between({}, after, elapsed, 50) is None
