"""The Autoscaler on traces: within its goal, cheaper than the best fixed group, and without flapping."""

import random
from collections.abc import Sequence
from itertools import pairwise
from math import ceil, cos, pi

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.autoscaler.decide import LaneGroup, ScaleDecision, ScalePolicy
from tests.support.lane_model import Limits, Run, best_fixed, run_scaled

HOUR_S = 3_600
TEN_MINUTES_S = 600
GOAL_S = 5.0
KEPT = 0.99  # share of all minutes that have their p95 within the goal
CHEAPER = 0.85
POLICY = ScalePolicy(1, 24, goal_s=GOAL_S)
CPU_BOUND = Limits()
LOCKED = Limits(lane_cpu=0.5)  # lanes use half of a core at most, whatever the backlog


def noisy(traffic: Sequence[float], seed: int) -> list[float]:
    """Return the traffic with a drift of some 8 % and as much noise in each second."""
    chance, drift, found = random.Random(seed), 0.0, []
    for second, rate in enumerate(traffic):
        if second % 30 == 0:
            drift = 0.8 * drift + chance.gauss(0, 0.05)
        found.append(max(0.0, rate * (1 + drift + chance.gauss(0, 0.05))))
    return found


def steps(*rates: float) -> list[float]:
    return [rate for rate in rates for _ in range(HOUR_S)]


def day(low: float, high: float, hours: int = 8) -> list[float]:
    """Return a day's cycle in eight hours: it is steeper than a day, and harder."""
    span_s = hours * HOUR_S
    return [low + (high - low) * ((1 - cos(2 * pi * second / span_s)) / 2) ** 2 for second in range(span_s)]


def bursts(low: float, high: float, every_s: int, lasts_s: int) -> list[float]:
    return [high if second % every_s < lasts_s and second > every_s / 2 else low for second in range(8 * HOUR_S)]


TRACES = {
    "steps": (steps(1000, 4000, 7000, 3000, 6000, 1500, 2500, 800), CPU_BOUND),
    "day": (day(800, 8000), CPU_BOUND),
    "bursts": (bursts(1200, 4500, every_s=6_000, lasts_s=420), CPU_BOUND),
    "plateau": (steps(700, 1500, 700, 2400, 900, 400, 2000, 500), LOCKED),
}


def gaps_s(run: Run, first: int) -> list[int]:
    return [after - before for before, after in pairwise(run.reversals(first))]


@pytest.mark.parametrize("trace", TRACES)
def test_autoscaler_meets_its_goal_cheaper_than_fixed_and_reverses_at_most_every_ten_minutes(trace: str):
    rates, limits = TRACES[trace]
    traffic = noisy(rates, seed=1)
    scaled = run_scaled(traffic, 2, limits, POLICY)
    fixed = best_fixed(traffic, limits, GOAL_S, KEPT)
    assert scaled.within(GOAL_S) >= KEPT
    assert scaled.worker_minutes <= CHEAPER * fixed.worker_minutes
    assert min(gaps_s(scaled, 2), default=HOUR_S) >= TEN_MINUTES_S


def test_autoscaler_keeps_lanes_for_bursts_that_recur_within_its_patience():
    scaled = run_scaled(noisy(bursts(1200, 4500, every_s=720, lasts_s=60), 5), 2, CPU_BOUND, POLICY)
    assert scaled.within(GOAL_S) >= KEPT
    assert len(scaled.reversals(2)) <= 10, "it would be 80 if each burst were answered and forgotten"
    assert len([gap for gap in gaps_s(scaled, 2) if gap < 600]) <= 3


def test_lane_with_a_lock_shows_its_ceiling_and_the_target_falls_below_it():
    scaled = run_scaled(steps(400, 1500), 1, LOCKED, POLICY)
    whys = [why for _, _, why in scaled.changes]
    assert whys[0].startswith("trial of one more lane: lag rises while CPU stays flat")
    assert "target 45%" in whys[1]
    assert scaled.changes[-1][1] >= 4, "1500 a second need three lanes at the ceiling, four below it"


def test_trial_lane_is_removed_when_a_destination_is_the_limit():
    scaled = run_scaled(steps(800, 3000), 2, Limits(outside=lambda _second: 1_000.0), POLICY)
    assert max(lanes for _, lanes, _ in scaled.changes) == 3
    assert len(scaled.changes) <= 4, "a trial and its end, twice in an hour"
    assert scaled.changes[1][1] == 2


@pytest.mark.parametrize("until_s", [660, 720], ids=["until the trial", "beyond the trial"])
def test_temporary_slowness_sets_no_ceiling(until_s: int):
    """Lanes that waited for a slow destination for a minute or two say nothing about their own capacity."""
    slow = Limits(outside=lambda second: 1_000.0 if 600 <= second < until_s else float("inf"))
    scaled = run_scaled(steps(1_400), 2, slow, POLICY)
    assert any(why.startswith("trial") for _, _, why in scaled.changes)
    assert all("target 75%" in why for _, _, why in scaled.changes)


def naive(group: LaneGroup) -> ScaleDecision:
    """Scale by CPU over target, at this very moment, up and down."""
    cpu = group.figures[-1].cpu if group.figures else 0.0
    wanted = min(group.policy.maximum, max(group.policy.minimum, ceil(cpu / group.policy.target)))
    return ScaleDecision(wanted, "now", group.memory)


def test_traces_find_an_autoscaler_that_flaps():
    scaled = run_scaled(noisy(TRACES["steps"][0][: 2 * HOUR_S], 1), 2, CPU_BOUND, POLICY, naive)
    assert min(gaps_s(scaled, 2)) < 60


levels = st.lists(st.tuples(st.integers(0, 9_000), st.integers(20, 700)), min_size=1, max_size=6)


@settings(max_examples=10, deadline=None)
@given(levels=levels, outside=st.sampled_from([float("inf"), 2_000.0, 300.0]), lane_cpu=st.sampled_from([1.0, 0.4]))
def test_lanes_stay_within_the_policy_and_are_not_removed_soon_after_a_scale_out(
    levels: list[tuple[int, int]], outside: float, lane_cpu: float
):
    traffic = [float(rate) for rate, seconds in levels for _ in range(seconds)]
    policy = ScalePolicy(2, 9)
    scaled = run_scaled(traffic, 3, Limits(lane_cpu=lane_cpu, outside=lambda _second: outside), policy)
    counts = [3, *(lanes for _, lanes, _ in scaled.changes)]
    assert all(policy.minimum <= lanes <= policy.maximum for lanes in counts)
    last_out = -TEN_MINUTES_S
    for (second, lanes, _), before in zip(scaled.changes, counts, strict=False):
        if lanes > before:
            last_out = second
        else:
            assert second - last_out >= TEN_MINUTES_S
