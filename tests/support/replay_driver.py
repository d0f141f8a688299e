"""A driver's replays in memory: jobs run in this thread, on the topics of a ReplayWorld."""

import math
from typing import Any

import msgspec
import pytest

from dataplane.jobs import ledger_reporter, replay_queue, run_queue
from dataplane.jobs.ledger_reporter import QueryLedgerReporter
from dataplane.jobs.replay_queue import ReplayQueue
from dataplane.plan import compile_plan
from dataplane.replay.progress_log import read_progress
from dataplane.replay.result import TaskResult
from dataplane.replay.task import ReplayTask, ReplayTaskRun
from dataplane.runtime.lookups import NoLookupTables, TenantRows
from dataplane.spec import parse_pipe_spec
from dataplane.tables.control import ControlTable
from dataplane.tables.records import DestinationRecord, PipeRecord, PlanRecord, ReplayRecord
from dataplane.tables.replays import ReplayProgress
from tests.support.replaying import CELL, PARTITIONS, PIPE, TOPICS, ReplayWorld

SIGNALS = TOPICS["signals"].name


class ReplayDriver:
    """A driver's replays on a world, which outlives it.

    jobs:     tasks of each job so far
    stops_at: by partition, how many events its first task reads
    failure:  error of the next job
    """

    def __init__(
        self, world: ReplayWorld, table: ControlTable, keys: tuple[str, ...] = (), *, offsets_known_for_s: float = 0.0
    ) -> None:
        self.world, self.table = world, table
        self.jobs: list[list[ReplayTask]] = []
        self.stops_at: dict[int, int] = {}
        self.failure: BaseException | None = None
        self.records: dict[str, ReplayRecord] = {}
        reporter = QueryLedgerReporter("nowhere", CELL, "replay")
        offsets = world.offsets(offsets_known_for_s)
        self.queue = ReplayQueue(table, keys, reporter, world.reader(), self._run, offsets=offsets)

    def _run(self, tasks: list[ReplayTask]) -> list[TaskResult]:
        self.jobs.append(tasks)
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        return [self._run_one(task) for task in tasks]

    def _run_one(self, task: ReplayTask) -> TaskResult:
        if (most := self.stops_at.pop(task.range.place[1], None)) is not None:
            task = msgspec.structs.replace(task, range=task.range._replace(end=task.range.first + most))
        producer = None if task.record.rehearsal else self.world.producer()
        plan = compile_plan(task.spec, task.salt)
        return ReplayTaskRun(task, plan, self.world.reader(), producer, TenantRows(NoLookupTables(), "t")).run()

    def turn(self, slots: int = 2) -> bool:
        """Take a step; return False if none is due."""
        return self.queue.turn(self.world.cell, self.records, slots)

    def run_all(self) -> None:
        """Take steps until all replays have ended."""
        for _ in range(50):
            self.turn()
            if set(self.records) <= self.queue.ended:
                return
        pytest.fail(f"not ended: {self.stored()}")

    def stored(self, name: str = "rep_1") -> ReplayProgress | None:
        """Return the stored progress of a replay."""
        return read_progress(self.world.reader(), SIGNALS).get(name)


def world_of(events: int, monkeypatch: pytest.MonkeyPatch) -> ReplayWorld:
    """Return a world with events in all partitions, whose topics the clients of replays use."""
    made = ReplayWorld()
    for number in range(events):
        made.ingest(number, partition=number % PARTITIONS)
    monkeypatch.setattr(ledger_reporter, "lane_producer", lambda *_, **__: made.producer())
    monkeypatch.setattr(ledger_reporter, "make_offset_client", lambda *_: made.reader())
    monkeypatch.setattr(replay_queue, "start_pace", lambda _: math.inf)
    monkeypatch.setattr(run_queue, "back_off_s", lambda *_: 0.0)
    return made


def table_of(document: dict[str, Any]) -> ControlTable:
    """Return the control table of a cell with the pipe `p` of tenant `t`, whose live revision has this spec."""
    made, spec = ControlTable(), parse_pipe_spec(document)
    made.apply(PlanRecord(PIPE, 2, spec))
    made.apply(PipeRecord(PIPE, 1, "t", "orders", CELL, "active", [(2, 100)]))
    for name, to in spec.destinations.items():
        made.apply(DestinationRecord(PIPE, name, 1, "active", to, []))
    return made
