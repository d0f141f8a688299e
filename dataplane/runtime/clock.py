"""Wall clock that never runs backwards and takes no jump while it is used."""

import time


class SteadyClock:
    """Wall time as it was when the clock was made, plus what the monotonic clock has run since.

    Differences of its readings are durations, and each reading is comparable with wall times of other hosts. Make one
    for a batch of work, so that a corrected system clock is followed by the next one.
    """

    __slots__ = ("_offset_us",)

    def __init__(self) -> None:
        self._offset_us = time.time_ns() // 1_000 - time.monotonic_ns() // 1_000

    def now_us(self) -> int:
        """Return microseconds since the epoch."""
        return time.monotonic_ns() // 1_000 + self._offset_us
