"""Limits of a destination: shared by lanes, kept over any period, adapted to its responses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.names import LaneKind
from dataplane.transmit.policy.limits import (
    BURST_S,
    MAX_SAVED_RETRIES,
    RETRIES_A_SEND,
    STEP_S,
    ConcurrencyLimit,
    RateLimit,
    RetryBudget,
    lane_share,
)


@pytest.mark.parametrize(
    ("kind", "lanes", "share"),
    [
        ("transmit", {"transmit": 1}, 100.0),
        ("transmit", {"transmit": 1, "transmit-retry": 1}, 75.0),
        ("transmit", {"transmit": 3, "transmit-retry": 1}, 25.0),
        ("transmit-retry", {"transmit": 3, "transmit-retry": 2}, 12.5),
        ("transmit", {}, 100.0),
    ],
)
def test_lanes_share_a_limit(kind: LaneKind, lanes: dict[LaneKind, int], share: float):
    assert lane_share(100.0, kind, lanes) == share


def test_shares_of_all_lanes_add_up_to_the_limit():
    lanes: dict[LaneKind, int] = {"transmit": 3, "transmit-retry": 2}
    assert 3 * lane_share(10, "transmit", lanes) + 2 * lane_share(10, "transmit-retry", lanes) == pytest.approx(10)


@given(st.floats(0.1, 500), st.lists(st.tuples(st.floats(0, 3), st.sampled_from([0.0, 0.5, 1.0])), max_size=60))
def test_rate_limit_holds_over_every_period(rate: float, turns: list[tuple[float, float]]):
    """Each turn is a pause and the share of the room that is used after it: unused room is not saved."""
    limit, now_s, sent = RateLimit(rate, 0.0), 0.0, [(0.0, 0)]
    for pause, share in turns:
        now_s += pause
        room = int(limit.room(now_s) * share)
        for _ in range(room):
            limit.take()
        for since_s, before in sent:
            assert sent[-1][1] + room - before <= rate * (now_s - since_s) + max(1.0, rate * BURST_S) + 0.01
        sent.append((now_s, sent[-1][1] + room))


def test_slow_rate_allows_one_request_at_a_time():
    limit = RateLimit(0.5, 0.0)
    assert limit.room(0.0) == 1
    limit.take()
    assert [limit.room(at_s) for at_s in (1.0, 1.9, 2.1)] == [0, 0, 1]


@given(st.lists(st.booleans(), max_size=400))
def test_retries_are_limited_to_a_tenth_of_the_sends_and_an_initial_budget(asked: list[bool]):
    budget, retries = RetryBudget(), 0
    for number, wants in enumerate(asked, 1):
        budget.sent()
        retries += wants and budget.take()
        assert retries <= MAX_SAVED_RETRIES + number * RETRIES_A_SEND


def test_429_halves_the_concurrency_once_a_step_and_never_to_zero():
    throttle = ConcurrencyLimit(64, 0.0)
    for _ in range(50):
        throttle.throttled(0.1)
    assert throttle.allowed == 32
    for step in range(1, 20):
        throttle.throttled(step * STEP_S * 1.01)
        throttle.throttled(step * STEP_S * 1.01 + 0.001)
    assert throttle.allowed == 1


def test_concurrency_grows_again_while_responses_are_good():
    throttle = ConcurrencyLimit(64, 0.0)
    throttle.throttled(0.0)
    now_s = 0.0
    while throttle.reduced:
        now_s += STEP_S
        assert now_s < 60
        throttle.answered(now_s, 0.01)
    assert throttle.allowed == 64


def test_overloaded_destination_is_throttled_and_a_steady_slow_one_is_not():
    slow, crowded = ConcurrencyLimit(64, 0.0), ConcurrencyLimit(64, 0.0)
    for step in range(1, 20):
        slow.answered(step * STEP_S, 2.0)
        crowded.answered(step * STEP_S, 0.01 if step < 5 else 0.5)
    assert slow.allowed == 64
    assert 4 <= crowded.allowed < 16


def test_few_milliseconds_more_are_no_overload():
    throttle = ConcurrencyLimit(64, 0.0)
    for step in range(1, 20):
        throttle.answered(step * STEP_S, 0.001 if step < 5 else 0.03)
    assert throttle.allowed == 64


@pytest.mark.parametrize(("limit", "allowed"), [(10, 10), (100, 100), (0.2, 1)])
def test_new_limit_applies_immediately(limit: float, allowed: float):
    throttle = ConcurrencyLimit(64, 0.0)
    throttle.limit(limit)
    assert throttle.allowed == allowed
