"""Which events a load sends, and when. Pure: times are arguments, in seconds of a monotonic clock."""

import heapq
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple


class Post(NamedTuple):
    """Events of one POST, by their number in the load, and the time of their first attempt.

    late_s: time from the moment at which the rate required it to its first attempt; 0 without a rate
    """

    numbers: Sequence[int]
    since_s: float
    late_s: float = 0.0


class SendPlan:
    """Plan of a load: `count` events (None: no end) in POSTs of `batch` events.

    rate: events per second whether or not responses arrive (open loop), 0 for none; None: each POST is due as soon as
        a connection is free (closed loop)
    most_behind_s: POSTs that are due for longer are dropped, because a late burst is not the requested rate
    """

    def __init__(
        self, rate: float | None, *, count: int | None = None, batch: int = 1, most_behind_s: float = math.inf
    ) -> None:
        self._count, self._batch, self._most_behind_s = count, batch, most_behind_s
        self._rate = rate
        self._due_s = -math.inf
        self._next = 0
        self._has_ended = False
        self._again: list[tuple[float, int, Post]] = []
        self._order = itertools.count()

    def set_rate(self, rate: float | None, now_s: float) -> None:
        """Set the rate; the next POST is due now."""
        self._rate, self._due_s = rate, now_s

    def begin(self, now_s: float) -> None:
        """Make the first POST due now."""
        self.set_rate(self._rate, now_s)

    @property
    def is_over(self) -> bool:
        """Return True if neither new events nor repeats are left."""
        return not self._again and self._is_exhausted

    def end(self, *, repeats: bool = True) -> None:
        """Send no new events; with `repeats`, those without an ACK are still sent again. Any thread may call this."""
        self._has_ended = True
        if not repeats:
            self._again.clear()

    def take(self, now_s: float) -> Post | None:
        """Return the next due POST, or None. Repeats go first."""
        if self._again and self._again[0][0] <= now_s:
            return heapq.heappop(self._again)[2]
        if self._is_exhausted or self._rate == 0:
            return None
        late_s = 0.0
        if self._rate is not None:
            self._due_s = max(self._due_s, now_s - self._most_behind_s)
            if self._due_s > now_s:
                return None
            late_s = now_s - self._due_s
            self._due_s += self._batch / self._rate
        first, self._next = self._next, self._next + self._batch
        if self._count is not None:
            self._next = min(self._next, self._count)
        return Post(range(first, self._next), now_s, late_s)

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until the next POST is due, infinite if none is."""
        due_s = self._again[0][0] if self._again else math.inf
        if not self._is_exhausted and self._rate != 0:
            due_s = min(due_s, self._due_s if self._rate else now_s)
        return max(0.0, due_s - now_s)

    def again(self, post: Post, at_s: float) -> None:
        """Send the events of a POST again, at a time."""
        heapq.heappush(self._again, (at_s, next(self._order), post))

    @property
    def _is_exhausted(self) -> bool:
        return self._has_ended or self._next == self._count
