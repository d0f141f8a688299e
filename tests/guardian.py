"""Guardian that ends the processes of a test run once its runner has ended: normally, by a signal or by a crash.

A runner marks its environment, which every process that it starts inherits, including daemons with own sessions.
Its guardian runs in a session of its own, watches the runner and then ends all processes with the mark. A worker
of pytest-xdist is a runner within a runner: its mark begins with the mark of the process that started it.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import psutil

MARK: Final = "TEST_RUNNER"  # not PENSTOCK_...: tests remove such variables from the environment of processes
DATA: Final = "PENSTOCK_VAR"
SCRATCH: Final = Path(__file__).parents[1] / "var" / "test"
POLL_S: Final = 0.2
GRACE_S: Final = 5.0
LIMIT_S: Final = 30.0
_guardians: list["subprocess.Popen[bytes]"] = []  # keeps a reference, as the guardian outlives this process


def guard() -> None:
    """Mark this process's environment and start its guardian."""
    outer = os.environ.get(MARK)
    own = f"{os.getpid()}-{time.time_ns()}"
    os.environ[MARK] = f"{outer}/{own}" if outer else own
    unmarked = {name: value for name, value in os.environ.items() if name != MARK}
    command = [sys.executable, __file__, str(os.getpid()), os.environ[MARK]]
    started = subprocess.Popen(
        command, env=unmarked, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    )
    _guardians.append(started)


def marked(mark: str) -> set[psutil.Process]:
    """Return the living processes started below the runner with this mark, and their descendants.

    Some programs (Redis, Postgres) write their title over their environment: their parents identify them.
    """
    found = {one for one in psutil.process_iter() if _is_below(mark, _environ(one).get(MARK, ""))}
    return found | _descendants(found)


def _is_below(mark: str, other: str) -> bool:
    return other == mark or other.startswith(f"{mark}/")


def _environ(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def _descendants(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    found: set[psutil.Process] = set()
    for process in processes:
        with contextlib.suppress(psutil.Error):
            found.update(process.children(recursive=True))
    return found


def _children(pid: int) -> Iterator[psutil.Process]:
    """Yield the children of a process at little cost: only its own files in /proc are read."""
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                with contextlib.suppress(psutil.Error):
                    yield psutil.Process(int(child))


def end_marked(mark: str, children: Iterable[psutil.Process] = ()) -> set[str]:
    """End the marked processes, these children and all descendants; return the names of what ended.

    Sends SIGTERM, then SIGKILL to what is left, and removes the data of their boxes.
    """
    known, names, boxes = set(children), set[str](), set[Path]()
    began = time.monotonic()
    while (passed_s := time.monotonic() - began) < LIMIT_S:
        known |= marked(mark) | _descendants(known)
        left = [one for one in known if _is_ours(one)]
        if not left:
            break
        for process in left:
            names.add(_name(process))
            boxes.add(Path(_environ(process).get(DATA, "/")))
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGTERM if passed_s < GRACE_S else signal.SIGKILL)
        psutil.wait_procs(left, timeout=1.0)
    for box in boxes:
        if box.parent == SCRATCH:
            shutil.rmtree(box, ignore_errors=True)
    return names


def _is_ours(process: psutil.Process) -> bool:
    """Return True if the process is alive and not a guardian: guardians end automatically."""
    try:
        alive = process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        return alive and __file__ not in process.cmdline()
    except psutil.Error:
        return False


def _name(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:100]
    except psutil.Error:
        return str(process.pid)


def main(runner: int, mark: str) -> None:
    """Wait for the end of the runner, the parent process, then end what it left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    children: set[psutil.Process] = set()
    while True:
        found = set(_children(runner))
        if os.getppid() != runner:  # the runner has ended: `found` may be incomplete
            break
        children = found
        time.sleep(POLL_S)
    if ended := end_marked(mark, children):
        print(f"ended what the test runner {runner} left:", *sorted(ended), sep="\n  ", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
