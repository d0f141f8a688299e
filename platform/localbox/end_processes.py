"""Ends processes that the box started: in order, with a grace period, and those that a dead supervisor left."""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import psutil

from localbox.state import ProcessIdentity, ProgramState

MARK: Final = "PENSTOCK_BOX"  # in the environment of every process of the box
_ORPHAN_GRACE_S: Final = 5.0


def end_all(entries: Sequence[ProgramState]) -> list[str]:
    """Stop the programs by stage, the last stage first, all of a stage at once; return the names of those killed."""
    killed: list[str] = []
    by_stage = sorted(entries, key=lambda entry: entry.stage, reverse=True)
    for _, stage in groupby(by_stage, key=lambda entry: entry.stage):
        killed += _end_stage([entry for entry in stage if entry.process])
    return killed


def _end_stage(entries: Sequence[ProgramState]) -> list[str]:
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


def wait_gone(known: ProcessIdentity, *, until: float) -> bool:
    """Wait for the process to exit; return False if it has not before `until` (monotonic)."""
    while known.process() is not None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(known.pid, os.WNOHANG)  # reap our child, so that it does not stay a zombie
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def end_orphans(var: Path) -> int:
    """End every process with this box's mark, such as a Spark application whose keeper is gone; return their number."""
    orphans = marked(var)
    for known in orphans:
        known.send(signal.SIGTERM)
    until = time.monotonic() + _ORPHAN_GRACE_S
    for known in [known for known in orphans if not wait_gone(known, until=until)]:
        known.send(signal.SIGKILL)
        wait_gone(known, until=time.monotonic() + _ORPHAN_GRACE_S)
    return len(orphans)


def marked(var: Path) -> list[ProcessIdentity]:
    """Return the processes of the box at `var`, except this one and its ancestors."""
    me = psutil.Process()
    spared = {me.pid, *(parent.pid for parent in me.parents())}
    pids = [
        process.pid for process in psutil.process_iter() if process.pid not in spared and _mark(process) == str(var)
    ]
    return [known for pid in pids if (known := ProcessIdentity.of(pid))]


def _mark(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARK) if process.status() != psutil.STATUS_ZOMBIE else None
    except (psutil.Error, OSError):
        return None
