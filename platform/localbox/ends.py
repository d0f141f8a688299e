"""Ending processes that the box started: in order, with grace, and whatever was left behind by a dead supervisor."""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
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


def end_orphans(var: Path) -> int:
    """End every process that carries this box's mark, such as a Spark application whose keeper is gone; how many."""
    orphans = marked(var)
    for known in orphans:
        known.send(signal.SIGTERM)
    until = time.monotonic() + _ORPHAN_GRACE_S
    for known in [known for known in orphans if not wait_gone(known, until=until)]:
        known.send(signal.SIGKILL)
        wait_gone(known, until=time.monotonic() + _ORPHAN_GRACE_S)
    return len(orphans)


def marked(var: Path) -> list[Known]:
    """Processes of the box at `var`, except ourselves and those that started us."""
    me = psutil.Process()
    spared = {me.pid, *(parent.pid for parent in me.parents())}
    pids = [
        process.pid for process in psutil.process_iter() if process.pid not in spared and _mark(process) == str(var)
    ]
    return [known for pid in pids if (known := Known.of(pid))]


def _mark(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARK) if process.status() != psutil.STATUS_ZOMBIE else None
    except (psutil.Error, OSError):
        return None
