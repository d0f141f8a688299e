"""What runs inside a Spark task: one lane, made, run and closed there (Spark forks and reuses its Python workers)."""

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Final

from dataplane.runtime.garbage import collect_seldom
from dataplane.runtime.lane import Lane, LaneError, LaneIdentity, Work
from dataplane.runtime.settings import settings_from

REJOIN_WAIT_S: Final = 1.0


def make_work(lane: Lane) -> Work:
    """The work of the lane's kind."""
    match lane.identity.kind:
        case "process":
            from dataplane.process.work import ProcessWork

            return ProcessWork(lane)
        case "transmit" | "transmit-retry":
            from dataplane.transmit.work import TransmitWork

            return TransmitWork(lane)
        case "retrier":
            from dataplane.retrier.work import RetrierWork

            return RetrierWork(lane)


def run_lane(identities: Iterable[LaneIdentity]) -> Iterator[str]:
    """Body of a task: run the partition's only lane to its end and yield how it ended.

    A lane catches its own errors; only the death of the process is a failure of the Spark task, which Spark repeats.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    collect_seldom()
    for identity in identities:
        try:
            yield Lane(identity, settings_from(), make_work).run()
        except LaneError as exc:
            time.sleep(REJOIN_WAIT_S)
            yield f"failed({exc})"
