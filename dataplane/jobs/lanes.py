"""What runs inside a Spark task: one lane, made, run and closed there (Spark forks and reuses its Python workers)."""

import logging
import random
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pyspark import TaskContext

from dataplane.jobs.wanted import STABLE_S, back_off_s
from dataplane.runtime.garbage import collect_seldom
from dataplane.runtime.lane import Lane, LaneError, LaneIdentity, Work
from dataplane.runtime.logs import log_as_json
from dataplane.runtime.settings import Settings, settings_from
from dataplane.runtime.tracing import tracing_from

log = logging.getLogger(__name__)

REJOIN_WAIT_S: Final = 1.0
LONGEST_REJOIN_S: Final = 8.0  # with the group's session and the start of a process on top, a lane is back within 30 s


def make_work(lane: Lane) -> Work:
    """The work of the lane's kind."""
    match lane.identity.kind:
        case "process" | "process-slow":
            from dataplane.process.lookups import open_lookups
            from dataplane.process.work import ProcessWork

            return ProcessWork(lane, open_lookups(lane.settings.var, lane.settings.kafka, lane.files))
        case "transmit" | "transmit-retry" | "transmit-slow":
            from dataplane.transmit.work import TransmitWork

            return TransmitWork(lane)
        case "retrier":
            from dataplane.retrier.work import RetrierWork

            return RetrierWork(lane)


def run_lane(identities: Iterable[LaneIdentity]) -> Iterator[str]:
    """Body of a task: run the partition's only lane to its end and yield how it ended.

    A lane catches its own errors; only the death of the process is a failure of the Spark task, which Spark repeats.
    """
    collect_seldom()
    for identity in identities:
        log_as_json(cell=identity.cell, lane=identity.writer)
        settings = settings_from()
        pause_s = pause_before(settings.var / "data" / "lanes" / f"{identity.cell}-{identity.writer}", time.time())
        context = TaskContext.get()
        if context is not None and context.attemptNumber():  # Spark repeats at once; the driver has waited already
            time.sleep(pause_s)
        try:
            yield run_to_its_end(identity, settings)
        except LaneError as exc:
            time.sleep(REJOIN_WAIT_S)
            yield f"failed({exc})"


def run_to_its_end(identity: LaneIdentity, settings: Settings) -> str:
    """Make a lane, run it, close what it was given; says how it ended. Raises LaneError if it could not begin."""
    tracing = tracing_from(f"penstock-{identity.kind}", f"{identity.cell}/{identity.writer}", follows=True)
    try:
        return Lane(identity, settings, make_work, tracing).run()
    finally:
        if tracing is not None:
            tracing.close()


def pause_before(note: Path, now_s: float) -> float:
    """How long a lane that died waits before it joins its group: longer with each death soon after a start.

    `note` keeps how many of those there were, and by its own time when the last start was. Without it (the disk is full
    or read-only) the driver's own pause is all that there is.
    """
    deaths = 0
    try:
        if note.exists() and now_s - note.stat().st_mtime < STABLE_S:
            deaths = int(note.read_text() or 0) + 1
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(str(deaths))
    except OSError as exc:
        log.error("starts of lanes cannot be counted: %s", exc.strerror)
    return min(LONGEST_REJOIN_S, back_off_s(deaths - 1, random.random())) if deaths > 1 else 0.0  # noqa: S311
