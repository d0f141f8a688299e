"""State file of the supervisor: every process by pid and start time, so that a reused pid is recognised."""

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import psutil
from msgspec import Struct


class ProcessIdentity(Struct, frozen=True):
    """A process that cannot be confused with a later one of the same pid."""

    pid: int
    started_s: float  # after boot: a time of the system clock would change when the clock is set

    @classmethod
    def of(cls, pid: int) -> "ProcessIdentity | None":
        """Return the identity of the process with this pid, or None if there is none now."""
        try:
            return cls(pid, _started_s(psutil.Process(pid)))
        except psutil.NoSuchProcess:
            return None

    def process(self) -> psutil.Process | None:
        """Return the running process with this identity, or None; a zombie counts as gone."""
        try:
            process = psutil.Process(self.pid)
            same = abs(_started_s(process) - self.started_s) < 0.05
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None

    def send(self, number: int, *, group: bool = False) -> None:
        """Send a signal to the process, or to the process group that it leads; do nothing if it is gone."""
        if self.process() is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number) if group else os.kill(self.pid, number)


def _started_s(process: psutil.Process) -> float:
    """Return the seconds between boot and the start of the process. Raises psutil.NoSuchProcess.

    psutil adds the time of boot, which it reads each time and which moves with the system clock. This removes it.
    """
    while True:
        boot_s = psutil.boot_time()
        created_s = process.create_time()
        if psutil.boot_time() == boot_s:
            return round(created_s - boot_s, 3)


class ProgramState(Struct, frozen=True):
    """State of one program, as the supervisor sees it."""

    name: str
    stage: int
    state: str  # waiting | preparing | starting | ready | done | backoff | draining | failed
    process: ProcessIdentity | None = None
    version: str = ""
    port: int | None = None
    ready_s: float | None = None  # from its start
    restarts: int = 0
    stop_signal: int = signal.SIGTERM
    stop_grace_s: float = 10.0
    why: str = ""


class BoxSnapshot(Struct, frozen=True):
    """State of the whole box at one moment."""

    supervisor: ProcessIdentity
    ready: bool
    ready_s: float | None
    programs: list[ProgramState]


def write_snapshot(path: Path, snapshot: BoxSnapshot) -> None:
    """Replace the file atomically: a reader sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}.new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(snapshot), indent=1))
    new.replace(path)


def read_snapshot(path: Path) -> BoxSnapshot | None:
    """Read a snapshot; None if the box never ran here or the file is malformed."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=BoxSnapshot)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def last_json_line(path: Path) -> dict[str, Any]:
    """Return the last line of a log that is a JSON object, or {}."""
    if path.exists():
        for line in reversed(path.read_text(errors="replace").splitlines()):
            with contextlib.suppress(json.JSONDecodeError):
                found = json.loads(line)
                if isinstance(found, dict):
                    return found
    return {}
