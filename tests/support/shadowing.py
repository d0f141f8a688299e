"""A cell in memory for shadow runs: events of a pipe, what its live revision has sent of them, and a driver."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import msgspec

from dataplane.jobs.ledger_reporter import QueryLedgerReporter
from dataplane.jobs.shadow_queue import ShadowEffects, ShadowQueue
from dataplane.ledger.meta import META_HEADER, encode_meta, read_meta
from dataplane.ledger.units import position_of
from dataplane.plan import compile_plan
from dataplane.plan.through import pass_through
from dataplane.replay.progress_log import read_shadow_progress
from dataplane.replay.ranges import OffsetRange
from dataplane.runtime.lookups import NoLookupTables, TenantRows
from dataplane.shadow.job import PartComparison, PartRead, ShadowJob, parts_of
from dataplane.shadow.reading import read_part
from dataplane.shadow.task import ShadowTask
from dataplane.spec import PipeSpec, parse_pipe_spec
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, PipeRecord, PlanRecord, ShadowRecord
from dataplane.tables.shadows import ShadowProgress
from tests.support.memory_lane import MemoryMessage
from tests.support.replaying import CELL, EGRESS, HOUR_US, INGEST, NOW_US, PARTITIONS, PIPE, TOPICS, ReplayWorld

TURNS_S: Final = 20.0
SIGNALS: Final = TOPICS["signals"].name
GENERATION: Final = TOPICS["ingest"].generation
ROWS: Final = TenantRows(NoLookupTables(), "t")
CRM: Final = {"crm": {"type": "http", "url": "https://crm.example"}}


def spec_of(**fields: Any) -> PipeSpec:
    """Return a spec with a source `shop` and a destination `crm`, unless the fields say otherwise."""
    return parse_pipe_spec({"sources": {"shop": {}}, "destinations": CRM, **fields})


def shadow(draft: PipeSpec | None = None, **fields: Any) -> ShadowRecord:
    """Return a running shadow run over the hour around NOW_US."""
    given = {
        "shadow": "shd_1", "version": 1, "cell": CELL, "pipe": PIPE, "spec": draft or spec_of(), "revision": 1,
        "since_us": NOW_US - HOUR_US, "until_us": NOW_US + HOUR_US, "most_events": 0, "state": "running",
    }  # fmt: skip
    return ShadowRecord(**{**given, **fields})


class ShadowWorld(ReplayWorld):
    """Topics of one cell, and the control table. `committed`: by partition, what process has committed."""

    def __init__(self, live: PipeSpec | None = None) -> None:
        super().__init__()
        self.live = live or spec_of()
        self.table = ControlTable()
        self.table.apply(PlanRecord(PIPE, 1, self.live))
        self.table.apply(PipeRecord(PIPE, 1, "t", "orders", CELL, "active", [(1, 100)]))

    def ends(self) -> dict[int, int]:
        """Return the offsets after the last event of each partition: process lanes without a backlog."""
        return {number: len(self.kafka.logs[INGEST, number]) for number in range(PARTITIONS)}

    def process(self, event: MemoryMessage, spec: PipeSpec | None = None, **changes: Any) -> list[MemoryMessage]:
        """Send an event through the live plan, as a process lane does. `changes`: fields of the envelope."""
        position = position_of(GENERATION, event.partition(), event.offset())
        meta = msgspec.structs.replace(read_meta(event.headers()), position=position, stored_ms=event.at_ms, **changes)
        plan = compile_plan(spec or self.live)
        found = pass_through(plan, plan.destinations, meta, event.value(), ROWS)
        return [self.send(event, unit.destination, body, child=unit.child, **changes) for unit, body in found.sent]

    def send(
        self, event: MemoryMessage, destination: str, body: bytes, *, partition: int | None = None, **changes: Any
    ) -> MemoryMessage:
        """Write a unit of an event to egress. `partition`: of egress; the event's own by default."""
        number = event.partition() if partition is None else partition
        fields = {
            "position": position_of(GENERATION, event.partition(), event.offset()),
            "stored_ms": event.at_ms,
            "destination": destination,
            **changes,
        }
        meta = msgspec.structs.replace(read_meta(event.headers()), **fields)
        self.kafka.append(EGRESS, body, [(META_HEADER, encode_meta(meta))], None, number)
        message = self.kafka.logs[EGRESS, number][-1]
        message.at_ms = event.at_ms + 1
        return message


