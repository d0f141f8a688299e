"""Limits of one lane for one destination: rate, adaptive concurrency and retry budget. Pure: time is an argument.

A destination's limits apply to all lanes together; each lane takes its share, but at least one.
"""

from collections.abc import Mapping
from typing import Final

from dataplane.names import LaneKind

RETRY_SHARE: Final = 0.25  # of a destination's limits, for the retry lanes; lanes of first attempts have the rest
BURST_S: Final = 0.1  # burst of a rate limit: what it admits in this time, but at least one
RETRIES_A_SEND: Final = 0.1
MAX_SAVED_RETRIES: Final = 10.0
STEP_S: Final = 1.0  # interval at which concurrency is adapted
SLOWER: Final = 3.0  # a mean latency above this multiple of the best one means that the destination is overloaded,
SLACK_S: Final = 0.05  # if it also exceeds that multiple by this much
EASE: Final = 0.8
FORGET: Final = 1.02  # the best latency grows by 2 % a step, so that it is forgotten slowly
MIN_CROWDED: Final = 4.0  # latency alone never reduces concurrency below this; a 429 does


def lane_share(limit: float, kind: LaneKind, lanes: Mapping[LaneKind, int]) -> float:
    """Return one lane's share of a destination's limit, given the number of running lanes of each kind."""
    first, retry = max(lanes.get("transmit", 1), 1), lanes.get("transmit-retry", 0)
    if kind == "transmit-retry":
        return limit * RETRY_SHARE / max(retry, 1)
    if kind == "transmit-slow":  # replaces the lanes of first attempts
        first = max(lanes.get("transmit-slow", 1), 1)
    return limit * (1 - RETRY_SHARE if retry else 1.0) / first


class RateLimit:
    """Token bucket that starts full, with one burst."""

    __slots__ = ("_burst", "_level", "_rate", "_then_s")

    def __init__(self, rate_per_s: float, now_s: float) -> None:
        self._rate = rate_per_s
        self._burst = self._level = max(1.0, rate_per_s * BURST_S)
        self._then_s = now_s

    def room(self, now_s: float) -> int:
        """Return the number of sends that may begin now."""
        self._level = min(self._burst, self._level + max(0.0, now_s - self._then_s) * self._rate)
        self._then_s = now_s
        return int(self._level)

    def take(self) -> None:
        """Spend one token."""
        self._level -= 1


class RetryBudget:
    """Budget of local retries: a tenth of a destination's first attempts, with MAX_SAVED_RETRIES saved at most."""

    __slots__ = ("_level",)

    def __init__(self) -> None:
        self._level = MAX_SAVED_RETRIES

    def sent(self) -> None:
        """Earn a tenth of a retry for a first attempt."""
        self._level = min(MAX_SAVED_RETRIES, self._level + RETRIES_A_SEND)

    def take(self) -> bool:
        """Spend one retry; return False if the budget is empty."""
        if self._level < 1:
            return False
        self._level -= 1
        return True


class ConcurrencyLimit:
    """Adaptive concurrency between 1 and a limit.

    A 429 halves it, a growing latency reduces it by a fifth, and it grows while answers are fast.
    """

    __slots__ = ("_best_s", "_count", "_limit", "_sum_s", "_then_s", "_throttled", "allowed")

    def __init__(self, limit: float, now_s: float) -> None:
        self.allowed = self._limit = max(1.0, limit)
        self._best_s = 0.0
        self._then_s = now_s
        self._throttled = False
        self._clear()

    def limit(self, limit: float) -> None:
        """Set a new limit. A concurrency that was reduced stays reduced."""
        limit = max(1.0, limit)
        self.allowed = limit if self.allowed >= self._limit else min(self.allowed, limit)
        self._limit = limit

    def answered(self, now_s: float, latency_s: float) -> None:
        """Count a successful send and its latency; adapt once a step is over."""
        self._sum_s += latency_s
        self._count += 1
        if now_s - self._then_s >= STEP_S:
            self._step(now_s)

    def throttled(self, now_s: float) -> None:
        """Halve the concurrency after a 429. Several within one step count once."""
        if not self._throttled:
            self.allowed = max(1.0, self.allowed / 2)
            self._throttled = True
        if now_s - self._then_s >= STEP_S:
            self._begin(now_s)

    @property
    def reduced(self) -> bool:
        """True if the allowed concurrency is below the limit."""
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
