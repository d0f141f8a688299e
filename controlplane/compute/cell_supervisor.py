"""Supervises one cell's application for the keeper: starts it, adopts it, drains it, ends it, restarts it.

nothing runs  --desired, back-off over-->  RUN  --not desired, or another epoch-->  DRAIN (stop record, 45 s)
     ^                                      |                                       |
     |                                      | its first process is gone             v
     +------ no process is left ------------+------------------>  TERM (5 s)  -->  KILL

An application that has begun no lane yet is not drained: RUN changes to TERM at once. A desired application of another
epoch waits for no back-off: the failures were not its own, and may be those of a release that it replaces. A standby
application waits for none either.
"""

import signal
import subprocess
import uuid
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

import msgspec
import structlog

from controlplane.compute.files import ComputeFiles, StateFileError
from controlplane.compute.launcher import ApplicationLauncher
from controlplane.compute.port import DesiredApplication, RunningApplication
from controlplane.compute.processes import find_leader, is_alive, members, runs_python_workers, signal_all
from controlplane.compute.standby import Standby

DRAIN_S: Final = 45.0  # 5 s for the stop record, 25 s for the lanes, and the end of the Spark session on a busy host
TERM_S: Final = 5.0
STABLE_S: Final = 60.0
LONGEST_WAIT_S: Final = 30.0
log = structlog.get_logger(__name__)


class StopStage(Enum):
    """Stages of stopping an application."""

    RUN = auto()
    DRAIN = auto()
    TERM = auto()
    KILL = auto()


def wait_after(failures: int, chance: float) -> float:
    """Return seconds to wait after so many failures in a row: 1, 2, 4 ... 30, +/- a quarter by `chance` (0..1)."""
    base: float = min(2.0 ** (failures - 1), LONGEST_WAIT_S)
    return base * (0.75 + chance / 2)


