"""The book of what a process spends: its CPU, busy and idle, and what it did for each pipe. Told once a minute."""

import time
from collections.abc import Callable
from typing import Final

from dataplane.ledger.usage import PipeUsage, Usage

TELL_S: Final = 60.0  # so much a process that is killed has not told; and so often every active pipe's row is written
_NS: Final = 1_000


class UsageBook:
    """`add` what was done for a pipe, `turn` when the process begins or ends to have something to do.

    CPU counts from the making of the book: a process that was used before has told that already.
    """

    def __init__(
        self, cpu_ns: Callable[[], int] = time.process_time_ns, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._cpu_ns, self._now_s = cpu_ns, now_s
        self._read_ns = cpu_ns()
        self._idle = False
        self._spent_ns = {False: 0, True: 0}  # by whether it was idle
        self._pipes: dict[str, list[int]] = {}
        self._due_s = now_s() + TELL_S

    def add(self, pipe: str, units: int, size_bytes: int, effort: int) -> None:
        """This was done for a pipe."""
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

    def turn(self, *, idle: bool) -> None:
        """From here on nothing is under way, or something is. Reads the clock, a system call, only if that is new."""
        if idle != self._idle:
            self._charge()
            self._idle = idle

    @property
    def is_due(self) -> bool:
        """Whether it is time to tell."""
        return self._now_s() >= self._due_s

    def hasten(self) -> None:
        """The process is about to end: tell what there is."""
        self._due_s = self._now_s()

    def take_if_due(self) -> Usage | None:
        """What was spent since the last time, if it is time to tell."""
        if not self.is_due:
            return None
        self._charge()
        self._due_s = self._now_s() + TELL_S
        pipes, self._pipes = self._pipes, {}
        told = [PipeUsage(pipe, *figures) for pipe, figures in pipes.items()]
        return Usage(self._take_us(idle=False), self._take_us(idle=True), told)

    def _charge(self) -> None:
        now_ns = self._cpu_ns()
        self._spent_ns[self._idle] += now_ns - self._read_ns
        self._read_ns = now_ns

    def _take_us(self, *, idle: bool) -> int:
        """Whole microseconds; the rest is told with the next ones."""
        whole_us, self._spent_ns[idle] = divmod(self._spent_ns[idle], _NS)
        return whole_us