class ShadowDriver:
    """A driver's shadow runs on a world, which outlives it."""

    def __init__(self, world: ShadowWorld, keys: tuple[str, ...] = ()) -> None:
        self.world = world
        self.jobs: list[ShadowJob] = []
        self.tasks: list[int] = []  # of each job
        self.before_job: Callable[[ShadowJob], list[PartRead | PartComparison] | None] = lambda _job: None
        self.records: dict[str, ShadowRecord] = {}
        effects = ShadowEffects(self._run_job, self._committed)
        reporter = QueryLedgerReporter("nowhere", CELL, "shadow")
        self.queue = ShadowQueue(world.table, keys, reporter, world.reader(), effects)

    def turn(self, slots: int = 2) -> bool:
        """Take one turn."""
        return self.queue.turn(self.world.cell, self.records, slots)

    def turns(self, count: int) -> None:
        """Take so many turns; wait for each, because a run pauses after a job."""
        deadline_s = time.monotonic() + TURNS_S
        while count and time.monotonic() < deadline_s:
            if self.turn():
                count -= 1
            else:
                time.sleep(0.001)
        assert not count, f"not taken: {count}"

    def run_all(self) -> ShadowProgress:
        """Take turns until all runs have ended; return the progress of the first."""
        deadline_s = time.monotonic() + TURNS_S
        while time.monotonic() < deadline_s:
            if not self.turn():
                time.sleep(0.001)
            if set(self.records) <= self.queue.ended:
                return self.stored(next(iter(self.records)))
        raise AssertionError(f"not ended: {self.stored(next(iter(self.records)))}")

    def stored(self, name: str = "shd_1") -> ShadowProgress:
        """Return the stored progress of a run."""
        return read_shadow_progress(self.world.reader(), SIGNALS)[name]

    def _committed(self, _cell: CellRecord) -> dict[int, int]:
        return self.world.ends()

    def _run_job(self, job: ShadowJob, tasks: int) -> list[PartRead | PartComparison]:
        self.jobs.append(job)
        self.tasks.append(tasks)
        given = self.before_job(job)
        return run_job(self.world, job, tasks) if given is None else given


def run_job(world: ReplayWorld, job: ShadowJob, tasks: int = 2) -> list[PartRead | PartComparison]:
    """Run a job as Spark does: read the parts, group by position, compare."""
    groups: defaultdict[int, list[Any]] = defaultdict(list)
    for part in parts_of(job, tasks):
        for position, record in read_part(job, part, world.reader()):
            groups[position].append(record)
    reads = [record for position, found in groups.items() if position < 0 for record in found]
    events = [(position, found) for position, found in groups.items() if position >= 0]
    draft, live = compile_plan(job.record.spec, job.salt), compile_plan(job.live, job.salt)
    return [*reads, *(ShadowTask(job, draft, live, ROWS).run(events[number::tasks]) for number in range(tasks))]


def job_of(world: ShadowWorld, record: ShadowRecord, **fields: Any) -> ShadowJob:
    """Return a job over all events of a world."""
    ends = world.ends()
    ranges = [OffsetRange((INGEST, number), 0, end) for number, end in ends.items() if end]
    sent_from = {(EGRESS, number): 0 for number in range(PARTITIONS) if world.kafka.logs[EGRESS, number]}
    job = ShadowJob(record, world.live, b"salt", "t", GENERATION, ranges, sent_from, NOW_US // 1_000, {})
    return msgspec.structs.replace(job, **fields)
