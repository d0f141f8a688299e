"""Rate at which a pipe's steps dead-letter messages. Above a limit the pipe is held, not emptied into dead. Pure."""

from collections import deque
from typing import Final

from msgspec import Struct

SPAN_S: Final = 60.0
SLOT_S: Final = 5.0


class DeadRateLimit(Struct, frozen=True):
    """Limit: at most `percent` of a minute's messages may be dead-lettered, once there are `least` messages."""

    percent: int
    least: int


class DeadRate:
    """Counts of one pipe in one lane over the last minute, in slots of five seconds."""

    def __init__(self, limit: DeadRateLimit) -> None:
        self._limit = limit
        self._slots: deque[tuple[float, int, int]] = deque()  # start in seconds, seen, dead
        self._seen = self._dead = 0

    def note(self, now_s: float, seen: int, dead: int) -> bool:
        """Add counts of seen and dead-lettered messages; return True if the limit is reached.

        now_s: monotonic time; it must not decrease
        """
        while self._slots and self._slots[0][0] <= now_s - SPAN_S:
            _, old_seen, old_dead = self._slots.popleft()
            self._seen, self._dead = self._seen - old_seen, self._dead - old_dead
        began_s = now_s - now_s % SLOT_S
        _, slot_seen, slot_dead = self._slots.pop() if self._slots and self._slots[-1][0] == began_s else (0.0, 0, 0)
        self._slots.append((began_s, slot_seen + seen, slot_dead + dead))
        self._seen, self._dead = self._seen + seen, self._dead + dead
        return self._seen >= self._limit.least and self._dead * 100 >= self._limit.percent * self._seen

    def __str__(self) -> str:
        return f"{self._dead} of {self._seen} messages were dead-lettered within a minute"
