"""Gate before each job of a replay: closed while the copies of earlier jobs wait for their destinations."""

import time
from collections.abc import Callable
from typing import Final

import msgspec

from dataplane.jobs.transmit_offsets import TransmitOffsets
from dataplane.ledger.audit import OffsetMark
from dataplane.names import PartitionKey
from dataplane.replay.backlog import CopyBacklog, WrittenJob, slow_reason
from dataplane.replay.turns import RunStep
from dataplane.tables.records import CellRecord, ReplayRecord, TopicRecord

LONG_S: Final = 5.0  # a shorter wait is not reported

Highs = Callable[[TopicRecord], list[OffsetMark]]


class ReplayGate:
    """Compares the backlogs of a cell's replays with the offsets of its transmit lanes."""

    def __init__(self, offsets: TransmitOffsets, highs: Highs) -> None:
        """`highs`: returns the highest offset of each partition of a topic."""
        self._offsets, self._highs = offsets, highs

    def step(self, cell: CellRecord, record: ReplayRecord, backlog: CopyBacklog) -> RunStep:
        """Return the step "run", or "wait", with the reason if it has taken long. Raises KafkaException."""
        committed, now_s = self._offsets.committed(cell), time.monotonic()
        ends = self._slow_ends(cell, record) if backlog.jobs else {}  # before jobs are removed, because it may raise
        moved: list[WrittenJob] = []
        for job in backlog.passed(committed, now_s):
            if ends and not job.diverted:
                moved.append(msgspec.structs.replace(job, ends=ends, ended_s=now_s, diverted=True))
            else:
                backlog.taken += job.units
        backlog.jobs = moved + backlog.jobs
        if not backlog.is_full:
            return RunStep("run")
        is_long = backlog.wait(now_s) > LONG_S
        return RunStep("wait", slow_reason(record.destinations) if is_long else "")

    def _slow_ends(self, cell: CellRecord, record: ReplayRecord) -> dict[PartitionKey, int]:
        """Return the ends of the slow lane's topic if it serves a destination of the replay; else {}.

        Copies for such a destination pass egress at once, and wait there. A partition without records is left out:
        the lane has committed no offset of it.
        """
        slow = self._offsets.slow(cell)
        if not any((record.pipe, name) in slow for name in record.destinations):
            return {}
        return {
            (mark.topic, mark.partition): mark.offset + 1
            for mark in self._highs(cell.topics["slow"])
            if mark.offset >= 0
        }
