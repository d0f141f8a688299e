"""The breaker of one destination in one lane: whether it is worth sending to. Pure: time and chance are arguments.

closed -> open when at least half of a window's sends failed; open -> half-open when its time is over and a prober asks;
half-open -> closed after a few good probes in a row, or open again, for longer, after a bad one. Times are seconds of a
clock that never goes back.
"""

from typing import Final

from dataplane.tables.signals import BreakerState

SLICE_S: Final = 5.0  # a window is this slice and the one before
MIN_VOLUME: Final = 10  # fewer sends in a window say nothing
OPEN_AT: Final = 0.5
FIRST_OPEN_S: Final = 5.0
OPEN_CAP_S: Final = 60.0
JITTER: Final = 0.2  # lanes and destinations that failed together are not probed together
PROBES: Final = 2  # in flight at once while half-open
GOOD_PROBES: Final = 3  # in a row, to close
CALM_S: Final = 60.0  # closed for so long, the next opening is a first one again
PROBER_GRACE_S: Final = 20.0  # whoever is no prober waits so much longer before it sends probes itself
UNLIMITED: Final = 1 << 30


class Breaker:
    """`succeeded` and `failed` for every send that ended; `allowance` before any begins. 429 is no failure here."""

    __slots__ = ("_bad", "_bad_before", "_closed_s", "_good_probes", "_openings", "_sent", "_sent_before", "_slice_s",
                 "period_s", "state", "until_s")  # fmt: skip

    def __init__(self, now_s: float) -> None:
        self.state: BreakerState = "closed"
        self.until_s = 0.0  # while open: when the first probe may go
        self.period_s = 0.0  # while open: from its opening to `until_s`
        self._openings = 0
        self._closed_s = now_s
        self._good_probes = 0
        self._slice_s = now_s
        self._sent = self._bad = self._sent_before = self._bad_before = 0

    def allowance(self, now_s: float, *, prober: bool) -> int:
        """How many sends may be in flight now; 0 means that none is worth beginning."""
        if self.state == "closed":
            return UNLIMITED
        if now_s < self.until_s + (0.0 if prober else PROBER_GRACE_S):
            return 0
        if self.state == "open":
            self.state, self._good_probes = "half-open", 0
        return PROBES

    def succeeded(self, now_s: float) -> None:
        """A send was answered by a destination that is well. A late one says nothing of an open breaker."""
        if self.state == "closed":
            self._count(now_s, bad=0)
        elif self.state == "half-open":
            self._good_probes += 1
            if self._good_probes >= GOOD_PROBES:
                self.close(now_s)

    def failed(self, now_s: float, chance: float) -> None:
        """A send failed for a reason that may pass (`chance` in 0..1)."""
        if self.state == "half-open":
            self._open(now_s, chance)
        elif self.state == "closed":
            self._count(now_s, bad=1)
            bad, sent = self._bad + self._bad_before, self._sent + self._sent_before
            if sent >= MIN_VOLUME and bad >= OPEN_AT * sent:
                self._open(now_s, chance)

    def adopt_open(self, now_s: float, until_s: float) -> None:
        """Another lane found it open until then (not longer than a period may be)."""
        if self.state == "closed":
            self.state = "open"
            self.until_s = min(until_s, now_s + OPEN_CAP_S)
            self.period_s = max(FIRST_OPEN_S, self.until_s - now_s)

    def close(self, now_s: float) -> None:
        """It is well again: this lane's probes, or another lane's, say so."""
        self.state, self.until_s, self.period_s, self._closed_s = "closed", 0.0, 0.0, now_s
        self._slice_s = now_s
        self._sent = self._bad = self._sent_before = self._bad_before = 0

    def _open(self, now_s: float, chance: float) -> None:
        calm = self.state == "closed" and now_s - self._closed_s > CALM_S
        self._openings = 1 if calm else self._openings + 1
        period_s = min(OPEN_CAP_S, FIRST_OPEN_S * 2.0 ** min(self._openings - 1, 10))
        self.period_s = min(OPEN_CAP_S, period_s * (1 + JITTER * chance))
        self.state, self.until_s = "open", now_s + self.period_s

    def _count(self, now_s: float, bad: int) -> None:
        if now_s - self._slice_s >= SLICE_S:
            follows = now_s - self._slice_s < 2 * SLICE_S
            self._sent_before, self._bad_before = (self._sent, self._bad) if follows else (0, 0)
            self._sent, self._bad, self._slice_s = 0, 0, now_s
        self._sent += 1
        self._bad += bad
