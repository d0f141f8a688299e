"""The tier a message waits in: whatever the wait, it comes back in time, and seldom changes tiers."""

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
def test_the_longest_tier_that_fits_is_taken(wait_s: float, tier: str):
    assert delay_until(NOW + int(wait_s * S), NOW).tier == tier


@given(waits_us)
def test_a_message_leaves_its_tier_before_it_is_due_and_before_the_tier_is_over(wait_us: int):
    delay = delay_until(NOW + wait_us, NOW)
    assert NOW < delay.leave_us <= min(NOW + wait_us, NOW + DELAYS_S[delay.tier] * S)


@given(waits_us)
def test_from_tier_to_tier_a_message_comes_out_just_when_it_is_due(wait_us: int):
    now_us, tiers = NOW, 0
    while now_us < NOW + wait_us:
        now_us = delay_until(NOW + wait_us, now_us).leave_us
        tiers += 1
    assert now_us == NOW + wait_us
    assert tiers <= wait_us // (36_000 * S) + 5 + 6 + 4 + 5 + 6 + 1


@given(waits_us, waits_us, st.integers(0, 60 * S))
def test_who_stands_behind_another_in_a_tier_is_late_by_the_slack_at_most(first: int, second: int, after_us: int):
    """The one before may leave later than the one behind is due to, but not by more than the slack."""
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
def test_a_wait_is_never_shortened_and_lengthened_by_the_jump_at_most(
    wait_us: int, age_us: int, jump_us: int, jumped_us: int
):
    """The clock was set `jumped_us` ago, while the lane ran; the message was written `age_us` ago, before or after."""
    stored_us = NOW - age_us + (jump_us if age_us <= jumped_us else 0)
    left_us = remaining_us(stored_us + wait_us, stored_us, steady_us=NOW, wall_us=NOW + jump_us)
    true_us = max(0, wait_us - age_us)
    assert true_us <= left_us <= min(wait_us, true_us + abs(jump_us))
