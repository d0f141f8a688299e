"""Ending processes that the box started: in order, with grace, and whatever was left behind by a dead supervisor."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import psutil

from localbox.state import Entry, Known

MARK: Final = "PENSTOCK_BOX"  # in the environment of every process of the box
_ORPHAN_GRACE_S: Final = 5.0


def end_all(entries: Sequence[Entry]) -> list[str]:
    """Stop by stage, the last one first, all of a stage at once. Returns the names that had to be killed."""
    killed: list[str] = []
    by_stage = sorted(entries, key=lambda entry: entry.stage, reverse=True)
    for _, stage in groupby(by_stage, key=lambda entry: entry.stage):
        killed += _end_stage([entry for entry in stage if entry.process])
    return killed


def _end_stage(entries: Sequence[Entry]) -> list[str]:
    started = time.monotonic()
    for entry in entries:
        if entry.process:
            entry.process.send(entry.stop_signal)
    killed = []
    for entry in entries:
        if entry.process and not wait_gone(entry.process, until=started + entry.stop_grace_s):
            entry.process.send(signal.SIGKILL, group=True)
            wait_gone(entry.process, until=time.monotonic() + 5)
            killed.append(entry.name)
    return killed


def wait_gone(known: Known, *, until: float) -> bool:
    """Whether the process is gone before `until` (monotonic)."""
    while known.process() is not None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(known.pid, os.WNOHANG)  # ours: do not leave a zombie
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def end_orphans(var: Path) -> list[str]:
    """End every process that carries this box's mark, such as a Spark application whose keeper is gone."""
    orphans = marked(var)
    for process in orphans:
        _signal(process, signal.SIGTERM)
    _, alive = psutil.wait_procs(orphans, timeout=_ORPHAN_GRACE_S)
    for process in alive:
        _signal(process, signal.SIGKILL)
    psutil.wait_procs(alive, timeout=_ORPHAN_GRACE_S)
    return [f"{process.pid}" for process in orphans]


def marked(var: Path) -> list[psutil.Process]:
    """Processes of the box at `var`, except ourselves and those that started us."""
    me = psutil.Process()
    spared = {me.pid, *(parent.pid for parent in me.parents())}
    return [p for p in _processes() if p.pid not in spared and _mark(p) == str(var)]


def _processes() -> Iterable[psutil.Process]:
    return psutil.process_iter()


def _mark(process: psutil.Process) -> str | None:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.environ().get(MARK)
    except (psutil.Error, OSError):
        return None


def _signal(process: psutil.Process, number: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)
