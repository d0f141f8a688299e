"""A box as an object: with its own var/ and ports next to other boxes, and methods to kill one of its programs."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from localbox import ports
from localbox.settings import PORTS, ROOT, BoxSettings, settings_from
from localbox.state import ProgramState
from localbox.supervisor import living

_OURS = (
    "DATABASE_URL",
    "REDIS_URL",
    "PENSTOCK_KAFKA",
    "PENSTOCK_KAFKA_SETTINGS",
    "PENSTOCK_KAFKA_TLS",
    "PENSTOCK_KAFKA_BROKERS",
    "PENSTOCK_WEB_URL",
    "PENSTOCK_INGEST_URL",
    "PENSTOCK_BOX",
)


def free_ports() -> dict[str, str]:
    """Return a free port for every port variable of the box."""
    return {variable.name: str(port) for variable, port in zip(PORTS, ports.free_ports(len(PORTS)), strict=True)}


class Box:
    """A box next to others: `with Box(tmp_path / "var", only=["kafka"]) as box: ...`.

    `env` is the environment of its processes, which a test's own clients should use, too.
    """

    def __init__(
        self, var: Path, *, only: Sequence[str] = (), extra: Sequence[str] = (), env: Mapping[str, str] | None = None
    ) -> None:
        base = {name: value for name, value in os.environ.items() if name not in _OURS}
        given = base | free_ports() | {"PENSTOCK_VAR": str(var)} | dict(env or {})
        self.settings: BoxSettings = settings_from(given, dotenv=None)
        self.env = self.settings.env
        self.var = var
        self.given = given
        self._only = list(only)
        self._extra = list(extra)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the box and wait until it is ready. Raises RuntimeError with the box's output if it does not start."""
        only = ["--only", ",".join(self._only)] if self._only else []
        extra = ["--with", ",".join(self._extra)] if self._extra else []
        answer = self.command("up", "--detach", *only, *extra)
        if answer.returncode:
            self.stop()
            raise RuntimeError(f"the box did not start:\n{answer.stdout}{answer.stderr}")

    def stop(self) -> None:
        """Stop the box, in any state."""
        self.command("down")

    def entry(self, name: str) -> ProgramState:
        """Return the last state of a program that the supervisor wrote. Raises LookupError if there is none."""
        snapshot = living(self.settings)
        for entry in snapshot.programs if snapshot else []:
            if entry.name == name:
                return entry
        raise LookupError(f"{name}: the box has no such program, or does not run")

    def pid(self, name: str) -> int:
        """Return the pid of the program's running process. Raises LookupError while it has none."""
        known = self.entry(name).process
        if known is None or known.process() is None:
            raise LookupError(f"{name} has no process at this moment")
        return known.pid

    def kill(self, name: str, number: int = signal.SIGKILL) -> int:
        """Send a signal, kill -9 by default; return the pid that got it. The supervisor restarts the program."""
        pid = self.pid(name)
        os.kill(pid, number)
        return pid

    def wait_ready(self, name: str, *, not_pid: int | None = None, timeout_s: float = 60.0) -> int:
        """Wait until a program is ready, as another process than `not_pid`; return its pid. Raises TimeoutError."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            with contextlib.suppress(LookupError):  # the supervisor may not have written anything yet
                pid = self.pid(name)
                if self.entry(name).state == "ready" and pid != not_pid:
                    return pid
            time.sleep(0.05)
        raise TimeoutError(f"{name} is not ready after {timeout_s:g} s:\n{self.log(name)[-2000:]}")

    def log(self, name: str) -> str:
        """Return a program's whole log, "" if it has none."""
        path = self.settings.logs / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def run(self, *command: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a command with the box's environment, in the repository's root."""
        return subprocess.run(
            command, cwd=ROOT, env=self.env, capture_output=True, text=True, timeout=timeout_s, check=False
        )

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `python -m localbox ...` on this box, as a person would."""
        command = [sys.executable, "-m", "localbox", *words]
        env = self.given | {"PYTHONPATH": self.env["PYTHONPATH"]}
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
