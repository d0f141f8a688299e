"""Detection of healthy but slow destinations, by the latency of successful responses, with hysteresis. Pure.

A step is judged by its mean. A destination becomes slow after several slow steps in a row, and fast again after more
quick ones with a lower latency, so that it does not change lanes for one long answer or back for one quick one.
"""

from typing import Final

STEP_S: Final = 2.0
SLOW_S: Final = 1.0  # a step with a higher mean is slow,
QUICK_S: Final = 0.5  # one with a mean below this is quick, one between neither
SLOW_STEPS: Final = 4
QUICK_STEPS: Final = 10


class DestinationLatency:
    """Latency of one destination, as one lane measures it."""

    __slots__ = ("_began_s", "_count", "_in_a_row", "_sum_s", "is_slow")

    def __init__(self) -> None:
        self.is_slow = False
        self._in_a_row = 0  # consecutive steps that contradict `is_slow`
        self._began_s = self._sum_s = 0.0
        self._count = 0

    def answered(self, now_s: float, latency_s: float) -> None:
        """Count a successful send. A step begins with its first send: time without sends does not count."""
        if not self._count:
            self._began_s = now_s
        self._sum_s += latency_s
        self._count += 1
        if now_s - self._began_s >= STEP_S:
            self._judge(self._sum_s / self._count)
            self._sum_s, self._count = 0.0, 0

    def become(self, is_slow: bool) -> None:
        """Set `is_slow`, as this lane or another one found."""
        self.is_slow, self._in_a_row = is_slow, 0

    def _judge(self, mean_s: float) -> None:
        contradicts = mean_s < QUICK_S if self.is_slow else mean_s > SLOW_S
        self._in_a_row = self._in_a_row + 1 if contradicts else 0
        if self._in_a_row >= (QUICK_STEPS if self.is_slow else SLOW_STEPS):
            self.become(not self.is_slow)
