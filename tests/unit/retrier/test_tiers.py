"""The delay tier of a message: every wait ends in time and seldom needs a change of tier."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.names import DELAYS_S
from dataplane.retrier.tiers import SLACK_US, delay_until, remaining_us

S = 1_000_000
NOW = 1_790_000_000 * S
waits_us = st.integers(1, 7 * 86_400 * S)


@pytest.mark.parametrize(
    ("wait_s", "tier"),
    [
        (0.2, "delay-10s"),
        (9.9, "delay-10s"),
        (59.9, "delay-1m"),
        (60, "delay-1m"),
        (54, "delay-10s"),
        (299.9, "delay-5m"),
        (1_799.9, "delay-30m"),
        (7_199.9, "delay-2h"),
        (18_000, "delay-2h"),
        (35_999, "delay-10h"),
        (7 * 86_400, "delay-10h"),
    ],
)
def test_longest_fitting_tier_is_chosen(wait_s: float, tier: str):
    assert delay_until(NOW + int(wait_s * S), NOW).tier == tier


@given(waits_us)
def test_message_leaves_no_later_than_its_due_time_and_the_end_of_its_tier(wait_us: int):
    delay = delay_until(NOW + wait_us, NOW)
    assert NOW < delay.leave_us <= min(NOW + wait_us, NOW + DELAYS_S[delay.tier] * S)


@given(waits_us)
def test_message_passed_from_tier_to_tier_leaves_exactly_when_it_is_due(wait_us: int):
    now_us, tiers = NOW, 0
    while now_us < NOW + wait_us:
        now_us = delay_until(NOW + wait_us, now_us).leave_us
        tiers += 1
    assert now_us == NOW + wait_us
    assert tiers <= wait_us // (36_000 * S) + 5 + 6 + 4 + 5 + 6 + 1


@given(waits_us, waits_us, st.integers(0, 60 * S))
def test_message_behind_another_in_a_tier_is_late_by_at_most_the_slack(first: int, second: int, after_us: int):
    """The earlier message may leave after the later one is due, but by no more than the slack."""
    head, behind = delay_until(NOW + first, NOW), delay_until(NOW + after_us + second, NOW + after_us)
    if head.tier == behind.tier and head.tier != "delay-10s":
        assert head.leave_us - behind.leave_us <= SLACK_US
    elif head.tier == behind.tier:
        assert head.leave_us - behind.leave_us <= DELAYS_S["delay-10s"] * S


@given(
    wait_us=waits_us,
    age_us=st.integers(0, 86_400 * S),
    jump_us=st.integers(-86_400 * S, 86_400 * S),
    jumped_us=st.integers(0, 86_400 * S),
)
def test_clock_jump_never_shortens_a_wait_and_lengthens_it_by_at_most_the_jump(
    wait_us: int, age_us: int, jump_us: int, jumped_us: int
):
    """The clock jumped `jumped_us` ago, during the run; the message was written `age_us` ago, before or after."""
    stored_us = NOW - age_us + (jump_us if age_us <= jumped_us else 0)
    left_us = remaining_us(stored_us + wait_us, stored_us, steady_us=NOW, wall_us=NOW + jump_us)
    true_us = max(0, wait_us - age_us)
    assert true_us <= left_us <= min(wait_us, true_us + abs(jump_us))
