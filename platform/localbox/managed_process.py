"""One program under the supervisor: its process, its readiness, and its restarts."""

import contextlib
import os
import signal
import subprocess
import time
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import IO, Final

from localbox.errors import BoxError
from localbox.program import Program
from localbox.settings import ROOT
from localbox.state import ProcessIdentity, ProgramState

BACKOFF_FIRST_S: Final = 0.5
BACKOFF_MOST_S: Final = 30.0
STEADY_S: Final = 60.0  # after this long, the next failure starts from the first back-off again
PROBE_EVERY_S: Final = 0.1
STABLE_S: Final = 1.0  # a program without a probe counts as ready after this long
MOST_EARLY_EXITS: Final = 5  # before it was ever ready: a restart does not repair such a program


def backoff_s(failures: int) -> float:
    """Return the back-off in seconds: 0.5, 1, 2, ... 30 after the first, second, third ... failure in a row."""
    return min(BACKOFF_FIRST_S * 2.0 ** min(failures - 1, 16), BACKOFF_MOST_S)


class ManagedProcess:
    """State machine of one program; `step` is called often and never blocks."""

    def __init__(
        self, program: Program, *, env: dict[str, str], log: Path, pool: Executor, patient: bool = False
    ) -> None:
        """`patient`: a program that does not come up at first does not stop the box."""
        self.program = program
        self.state = "waiting"
        self.why = ""
        self.restarts = 0
        self.ready_s: float | None = None
        self.version = ""
        self.popen: subprocess.Popen[bytes] | None = None
        self.known: ProcessIdentity | None = None
        self._box_env = env
        self._log = log
        self._pool = pool
        self._pending: Future[str | None] | None = None
        self._prepared = program.prepare is None
        self._began = 0.0
        self._next = 0.0
        self._failures = 0
        self._was_ready = patient or program.patient
        self._ending = False

    @property
    def is_up(self) -> bool:
        """True if the process is ready, or did its work and ended."""
        return self.state in ("ready", "done")

    def step(self, *, may_start: bool) -> bool:
        """Take the next step, if any; return True if the state changed. Raises BoxError if the program does not start.

        may_start: all programs that this one waits for are ready
        """
        before = (self.state, self.known, self.why)
        if self.state == "waiting" and may_start:
            self._begin()
        if self.state == "preparing":
            self._finish_preparing()
        if self.state == "backoff" and time.monotonic() >= self._next:
            self._begin()
        if self.state in ("starting", "ready", "draining"):
            self._watch()
        if self._ending:
            self._see_off()
        return before != (self.state, self.known, self.why)

    def end(self) -> None:
        """Drain and stop the program: its state is `gone` once it has exited with code 0.

        A program that exits with another code is restarted and drained again: no other process would report the events
        that it has accepted.
        """
        self._ending = True

    def replace(self, program: Program) -> None:
        """Run another program of this name: the present process drains, and the next one starts when it has exited.

        A process that is not ready is ended, too: its program may never become ready.
        """
        self.program = program
        self._prepared = program.prepare is None
        self._was_ready = self._was_ready or program.patient
        self._failures = 0
        if self.state == "backoff":
            self._next = 0.0
        elif self.state in ("starting", "ready"):
            self._drain()

    def _see_off(self) -> None:
        """Take the next step of stopping. The program gets its signal once it is ready: before, that would kill it."""
        if self.state in ("waiting", "preparing"):
            self.state = "gone"
        elif self.state == "ready":
            self._drain()

    def _drain(self) -> None:
        if self.known:
            self.state, self._next = "draining", time.monotonic() + self.program.stop_grace_s
            self.known.send(self.program.stop_signal)

    def entry(self) -> ProgramState:
        """Return the program's state as the snapshot stores it."""
        p = self.program
        return ProgramState(
            name=p.name,
            stage=p.stage,
            state=self.state,
            process=self.known,
            version=self.version,
            port=p.port,
            ready_s=self.ready_s,
            restarts=self.restarts,
            stop_signal=p.stop_signal,
            stop_grace_s=p.stop_grace_s,
            why=self.why,
        )

    def log_tail(self, lines: int = 20) -> str:
        """Return the last lines of the program's log."""
        if not self._log.exists():
            return "(no log)"
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])

    def _begin(self) -> None:
        self._began = time.monotonic()
        if self._prepared:
            self._start()
            return
        self.state = "preparing"
        self._pending = self._pool.submit(self._prepare)

    def _prepare(self) -> str | None:
        if self.program.prepare:
            self.program.prepare()
        return None

    def _finish_preparing(self) -> None:
        if self._pending and self._pending.done():
            self._pending.result()  # raises the error of `prepare`
            self._pending, self._prepared = None, True
            self._start()

    def _start(self) -> None:
        p = self.program
        if p.version and not self.version:
            self.version = p.version()
        self.state = "starting"
        if p.command is None:
            return
        self._began = time.monotonic()
        with self._open_log() as log:
            # its own session: Ctrl-C reaches only the supervisor, and no program exits with a terminal
            self.popen = subprocess.Popen(
                p.command,
                env=self._box_env | p.env,
                cwd=p.cwd or ROOT,
                user=p.user,
                group=p.user,
                extra_groups=[] if p.user else None,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.known = ProcessIdentity.of(self.popen.pid)

    def _open_log(self) -> IO[bytes]:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._log.touch(mode=0o600)  # logs contain the demo's key and sign-in links
        return self._log.open("ab")

    def _watch(self) -> None:
        if self.popen is not None and (code := self.popen.poll()) is not None:
            self._exited(code)
        elif self.state == "draining":
            if self.known and time.monotonic() >= self._next:
                self.known.send(signal.SIGKILL, group=True)
        elif self.state == "starting" and not self.program.one_shot:
            self._ask()
        elif self._failures and time.monotonic() - self._began > STEADY_S:
            self._failures = 0

    def _exited(self, code: int) -> None:
        if self.popen:
            _end_group(self.popen.pid)
        self.popen, self.known, self._pending = None, None, None
        if self.state == "draining" and not self._ending:
            self._begin()  # the next program of this name; it reports what this process has not reported
            return
        if self._ending and self.state == "draining" and code == 0:
            self.state, self.why = "gone", ""
            return
        if self.program.one_shot and code == 0:
            self.state, self.why = "done", ""
            self._mark_ready()
            return
        self._failures += 1
        self.restarts += 1
        if not self._was_ready and self._failures >= MOST_EARLY_EXITS:
            self.state = "failed"
            raise BoxError(f"{self.program.name} does not start. The end of {self._log}:\n{self.log_tail()}")
        wait_s = backoff_s(self._failures)
        self.state, self._next = "backoff", time.monotonic() + wait_s
        self.why = f"ended with {_in_words(code)}, restarts in {wait_s:g} s"

    def _ask(self) -> None:
        if self.program.probe is None:
            if time.monotonic() - self._began >= STABLE_S:
                self._mark_ready()
        elif self._pending is None:
            if time.monotonic() >= self._next:
                self._pending = self._pool.submit(self.program.probe)
        elif self._pending.done():
            why_not_ready, self._pending = self._pending.result(), None
            self._next = time.monotonic() + PROBE_EVERY_S
            self.why = why_not_ready or ""
            if why_not_ready is None:
                self._mark_ready()

    def _mark_ready(self) -> None:
        self.state = "done" if self.program.one_shot else "ready"
        self.ready_s = time.monotonic() - self._began
        self._was_ready = True


def _end_group(leader: int) -> None:
    """End the rest of an exited leader's process group, such as granian's worker, which would keep serving requests."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _in_words(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
