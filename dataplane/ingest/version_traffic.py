"""Count the accepted and rejected events of each schema version, by source and hour. Pure.

Counts that are not reported yet are lost if the process is killed, and an event that its sender repeats counts again:
the ledger is exact, these counts describe traffic.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from dataplane.ledger.version_traffic import HOUR_US, VersionTraffic
from dataplane.runtime.telemetry.report_timer import ReportTimer

REPORT_S: Final = 10.0
MANY: Final = 2_000  # counts, with which a report is due at once


class TrafficKey(NamedTuple):
    """Properties of counted events; the fields are those of VersionTraffic."""

    pipe: str
    source: str
    version: str
    hour: int


class TrafficBook:
    """Events by version since the last report. `now_s`: the clock of the reports."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._timer = ReportTimer(REPORT_S, now_s)
        self._accepted: Counter[TrafficKey] = Counter()
        self._rejected: Counter[TrafficKey] = Counter()

    def accept(self, pipe: str, source: str, versions: Iterable[str], now_us: int) -> None:
        """Count stored events by the version of each; "" for one that was checked with none. A hot path."""
        for version, events in Counter(versions).items():
            if version:
                self._accepted[TrafficKey(pipe, source, version, now_us // HOUR_US)] += events

    def reject(self, pipe: str, source: str, version: str, now_us: int) -> None:
        """Count an event that does not fit a version; "" if it was checked with none."""
        if version:
            self._rejected[TrafficKey(pipe, source, version, now_us // HOUR_US)] += 1

    @property
    def is_due(self) -> bool:
        """True if there is something to report, and a report is due."""
        known = len(self._accepted) + len(self._rejected)
        return known > 0 and (known >= MANY or self._timer.is_over)

    def hasten(self) -> None:
        """Make the next report due now, because the process is about to end."""
        self._timer.hasten()

    def take_if_due(self) -> list[VersionTraffic]:
        """Return the counts since the last report and reset them; none if no report is due."""
        if not self.is_due:
            return []
        self._timer.restart()
        accepted, self._accepted = self._accepted, Counter()
        rejected, self._rejected = self._rejected, Counter()
        return [VersionTraffic(*key, accepted[key], rejected[key]) for key in sorted({*accepted, *rejected})]
