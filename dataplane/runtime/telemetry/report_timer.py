"""Time of the next report of a book of counts, which a process keeps and reports now and then."""

import time
from collections.abc import Callable


class ReportTimer:
    """Timer that is over some seconds after its start, or after `restart`."""

    def __init__(self, every_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        """Start the timer. `now_s`: the clock."""
        self._every_s, self._now_s = every_s, now_s
        self.restart()

    @property
    def is_over(self) -> bool:
        """True if the report is due."""
        return self._now_s() >= self._due_s

    def hasten(self) -> None:
        """Make the next report due now, because the process is about to end."""
        self._due_s = self._now_s()

    def restart(self) -> None:
        """Wait for the next report, because one was taken."""
        self._due_s = self._now_s() + self._every_s
