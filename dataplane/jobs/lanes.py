"""Body of a lane's Spark task: it creates, runs and closes the lane there (Spark forks and reuses Python workers)."""

import logging
import random
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark import TaskContext

from dataplane.jobs.driver_decisions import STABLE_S, back_off_s
from dataplane.jobs.kept_context import close_kept
from dataplane.runtime.garbage import collect_rarely
from dataplane.runtime.lanes.context import LaneContext, LaneError, LaneIdentity, LaneWork
from dataplane.runtime.lanes.lane import Lane
from dataplane.runtime.settings import DataPlaneSettings, settings_from
from dataplane.runtime.telemetry.logs import log_as_json
from dataplane.runtime.telemetry.tracing import tracing_from

log = logging.getLogger(__name__)

REJOIN_WAIT_S: Final = 1.0
LEAVE_S: Final = 4.0  # without a broker, leaving the group would block; the keeper sends SIGKILL after 5 s
LONGEST_REJOIN_S: Final = 8.0  # plus the group's session timeout and the start of a process: a lane is back within 30 s


def make_work(lane: LaneContext) -> LaneWork:
    """Return the work of the lane's kind."""
    match lane.identity.kind:
        case "process" | "process-slow":
            from dataplane.process.work import ProcessWork
            from dataplane.runtime.lookups import open_lookups

            return ProcessWork(lane, open_lookups(lane.settings.var, lane.settings.kafka, lane.files))
        case "transmit" | "transmit-retry" | "transmit-slow":
            from dataplane.transmit.work import TransmitWork

            return TransmitWork(lane)
        case "retrier":
            from dataplane.retrier.work import RetrierWork

            return RetrierWork(lane)


def run_lane(identities: Iterable[LaneIdentity]) -> Iterator[str]:
    """Run the partition's only lane to its end and yield its outcome (the body of a Spark task).

    A lane catches its own errors; only a crash of the process fails the Spark task, which Spark then retries.
    """
    close_kept()
    collect_rarely()
    for identity in identities:
        log_as_json(cell=identity.cell, lane=identity.writer)
        settings = settings_from()
        pause_s = pause_before(settings.var / "data" / "lanes" / f"{identity.cell}-{identity.writer}", time.time())
        context = TaskContext.get()
        # Spark retries at once; after other failures the driver has waited already
        if context is not None and context.attemptNumber():
            time.sleep(pause_s)
        try:
            yield run_until_exit(identity, settings)
        except LaneError as exc:
            time.sleep(REJOIN_WAIT_S)
            yield f"failed({exc})"


def run_until_exit(identity: LaneIdentity, settings: DataPlaneSettings) -> str:
    """Create and run a lane, close its tracing, and return its outcome. Raises LaneError if the lane cannot start."""
    tracing = tracing_from(f"penstock-{identity.kind}", f"{identity.cell}/{identity.writer}", follows=True)
    try:
        lane = Lane(identity, settings, make_work, tracing)
        with leaves_on_signal(lane):
            return lane.run()
    finally:
        if tracing is not None:
            tracing.close()


@contextmanager
def leaves_on_signal(lane: Lane) -> Iterator[None]:
    """Have the lane leave its group on SIGHUP, which PySpark's daemon sends once the JVM has exited, and on SIGTERM.

    Killed by them, it would keep its partitions until its session times out. It is killed after LEAVE_S.
    """

    def leave(number: int, _frame: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, LEAVE_S)  # SIGALRM ends the process, also in a call that blocks
        lane.leave(f"ended by {signal.Signals(number).name}")

    before = {number: signal.signal(number, leave) for number in (signal.SIGHUP, signal.SIGTERM)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)  # Spark may reuse the process
        for number, handler in before.items():
            signal.signal(number, handler)


def pause_before(note: Path, now_s: float) -> float:
    """Return the seconds that a crashed lane waits before it joins its group; crashes soon after a start add to them.

    The file `note` stores the number of these crashes; its modification time is that of the last start. If it cannot be
    written (the disk is full or read-only), only the driver's own pause applies.
    """
    crashes = 0
    try:
        if note.exists() and now_s - note.stat().st_mtime < STABLE_S:
            crashes = int(note.read_text() or 0) + 1
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(str(crashes))
    except OSError as exc:
        log.error("cannot count lane restarts: %s", exc.strerror)
    return min(LONGEST_REJOIN_S, back_off_s(crashes - 1, random.random())) if crashes > 1 else 0.0  # noqa: S311
