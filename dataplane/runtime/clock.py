"""Wall clock without backward steps or jumps while it is in use."""

import time


class SteadyClock:
    """Wall time at creation plus the time that the monotonic clock has measured since.

    Differences of its readings are durations, and each reading is comparable with wall times of other hosts. Create one
    per batch of work, so that the next one follows a corrected system clock.
    """

    __slots__ = ("_offset_us",)

    def __init__(self) -> None:
        self._offset_us = time.time_ns() // 1_000 - time.monotonic_ns() // 1_000

    def now_us(self) -> int:
        """Return microseconds since the epoch."""
        return time.monotonic_ns() // 1_000 + self._offset_us