class CellSupervisor:
    """Brings one cell's application to the desired state in small steps; no step waits."""

    def __init__(
        self,
        cell: str,
        files: ComputeFiles,
        launcher: ApplicationLauncher,
        request_stop: Callable[[str, str], None],
        chance: Callable[[], float],
        *,
        standby: Standby | None = None,
    ) -> None:
        """`standby`: keeps the cell's standby application, if it shall have one."""
        self._standby = standby
        self._files = files
        self._launcher = launcher
        self._request_stop = request_stop
        self._chance = chance
        self._cell = cell
        self._child: subprocess.Popen[bytes] | None = None
        self._stage = StopStage.RUN
        self._since = -1.0  # when the stage, or the run, began; -1 until the first step of an adopted application
        self._failures = 0
        self._asked = False
        self._not_before = 0.0
        self.starts = 0
        self.running = self._adopt()
        self._epoch = self.running.epoch if self.running else 0  # of the application that was started last

    def step(self, desired: DesiredApplication | None, now: float) -> None:
        """Check the application and take the next step towards `desired`; None: no application. `now` is monotonic."""
        if self._since < 0:
            self._since = now
        if self.running is not None:
            self._step_running(self.running, desired, now)
        if self.running is None and desired is not None:
            if self._standby is not None and self._standby.serves(desired):
                self._take_over(self._standby, desired, now)
            elif now >= self._not_before or desired.epoch != self._epoch:
                self._start(desired, now)
        if self._standby is not None:
            self._standby.step(desired, self.running, now - self._since, now)

    @property
    def has_standby(self) -> bool:
        """True if a standby application is ready to take over."""
        return self._standby is not None and self._standby.is_ready

    @property
    def is_idle(self) -> bool:
        """True if no application of the cell has a process."""
        return self.running is None and not (self._standby and self._standby.exists)

    def _step_running(self, running: RunningApplication, desired: DesiredApplication | None, now: float) -> None:
        if not self._leader_lives(running):
            self._sweep(running, now)
        elif self._stage is StopStage.RUN:
            self._watch(running, desired, now)
        elif self._stage is StopStage.DRAIN and now - self._since > DRAIN_S:
            self._signal(StopStage.TERM, running, now)
        elif self._stage is not StopStage.DRAIN and now - self._since > TERM_S:
            self._signal(StopStage.KILL, running, now)

    def _adopt(self) -> RunningApplication | None:
        """Return the application that an earlier keeper started, according to its file."""
        try:
            stored = self._files.running(self._cell)
        except StateFileError:
            stored = None
        if stored is None:
            return None
        self.starts = stored.starts
        if not stored.pid and (leader := find_leader(stored.incarnation)) is not None:
            # The earlier keeper exited between starting the application and storing its pid.
            stored = msgspec.structs.replace(stored, pid=leader.pid)
            self._files.started(stored)
        log.info("adopted", cell=self._cell, epoch=stored.epoch, incarnation=stored.incarnation, pid=stored.pid)
        return stored

    def _take_over(self, standby: Standby, desired: DesiredApplication, now: float) -> None:
        fresh = self._next(desired, standby.incarnation)
        self.running = msgspec.structs.replace(fresh, pid=standby.pid)
        # Written before it is activated: a keeper killed in between finds it, and that it has ended.
        self._files.started(self.running)
        self._child = standby.activate()
        self._begin(now, "standby took over", self.running)

    def _start(self, desired: DesiredApplication, now: float) -> None:
        fresh = self._next(desired, uuid.uuid4().hex)
        # Written before the start as well: a keeper killed in between finds the application by its incarnation.
        self._files.started(fresh)
        try:
            self._child = self._launcher.start(desired, fresh.incarnation)
        except OSError as exc:
            self._failed(now)
            log.error("cannot be started", cell=self._cell, error=str(exc))
            return
        self.running = msgspec.structs.replace(fresh, pid=self._child.pid)
        self._files.started(self.running)
        self._begin(now, "started", self.running)

    def _next(self, desired: DesiredApplication, incarnation: str) -> RunningApplication:
        """Count a start; return the application without its pid."""
        self.starts += 1
        if desired.epoch != self._epoch:
            self._epoch, self._failures = desired.epoch, 0
        return RunningApplication(
            self._cell, desired.epoch, incarnation, 0, self.starts, master=desired.master, release=desired.release
        )

    def _begin(self, now: float, event: str, running: RunningApplication) -> None:
        self._stage, self._since, self._asked = StopStage.RUN, now, False
        log.info(
            event, cell=self._cell, epoch=running.epoch, release=running.release, incarnation=running.incarnation,
            pid=running.pid,
        )  # fmt: skip

    def _leader_lives(self, running: RunningApplication) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        return is_alive(running.pid, running.incarnation)

    def _watch(self, running: RunningApplication, desired: DesiredApplication | None, now: float) -> None:
        if desired is None or desired.epoch != running.epoch:
            self._end(running, now)
        elif now - self._since > STABLE_S:
            self._failures = 0

    def _end(self, running: RunningApplication, now: float) -> None:
        """Have its lanes drain. An application that is still starting has none, so it is terminated at once."""
        self._asked = True
        if running.master.startswith("local") and not runs_python_workers(running.incarnation):
            self._signal(StopStage.TERM, running, now)
            return
        self._stage, self._since = StopStage.DRAIN, now
        self._request_stop(self._cell, running.incarnation)
        log.info("asked to stop", cell=self._cell, epoch=running.epoch, incarnation=running.incarnation)

    def _sweep(self, running: RunningApplication, now: float) -> None:
        """End the processes that outlived the application's first process, then count the application as ended."""
        if not members(running.incarnation):
            self._ended(running, now)
        elif self._stage in (StopStage.RUN, StopStage.DRAIN):
            self._signal(StopStage.TERM, running, now)
        elif now - self._since > TERM_S:
            self._signal(StopStage.KILL, running, now)

    def _signal(self, stage: StopStage, running: RunningApplication, now: float) -> None:
        self._stage, self._since = stage, now
        left = members(running.incarnation)
        signal_all(left, signal.SIGTERM if stage is StopStage.TERM else signal.SIGKILL)
        log.warning("signalled", cell=self._cell, stage=stage.name, pids=[process.pid for process in left])

    def _ended(self, running: RunningApplication, now: float) -> None:
        code = self._child.returncode if self._child is not None else None
        self._files.ended(self._cell)
        self.running, self._child, self._stage = None, None, StopStage.RUN
        if self._asked:
            self._failures, self._not_before = 0, now
        else:
            self._failed(now)
        wait_s = round(self._not_before - now, 1)
        log.info("ended", cell=self._cell, incarnation=running.incarnation, code=code, asked=self._asked, wait_s=wait_s)

    def _failed(self, now: float) -> None:
        self._failures += 1
        self._not_before = now + wait_after(self._failures, self._chance())
