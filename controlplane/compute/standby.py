"""A cell's standby application, which takes over when the cell's application ends without having been asked to.

It has Spark, its Python workers' daemon and the control table ready, and reads from a FIFO that only this process has
open for writing: a byte activates it, the end of the file ends it. So it never outlives the keeper, and it never takes
over without the keeper's record of it. It removes the FIFO's name when it is ready.
"""

import os
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Final

import structlog

from controlplane.compute.launcher import ApplicationLauncher
from controlplane.compute.port import DesiredApplication, RunningApplication
from controlplane.compute.processes import members, signal_all

START_AFTER_S: Final = 10.0  # the start of a JVM would slow that of the application's own lanes
READY_S: Final = 120.0  # a standby application that is not ready by then is ended
RETRY_S: Final = 30.0  # doubled after each further failure: an older release does not know the option
LONGEST_RETRY_S: Final = 600.0
END_S: Final = 10.0
log = structlog.get_logger(__name__)


class Standby:
    """At most one standby application of a cell, brought to the desired state in small steps; no step waits."""

    def __init__(self, cell: str, folder: Path, launcher: ApplicationLauncher) -> None:
        """`folder`: directory of the FIFOs. Those of earlier keepers, whose applications have ended, are removed."""
        self._cell, self._folder, self._launcher = cell, folder, launcher
        self._child: subprocess.Popen[bytes] | None = None
        self._desired: DesiredApplication | None = None
        self._fifo = -1
        self._failures = self._epoch = 0
        self._not_before = self._since = 0.0  # `_since`: when it was started, or began to end
        self.incarnation = ""
        for path in folder.glob(f"{cell}.*"):
            path.unlink(missing_ok=True)

    @property
    def exists(self) -> bool:
        """True while a standby application has a process, also one that is ending."""
        return self._child is not None

    def serves(self, desired: DesiredApplication | None) -> bool:
        """Return True if the standby application is ready to take over as `desired`."""
        return self._desired == desired and self.is_ready

    @property
    def is_ready(self) -> bool:
        """True if a standby application is ready to take over."""
        if self._child is None or self._fifo < 0:
            return False
        return self._child.poll() is None and not self._path().exists()

    def step(
        self, desired: DesiredApplication | None, running: RunningApplication | None, running_s: float, now: float
    ) -> None:
        """Start, end or replace the standby application. `running` has run for `running_s`; `now` is monotonic."""
        if self._child is None:
            if desired is not None and self._is_due(desired, running, running_s, now):
                self._start(desired, now)
        elif self._child.poll() is not None:
            self._ended(self._child.returncode, now)
        elif self._fifo < 0:
            if now - self._since > END_S:
                signal_all(members(self.incarnation), signal.SIGKILL)
        elif desired != self._desired:
            self._end(now)
        elif self.is_ready:
            self._failures = 0
        elif now - self._since > READY_S:
            log.warning("standby is not ready", cell=self._cell, incarnation=self.incarnation)
            self._failed(now)
            self._end(now)

    @property
    def pid(self) -> int:
        """Process id of the standby application; 0 if there is none."""
        return self._child.pid if self._child else 0

    def activate(self) -> "subprocess.Popen[bytes]":
        """Have the standby application take over, and return its process. Call it only if `serves`."""
        assert self._child is not None  # noqa: S101 (by contract)
        child = self._child
        os.write(self._fifo, b"!")  # if it has just ended, its record leads to the next start
        self._close_fifo()
        self._child, self._desired = None, None
        return child

    def _is_due(
        self, desired: DesiredApplication, running: RunningApplication | None, running_s: float, now: float
    ) -> bool:
        if desired.epoch != self._epoch:
            self._epoch, self._failures, self._not_before = desired.epoch, 0, 0.0
        is_current = running is not None and running.epoch == desired.epoch and running_s >= START_AFTER_S
        is_local = desired.master.startswith("local")  # on a cluster, the executors would be held twice
        return is_current and is_local and now >= self._not_before

    def _start(self, desired: DesiredApplication, now: float) -> None:
        self.incarnation, self._desired, self._since = uuid.uuid4().hex, desired, now
        path = self._path()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            os.mkfifo(path, 0o600)
            # Open for reading, too: opening it for writing alone would wait for the reader.
            self._fifo = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            self._child = self._launcher.start(desired, self.incarnation, path)
        except OSError as exc:
            self._close_fifo()
            self._failed(now)
            log.error("standby cannot be started", cell=self._cell, error=str(exc))
            return
        log.info("standby started", cell=self._cell, epoch=desired.epoch, incarnation=self.incarnation)

    def _end(self, now: float) -> None:
        self._close_fifo()
        self._since = now

    def _ended(self, code: int, now: float) -> None:
        signal_all(members(self.incarnation), signal.SIGKILL)
        if self._fifo >= 0:
            self._failed(now)
        log.info("standby ended", cell=self._cell, incarnation=self.incarnation, code=code, failures=self._failures)
        self._close_fifo()
        self._child, self._desired = None, None

    def _failed(self, now: float) -> None:
        self._not_before = now + min(RETRY_S * 2.0**self._failures, LONGEST_RETRY_S)
        self._failures += 1

    def _close_fifo(self) -> None:
        try:  # first: an application that opens it later would wait for a keeper
            self._path().unlink(missing_ok=True)
        except OSError as exc:  # such as a file system that has become read-only
            log.warning("FIFO cannot be removed", cell=self._cell, error=exc.strerror)
        if self._fifo >= 0:
            os.close(self._fifo)
        self._fifo = -1

    def _path(self) -> Path:
        return self._folder / f"{self._cell}.{self.incarnation}"
