"""One cell's application as the keeper holds it: started, adopted, asked to end, ended, started again.

nothing runs  --wish, back-off over-->  RUN  --wish gone or of another epoch-->  DRAIN (stop record, 35 s)
     ^                                   |                                         |
     |                                   | its first process is gone               v
     +------ no process is left ---------+------------------>  TERM (5 s)  -->  KILL

An application that has begun no lane yet is not asked: RUN goes to TERM at once. A wish of another epoch waits for no
back-off: what failed was not it, and may be a release that it takes the place of.
"""

import signal
import subprocess
import uuid
from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Protocol

import msgspec
import structlog

from controlplane.compute.files import BrokenFileError, ComputeFiles
from controlplane.compute.port import Desired, Running
from controlplane.compute.processes import (
    created_at,
    find_leader,
    is_alive,
    members,
    runs_python_workers,
    signal_all,
)

DRAIN_S: Final = 35.0
TERM_S: Final = 5.0
STABLE_S: Final = 60.0
LONGEST_WAIT_S: Final = 30.0
log = structlog.get_logger(__name__)


class Launcher(Protocol):
    """Starts one incarnation of an application, with PENSTOCK_INCARNATION in its environment."""

    def start(self, desired: Desired, incarnation: str) -> "subprocess.Popen[bytes]":
        """Start it in a session of its own."""
        ...


class Stage(Enum):
    """How far the end of a running application has been brought about."""

    RUN = auto()
    DRAIN = auto()
    TERM = auto()
    KILL = auto()


def wait_after(failures: int, chance: float) -> float:
    """Seconds to wait after so many failures in a row: 1, 2, 4 ... 30, give or take a quarter by `chance` (0..1)."""
    base: float = min(2.0 ** (failures - 1), LONGEST_WAIT_S)
    return base * (0.75 + chance / 2)


class KeptCell:
    """Brings one cell's application to what is wished, a little with each step; no step waits."""

    def __init__(
        self,
        cell: str,
        files: ComputeFiles,
        launcher: Launcher,
        ask_to_stop: Callable[[str, str], None],
        chance: Callable[[], float],
    ) -> None:
        self._files = files
        self._launcher = launcher
        self._ask_to_stop = ask_to_stop
        self._chance = chance
        self._cell = cell
        self._child: subprocess.Popen[bytes] | None = None
        self._stage = Stage.RUN
        self._since = 0.0  # when the stage, or the run, began
        self._failures = 0
        self._asked = False
        self._not_before = 0.0
        self.starts = 0
        self.running = self._adopt()
        self._epoch = self.running.epoch if self.running else 0  # of the application that was started last

    def step(self, wish: Desired | None, now: float) -> None:
        """Look, and do the next small thing. `now` is monotonic."""
        if self.running is None:
            if wish is not None and (now >= self._not_before or wish.epoch != self._epoch):
                self._start(wish, now)
        elif not self._leader_lives(self.running):
            self._sweep(self.running, now)
        elif self._stage is Stage.RUN:
            self._watch(self.running, wish, now)
        elif self._stage is Stage.DRAIN and now - self._since > DRAIN_S:
            self._signal(Stage.TERM, self.running, now)
        elif self._stage is not Stage.DRAIN and now - self._since > TERM_S:
            self._signal(Stage.KILL, self.running, now)

    def _adopt(self) -> Running | None:
        """What an earlier keeper started, if any of it still runs."""
        try:
            noted = self._files.running(self._cell)
        except BrokenFileError:
            noted = None
        if noted is None:
            return None
        self.starts = noted.starts
        if not noted.pid and (leader := find_leader(noted.incarnation)) is not None:
            # The keeper died between starting it and writing its pid down.
            noted = msgspec.structs.replace(noted, pid=leader.pid, created=leader.create_time())
            self._files.started(noted)
        log.info("adopted", cell=self._cell, epoch=noted.epoch, incarnation=noted.incarnation, pid=noted.pid)
        return noted

    def _start(self, wish: Desired, now: float) -> None:
        incarnation = uuid.uuid4().hex
        self.starts += 1
        if wish.epoch != self._epoch:
            self._epoch, self._failures = wish.epoch, 0
        fresh = Running(
            self._cell, wish.epoch, incarnation, 0, 0.0, self.starts, master=wish.master, release=wish.release
        )
        # Written before the start as well: a keeper killed in between finds the application by its incarnation.
        self._files.started(fresh)
        try:
            self._child = self._launcher.start(wish, incarnation)
        except OSError as exc:
            self._failed(now)
            log.error("cannot be started", cell=self._cell, error=str(exc))
            return
        pid = self._child.pid
        self.running = msgspec.structs.replace(fresh, pid=pid, created=created_at(pid))
        self._files.started(self.running)
        self._stage, self._since, self._asked = Stage.RUN, now, False
        log.info("started", cell=self._cell, epoch=wish.epoch, release=wish.release, incarnation=incarnation, pid=pid)

    def _leader_lives(self, running: Running) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        return is_alive(running.pid, running.created)

    def _watch(self, running: Running, wish: Desired | None, now: float) -> None:
        if wish is None or wish.epoch != running.epoch:
            self._end(running, now)
        elif now - self._since > STABLE_S:
            self._failures = 0

    def _end(self, running: Running, now: float) -> None:
        """Have its lanes drain. One that is still starting has none: nothing to wait for, and nothing to lose."""
        self._asked = True
        if running.master.startswith("local") and not runs_python_workers(running.incarnation):
            self._signal(Stage.TERM, running, now)
            return
        self._stage, self._since = Stage.DRAIN, now
        self._ask_to_stop(self._cell, running.incarnation)
        log.info("asked to stop", cell=self._cell, epoch=running.epoch, incarnation=running.incarnation)

    def _sweep(self, running: Running, now: float) -> None:
        """The first process is gone: end what it left behind, then count it as ended."""
        if not members(running.incarnation):
            self._ended(running, now)
        elif self._stage in (Stage.RUN, Stage.DRAIN):
            self._signal(Stage.TERM, running, now)
        elif now - self._since > TERM_S:
            self._signal(Stage.KILL, running, now)

    def _signal(self, stage: Stage, running: Running, now: float) -> None:
        self._stage, self._since = stage, now
        left = members(running.incarnation)
        signal_all(left, signal.SIGTERM if stage is Stage.TERM else signal.SIGKILL)
        log.warning("signalled", cell=self._cell, stage=stage.name, pids=[process.pid for process in left])

    def _ended(self, running: Running, now: float) -> None:
        code = self._child.returncode if self._child is not None else None
        self._files.ended(self._cell)
        self.running, self._child, self._stage = None, None, Stage.RUN
        if self._asked:
            self._failures, self._not_before = 0, now
        else:
            self._failed(now)
        wait_s = round(self._not_before - now, 1)
        log.info("ended", cell=self._cell, incarnation=running.incarnation, code=code, asked=self._asked, wait_s=wait_s)

    def _failed(self, now: float) -> None:
        self._failures += 1
        self._not_before = now + wait_after(self._failures, self._chance())
