"""When a failed message is tried again: within bounds, never early, not past the destination's span."""

from hypothesis import given
from hypothesis import strategies as st

from dataplane.transmit.schedule import (
    GLOBAL_CAP_S,
    GLOBAL_FIRST_S,
    LOCAL_PAUSE_CAP_S,
    LOCAL_PAUSE_S,
    global_delay_s,
    local_pause_s,
    next_try_us,
)

S = 1_000_000
NOW = 1_790_000_000 * S


@given(st.integers(0, 1_000), st.floats(0, 1))
def test_a_local_pause_stays_within_its_doubling_bound(tries: int, chance: float):
    assert 0 <= local_pause_s(tries, chance) <= min(LOCAL_PAUSE_CAP_S, LOCAL_PAUSE_S * 2.0**tries)


def test_full_jitter_uses_the_whole_bound():
    assert local_pause_s(2, 0.0) == 0.0
    assert local_pause_s(2, 1.0) == 4 * LOCAL_PAUSE_S


@given(st.integers(1, 10_000))
def test_a_global_delay_grows_and_is_capped(round_: int):
    assert GLOBAL_FIRST_S <= global_delay_s(round_) <= global_delay_s(round_ + 1) <= GLOBAL_CAP_S


def test_global_delays_double_from_a_second():
    assert [global_delay_s(n) for n in range(1, 11)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]


@given(st.integers(1, 50), st.integers(0, 8 * 86_400), st.integers(1, 7 * 86_400))
def test_the_next_try_is_never_early_and_never_past_the_span(round_: int, since_first_s: int, span_s: int):
    due_us = next_try_us(round_, now_us=NOW, first_us=NOW - since_first_s * S, span_s=span_s)
    if due_us is None:
        assert since_first_s + global_delay_s(round_) > span_s
    else:
        assert due_us == NOW + global_delay_s(round_) * S
        assert due_us <= NOW - since_first_s * S + span_s * S


@given(st.integers(1, 7 * 86_400))
def test_retrying_ends_within_the_span(span_s: int):
    now_us, round_ = NOW, 1
    while (due_us := next_try_us(round_, now_us=now_us, first_us=NOW, span_s=span_s)) is not None:
        assert due_us > now_us
        now_us, round_ = due_us, round_ + 1
    assert now_us - NOW <= span_s * S < now_us - NOW + global_delay_s(round_) * S
