"""When a failed message is tried again. Pure: time and chance come in as arguments."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

LOCAL_PAUSE_S: Final = 0.1
LOCAL_PAUSE_CAP_S: Final = 2.0
ASKED_FLOOR_S: Final = 10  # who asks to be tried at once, again and again, is tried this often


class NextTry(Struct, frozen=True):
    """When the next global retry is due; `asked_us` is the same if the destination asked for it, else 0."""

    due_us: int
    asked_us: int = 0


def local_pause_s(tries: int, chance: float) -> float:
    """Pause before the next local try: full jitter over a doubling bound (`chance` in 0..1).

    Source: Exponential Backoff And Jitter, AWS Architecture Blog, 2015.
    """
    return chance * min(LOCAL_PAUSE_CAP_S, LOCAL_PAUSE_S * 2.0**tries)


def next_try(
    round_: int, *, delays_s: Sequence[int], span_s: int, first_us: int, now_us: int, asked_s: float = 0.0
) -> NextTry | None:
    """Global retry `round_` (from 1) of a message first tried at `first_us`; None if its span would be over by then.

    The n-th delay comes before the n-th retry, the last one before all that follow. `asked_s` is what the answer's
    Retry-After asked for, 0 without one: it takes the place of the delay, and reaches to the end of the span at most.
    """
    ends_us = first_us + span_s * 1_000_000
    if asked_s > 0:
        floor_s = min(ASKED_FLOOR_S, *delays_s)
        due_us = min(now_us + int(max(asked_s, floor_s) * 1_000_000), ends_us)
        return NextTry(due_us, due_us) if due_us > now_us else None
    due_us = now_us + delays_s[min(round_, len(delays_s)) - 1] * 1_000_000
    return NextTry(due_us) if due_us <= ends_us else None
