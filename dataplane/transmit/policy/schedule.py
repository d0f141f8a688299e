"""Schedule of local and global retries. Pure: time and randomness are arguments."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

LOCAL_PAUSE_S: Final = 0.1
LOCAL_PAUSE_CAP_S: Final = 2.0
ASKED_FLOOR_S: Final = 10  # shortest wait for a Retry-After, unless the retry delays are shorter


class RetrySchedule(Struct, frozen=True):
    """Unix time in microseconds of the next global retry; `asked_us` equals it if a Retry-After set it, else 0."""

    due_us: int
    asked_us: int = 0


def local_pause_s(tries: int, chance: float) -> float:
    """Return the pause in seconds before the next local retry: full jitter over a doubling bound (`chance` in 0..1).

    Source: Exponential Backoff And Jitter, AWS Architecture Blog, 2015.
    """
    return chance * min(LOCAL_PAUSE_CAP_S, LOCAL_PAUSE_S * 2.0**tries)


def next_try(
    round_: int, *, delays_s: Sequence[int], span_s: int, first_us: int, now_us: int, asked_s: float = 0.0
) -> RetrySchedule | None:
    """Return the schedule of global retry `round_` (from 1), or None if it would be due after the retry horizon.

    The retry horizon of `span_s` seconds begins at the first attempt (`first_us`). The n-th delay precedes the n-th
    retry, the last one all later retries. `asked_s` is the Retry-After of the answer, 0 without one: it replaces the
    delay, and ends with the retry horizon at the latest.
    """
    ends_us = first_us + span_s * 1_000_000
    if asked_s > 0:
        floor_s = min(ASKED_FLOOR_S, *delays_s)
        due_us = min(now_us + int(max(asked_s, floor_s) * 1_000_000), ends_us)
        return RetrySchedule(due_us, due_us) if due_us > now_us else None
    due_us = now_us + delays_s[min(round_, len(delays_s)) - 1] * 1_000_000
    return RetrySchedule(due_us) if due_us <= ends_us else None
