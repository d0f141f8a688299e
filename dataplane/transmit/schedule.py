"""When a failed message is tried again. Pure: time and chance come in as arguments."""

from typing import Final

LOCAL_PAUSE_S: Final = 0.1
LOCAL_PAUSE_CAP_S: Final = 2.0
GLOBAL_FIRST_S: Final = 1.0
GLOBAL_CAP_S: Final = 300.0


def local_pause_s(tries: int, chance: float) -> float:
    """Pause before the next local try: full jitter over a doubling bound (`chance` in 0..1).

    Source: Exponential Backoff And Jitter, AWS Architecture Blog, 2015.
    """
    return chance * min(LOCAL_PAUSE_CAP_S, LOCAL_PAUSE_S * 2.0**tries)


def global_delay_s(round_: int) -> float:
    """Delay of the n-th global retry (from 1): doubling, capped."""
    return float(min(GLOBAL_CAP_S, GLOBAL_FIRST_S * 2.0 ** min(round_ - 1, 20)))


def next_try_us(round_: int, *, now_us: int, first_us: int, span_s: int) -> int | None:
    """When global retry `round_` is due, or None if the destination's span since the first try is over by then."""
    due_us = now_us + int(global_delay_s(round_) * 1_000_000)
    return None if due_us - first_us > span_s * 1_000_000 else due_us
