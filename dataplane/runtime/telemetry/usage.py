"""Usage of a process: its CPU time, busy and idle, and its work for each pipe, reported once a minute."""

import time
from collections.abc import Callable
from typing import Final

from dataplane.ledger.usage import PipeUsage, UsageReport
from dataplane.runtime.telemetry.report_timer import ReportTimer

REPORT_S: Final = 60.0  # at most this much is lost if the process is killed; also the interval of active pipes' rows
_NS: Final = 1_000


class UsageBook:
    """Usage since the last report: `add` work of a pipe, `poll` when the process becomes idle or busy.

    CPU time counts from creation: a reused process has already reported what it spent before.
    """

    def __init__(
        self, cpu_ns: Callable[[], int] = time.process_time_ns, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._cpu_ns = cpu_ns
        self._read_ns = cpu_ns()
        self._idle = False
        self._spent_ns = {False: 0, True: 0}  # by idle
        self._pipes: dict[str, list[int]] = {}
        self._timer = ReportTimer(REPORT_S, now_s)

    def add(self, pipe: str, units: int, size_bytes: int, effort: int) -> None:
        """Count work for a pipe: units, their bytes, and the effort spent on them."""
        known = self._pipes.get(pipe)
        if known is None:
            self._pipes[pipe] = [units, size_bytes, effort, 0]
        else:
            known[0] += units
            known[1] += size_bytes
            known[2] += effort

    def refuse(self, pipe: str, events: int, effort: int) -> None:
        """Count events of a pipe that were refused because its tenant's quota was exceeded."""
        self.add(pipe, 0, 0, effort)
        self._pipes[pipe][3] += events

    def poll(self, *, idle: bool) -> None:
        """Note that the process is idle or busy from now on. Reads the clock, a system call, only at a change."""
        if idle != self._idle:
            self._charge()
            self._idle = idle

    @property
    def is_due(self) -> bool:
        """True if a report is due."""
        return self._timer.is_over

    def hasten(self) -> None:
        """Make the next report due now, because the process is about to end."""
        self._timer.hasten()

    def take_if_due(self) -> UsageReport | None:
        """Return the usage since the last report and reset it, or None if no report is due."""
        if not self.is_due:
            return None
        self._charge()
        self._timer.restart()
        pipes, self._pipes = self._pipes, {}
        usages = [PipeUsage(pipe, *figures) for pipe, figures in pipes.items()]
        return UsageReport(self._take_us(idle=False), self._take_us(idle=True), usages)

    def _charge(self) -> None:
        now_ns = self._cpu_ns()
        self._spent_ns[self._idle] += now_ns - self._read_ns
        self._read_ns = now_ns

    def _take_us(self, *, idle: bool) -> int:
        """Return whole microseconds, and keep the rest for the next report."""
        whole_us, self._spent_ns[idle] = divmod(self._spent_ns[idle], _NS)
        return whole_us
