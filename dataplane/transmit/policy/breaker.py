"""Circuit breaker of one destination in one lane. Pure: time and randomness are arguments.

closed -> open when at least half of a window's sends failed; open -> half-open when its period is over and a prober
asks; half-open -> closed after a few successful probes in a row, or open again, for longer, after a failed one. Times
are seconds of a monotonic clock.
"""

from typing import Final

from dataplane.tables.signals import BreakerState

SLICE_S: Final = 5.0  # a window is the current slice and the previous one
MIN_VOLUME: Final = 10  # minimum sends in a window for a decision
OPEN_AT: Final = 0.5
FIRST_OPEN_S: Final = 5.0
OPEN_CAP_S: Final = 60.0
JITTER: Final = 0.2  # prevents simultaneous probes by lanes and of destinations that failed together
PROBES: Final = 2  # maximum in flight while half-open
GOOD_PROBES: Final = 3  # successful probes in a row that close it
CALM_S: Final = 60.0  # after so long closed, the next opening counts as the first
PROBER_GRACE_S: Final = 20.0  # extra wait of a lane that is not the prober before it sends probes
UNLIMITED: Final = 1 << 30


class Breaker:
    """Circuit breaker: `allowance` before a send, `succeeded` or `failed` after it. A 429 is not a failure here."""

    __slots__ = ("_bad", "_bad_before", "_closed_s", "_good_probes", "_openings", "_sent", "_sent_before", "_slice_s",
                 "period_s", "state", "until_s")  # fmt: skip

    def __init__(self, now_s: float) -> None:
        self.state: BreakerState = "closed"
        self.until_s = 0.0  # while open: time of the first probe
        self.period_s = 0.0  # while open: duration from its opening to `until_s`
        self._openings = 0
        self._closed_s = now_s
        self._good_probes = 0
        self._slice_s = now_s
        self._sent = self._bad = self._sent_before = self._bad_before = 0

    def allowance(self, now_s: float, *, prober: bool) -> int:
        """Return the number of sends that may be in flight now; turns half-open if the open period is over."""
        if self.state == "closed":
            return UNLIMITED
        if now_s < self.until_s + (0.0 if prober else PROBER_GRACE_S):
            return 0
        if self.state == "open":
            self.state, self._good_probes = "half-open", 0
        return PROBES

    def succeeded(self, now_s: float) -> None:
        """Count a response of a working destination. A late response does not change an open breaker."""
        if self.state == "closed":
            self._count(now_s, bad=0)
        elif self.state == "half-open":
            self._good_probes += 1
            if self._good_probes >= GOOD_PROBES:
                self.close(now_s)

    def failed(self, now_s: float, chance: float) -> None:
        """Count a recoverable failure; `chance` in 0..1 is the jitter of an opening."""
        if self.state == "half-open":
            self._open(now_s, chance)
        elif self.state == "closed":
            self._count(now_s, bad=1)
            bad, sent = self._bad + self._bad_before, self._sent + self._sent_before
            if sent >= MIN_VOLUME and bad >= OPEN_AT * sent:
                self._open(now_s, chance)

    def adopt_open(self, now_s: float, until_s: float) -> None:
        """Adopt another lane's opening until `until_s`, limited to OPEN_CAP_S from now: its clock may be wrong."""
        if self.state == "closed":
            self.state = "open"
            self.until_s = min(until_s, now_s + OPEN_CAP_S)
            self.period_s = max(FIRST_OPEN_S, self.until_s - now_s)

    def close(self, now_s: float) -> None:
        """Close the breaker, after successful probes of this lane or another one."""
        self.state, self.until_s, self.period_s, self._closed_s = "closed", 0.0, 0.0, now_s
        self._slice_s = now_s
        self._sent = self._bad = self._sent_before = self._bad_before = 0

    def _open(self, now_s: float, chance: float) -> None:
        is_calm = self.state == "closed" and now_s - self._closed_s > CALM_S
        self._openings = 1 if is_calm else self._openings + 1
        period_s = min(OPEN_CAP_S, FIRST_OPEN_S * 2.0 ** min(self._openings - 1, 10))
        self.period_s = min(OPEN_CAP_S, period_s * (1 + JITTER * chance))
        self.state, self.until_s = "open", now_s + self.period_s

    def _count(self, now_s: float, bad: int) -> None:
        if now_s - self._slice_s >= SLICE_S:
            is_adjacent = now_s - self._slice_s < 2 * SLICE_S
            self._sent_before, self._bad_before = (self._sent, self._bad) if is_adjacent else (0, 0)
            self._sent, self._bad, self._slice_s = 0, 0, now_s
        self._sent += 1
        self._bad += bad
