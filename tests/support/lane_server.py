"""Lanes in processes of their own, quick to start: `python -m tests.support.lane_server` forks one for each Order it
reads.

A lane can be ordered to kill itself, or to raise an exception, just before a line of the code is run, once it has
partitions, and to record every line that it ran. When it has ended, an Ended is written.
"""

import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from dataplane.jobs.lanes import run_until_exit
from dataplane.names import LaneKind
from dataplane.runtime.lanes.context import LaneIdentity
from dataplane.runtime.settings import settings_from
from localbox.settings import ROOT
from tests.support.failures import FAILURES

ROOM = f"{ROOT / 'dataplane'}{os.sep}"
BEGINS = "Rebalance.assigned"  # messages may arrive from here on
LOOPS = "Lane._pass"  # only lines of the loop are listed
BACKGROUND = "retrier/"  # redrives and early releases start earlier: they belong to no partition


class Order(msgspec.Struct):
    """One lane to run.

    kill_at: file (relative to dataplane/) and line before which it is killed
    raises:  the name of the failure to raise there instead (tests.support.failures)
    nth:     at which execution of that line
    log:     a file for its output; by default lane.log in PENSTOCK_VAR
    seen:    where to list the lines that were run
    """

    name: str
    cell: str
    kind: LaneKind
    incarnation: str
    env: dict[str, str]
    kill_at: tuple[str, int] | None = None
    nth: int = 1
    seen: str = ""
    raises: str = ""
    log: str = ""


class Ended(msgspec.Struct):
    """End of a lane: 0 drained, -9 killed, 3 failed with an outcome, 4 failed by an exception."""

    name: str
    code: int


class Tracer:
    """Tracer of the lines of dataplane/ once the lane has partitions."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._left = order.nth
        self._begun = False
        self.seen: set[tuple[str, int]] = set()

    def __call__(self, frame: FrameType, _event: str, _argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        self._begun = self._begun or code.co_qualname == (LOOPS if self._order.seen else BEGINS)
        if not code.co_filename.startswith(ROOM):
            return None
        file = code.co_filename.removeprefix(ROOM)
        if not self._begun and not file.startswith(BACKGROUND):
            return None
        target = self._order.kill_at
        if not self._order.seen and (target is None or target[0] != file):
            return None

        def line(frame: FrameType, event: str, _argument: Any) -> Callable[..., Any]:
            if event == "line":
                self._pass((file, frame.f_lineno))
            return line

        return line

    def _pass(self, place: tuple[str, int]) -> None:
        if self._order.seen:
            self.seen.add(place)
        if place == self._order.kill_at:
            self._left -= 1
            if not self._left and self._order.raises:
                raise FAILURES[self._order.raises]()
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)


def run(order: Order) -> int:
    """Run that lane to its end; return the exit code."""
    os.environ |= order.env
    path = order.log or Path(order.env["PENSTOCK_VAR"]) / "lane.log"
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    identity = LaneIdentity(order.cell, order.kind, 0, 1, order.incarnation)
    tracer = Tracer(order)
    if order.kill_at or order.seen:
        sys.settrace(tracer)
    outcome = run_until_exit(identity, settings_from())
    sys.settrace(None)
    if order.seen:
        Path(order.seen).write_bytes(msgspec.json.encode(sorted(tracer.seen.copy())))  # other threads still run
    return 0 if outcome == "drained" else 3


def fork(order: Order) -> int:
    """Start the lane; it inherits nothing of the server but the imported code."""
    pid = os.fork()
    if pid:
        return pid
    code = 4
    try:
        code = run(order)
    except BaseException:
        traceback.print_exc()  # no caller will print it: the process ends here
    finally:
        os._exit(code)


def main() -> None:
    """Run lanes until the input ends; kill those that still run then."""
    assert threading.active_count() == 1, "a fork would lose threads"
    lanes: dict[int, str] = {}
    rest = b""
    while True:
        if select.select([0], [], [], 0.02)[0]:
            data = os.read(0, 65_536)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                order = msgspec.json.decode(line, type=Order)
                lanes[fork(order)] = order.name
        while lanes:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            ended = Ended(lanes.pop(pid), os.waitstatus_to_exitcode(status))
            os.write(1, msgspec.json.encode(ended) + b"\n")
    for pid in lanes:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
