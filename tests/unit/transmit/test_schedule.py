"""Time of the next retry: within bounds, never early, as requested, not past the retry horizon."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.spec import RetryPolicy
from dataplane.transmit.policy.schedule import (
    ASKED_FLOOR_S,
    LOCAL_PAUSE_CAP_S,
    LOCAL_PAUSE_S,
    RetrySchedule,
    local_pause_s,
    next_try,
)

S = 1_000_000
NOW = 1_790_000_000 * S
DAY_S = 86_400
DELAYS = RetryPolicy().delays_s
delays = st.lists(st.integers(1, DAY_S), min_size=1, max_size=20)


@given(st.integers(0, 1_000), st.floats(0, 1))
def test_local_pause_stays_within_its_doubling_bound(tries: int, chance: float):
    assert 0 <= local_pause_s(tries, chance) <= min(LOCAL_PAUSE_CAP_S, LOCAL_PAUSE_S * 2.0**tries)


def test_full_jitter_uses_the_whole_bound():
    assert local_pause_s(2, 0.0) == 0.0
    assert local_pause_s(2, 1.0) == 4 * LOCAL_PAUSE_S


def test_default_delays_are_those_of_the_design():
    assert DELAYS == (10, 60, 300, 1_800, 7_200, 18_000, 36_000)


@pytest.mark.parametrize(
    ("round_", "since_first_s", "asked_s", "wait_s"),
    [
        pytest.param(1, 0, 0, 10, id="the first wait"),
        pytest.param(2, 10, 0, 60, id="the second"),
        pytest.param(7, 3_600, 0, 36_000, id="the last"),
        pytest.param(8, 3_600, 0, 36_000, id="the last goes on"),
        pytest.param(1, DAY_S - 10, 0, 10, id="exactly at the end of the span"),
        pytest.param(1, DAY_S - 9, 0, None, id="the span would be over"),
        pytest.param(5, 0, 3_600, 3_600, id="as asked, in place of the wait"),
        pytest.param(1, 0, 3_600, 3_600, id="as asked, longer than the wait"),
        pytest.param(5, 0, 1, ASKED_FLOOR_S, id="who asks for an instant waits a little"),
        pytest.param(1, 3_600, 10 * 365 * DAY_S, DAY_S - 3_600, id="ten years are the rest of the span"),
        pytest.param(1, DAY_S, 3_600, None, id="asked at the end of the span"),
        pytest.param(1, DAY_S + 1, 3_600, None, id="asked after it"),
    ],
)
def test_next_retry_follows_from_round_requested_wait_and_span(
    round_: int, since_first_s: int, asked_s: float, wait_s: int | None
):
    found = next_try(
        round_, delays_s=DELAYS, span_s=DAY_S, first_us=NOW - since_first_s * S, now_us=NOW, asked_s=asked_s
    )
    due_us = None if wait_s is None else NOW + wait_s * S
    assert found == (None if due_us is None else RetrySchedule(due_us, due_us if asked_s else 0))


@given(st.integers(1, 50), delays, st.integers(0, 8 * DAY_S), st.integers(1, 7 * DAY_S), st.floats(0, 1e10))
def test_next_retry_is_never_early_and_never_past_the_retry_horizon(
    round_: int, waits_s: list[int], since_first_s: int, span_s: int, asked_s: float
):
    first_us = NOW - since_first_s * S
    found = next_try(round_, delays_s=waits_s, span_s=span_s, first_us=first_us, now_us=NOW, asked_s=asked_s)
    ends_us = first_us + span_s * S
    wait_s = waits_s[min(round_, len(waits_s)) - 1]
    if found is None:
        assert ends_us <= NOW if asked_s else NOW + wait_s * S > ends_us
    else:
        assert NOW < found.due_us <= ends_us
        assert found.due_us >= min(NOW + int(asked_s * S), ends_us) if asked_s else found.due_us == NOW + wait_s * S


@given(delays, st.integers(1, 7 * DAY_S))
def test_retries_end_within_the_span(waits_s: list[int], span_s: int):
    now_us, round_ = NOW, 1
    while found := next_try(round_, delays_s=waits_s, span_s=span_s, first_us=NOW, now_us=now_us):
        now_us, round_ = found.due_us, round_ + 1
        if round_ > 100:
            break  # a delay of one second for a week
    assert now_us - NOW <= span_s * S
