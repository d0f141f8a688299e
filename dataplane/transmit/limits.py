"""What one lane may send to one destination: rate, concurrency that adapts, and retries. Pure: time is an argument.

A destination's limits are meant for all lanes together; each takes its share, and none less than one.
"""

from collections.abc import Mapping
from typing import Final

from dataplane.names import LaneKind

RETRY_SHARE: Final = 0.25  # of a destination's limits, for the retry lanes; first attempts have the rest
BURST_S: Final = 0.1  # a rate limit lets through at once what it would let through in this time, or one
RETRIES_A_SEND: Final = 0.1
RETRIES_IN_HAND: Final = 10.0
STEP_S: Final = 1.0  # how often concurrency is adapted
SLOWER: Final = 3.0  # a latency of so many times the best one says that the destination is crowded,
SLACK_S: Final = 0.05  # if it is worse by this much, too
EASE: Final = 0.8
FORGET: Final = 1.02  # the best latency is forgotten by 2 % a step
MIN_CROWDED: Final = 4.0  # latency alone never takes more than this away: a 429 does


def lane_share(limit: float, kind: LaneKind, lanes: Mapping[LaneKind, int]) -> float:
    """One lane's part of a destination's limit, given how many lanes of each kind live."""
    first, again = max(lanes.get("transmit", 1), 1), lanes.get("transmit-retry", 0)
    if kind == "transmit-retry":
        return limit * RETRY_SHARE / max(again, 1)
    if kind == "transmit-slow":  # in place of the lanes of first attempts
        first = max(lanes.get("transmit-slow", 1), 1)
    return limit * (1 - RETRY_SHARE if again else 1.0) / first


class RateLimit:
    """A token bucket. At rest it holds the burst."""

    __slots__ = ("_burst", "_level", "_rate", "_then_s")

    def __init__(self, rate_per_s: float, now_s: float) -> None:
        self._rate = rate_per_s
        self._burst = self._level = max(1.0, rate_per_s * BURST_S)
        self._then_s = now_s

    def room(self, now_s: float) -> int:
        """How many may go now."""
        self._level = min(self._burst, self._level + max(0.0, now_s - self._then_s) * self._rate)
        self._then_s = now_s
        return int(self._level)

    def take(self) -> None:
        """One went."""
        self._level -= 1


class RetryBudget:
    """At most a tenth of a destination's sends may be local retries, beside a few in hand."""

    __slots__ = ("_level",)

    def __init__(self) -> None:
        self._level = RETRIES_IN_HAND

    def sent(self) -> None:
        """A first attempt went out."""
        self._level = min(RETRIES_IN_HAND, self._level + RETRIES_A_SEND)

    def take(self) -> bool:
        """Whether one retry may be made; it is then taken."""
        if self._level < 1:
            return False
        self._level -= 1
        return True


class Throttle:
    """Concurrency between 1 and a limit: halved by a 429, eased when latency grows, grown again while all is well."""

    __slots__ = ("_best_s", "_count", "_limit", "_sum_s", "_then_s", "_throttled", "allowed")

    def __init__(self, limit: float, now_s: float) -> None:
        self.allowed = self._limit = max(1.0, limit)
        self._best_s = 0.0
        self._then_s = now_s
        self._throttled = False
        self._clear()

    def limit(self, limit: float) -> None:
        """A new limit. What was allowed below it stays so."""
        limit = max(1.0, limit)
        self.allowed = limit if self.allowed >= self._limit else min(self.allowed, limit)
        self._limit = limit

    def answered(self, now_s: float, latency_s: float) -> None:
        """A send went well."""
        self._sum_s += latency_s
        self._count += 1
        if now_s - self._then_s >= STEP_S:
            self._step(now_s)

    def throttled(self, now_s: float) -> None:
        """The destination asks for less. Many such answers within one step are one request."""
        if not self._throttled:
            self.allowed = max(1.0, self.allowed / 2)
            self._throttled = True
        if now_s - self._then_s >= STEP_S:
            self._begin(now_s)

    @property
    def reduced(self) -> bool:
        """Whether less than the limit is allowed."""
        return self.allowed < self._limit

    def _step(self, now_s: float) -> None:
        mean_s = self._sum_s / self._count
        self._best_s = min(self._best_s * FORGET, mean_s) if self._best_s else mean_s
        if mean_s > self._best_s * SLOWER + SLACK_S:
            self.allowed = max(min(self.allowed, MIN_CROWDED), self.allowed * EASE)
        elif not self._throttled:
            self.allowed = min(self._limit, self.allowed + max(1.0, 0.1 * self.allowed))
        self._begin(now_s)

    def _begin(self, now_s: float) -> None:
        self._then_s = now_s
        self._throttled = False
        self._clear()

    def _clear(self) -> None:
        self._sum_s = 0.0
        self._count = 0
