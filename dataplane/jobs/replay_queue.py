"""Replays of a cell: run the jobs of each, and store their facts before their progress.

It does not know Spark: `RunTasks` runs the tasks of a job.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import msgspec

from dataplane.jobs.ledger_reporter import QueryLedgerReporter, ReportWriteError
from dataplane.jobs.replay_gate import ReplayGate
from dataplane.jobs.run_queue import RunQueue, RunState, now_us
from dataplane.jobs.transmit_offsets import TransmitOffsets
from dataplane.ledger.facts import FactBook
from dataplane.ledger.usage import PipeUsage, UsageReport
from dataplane.plan import compile_plan
from dataplane.plan.masked_fields import MaskedField, masked_fields
from dataplane.process.plans import PlanCache
from dataplane.replay.backlog import CopyBacklog, WrittenJob, start_pace
from dataplane.replay.decisions import (
    NO_SLOT,
    ReplayContext,
    crash_reason,
    next_step,
    pause_s,
    rate_of,
)
from dataplane.replay.offsets import resolve
from dataplane.replay.progress_log import read_progress
from dataplane.replay.ranges import OffsetRange, first_progress, merged, next_tasks
from dataplane.replay.result import TaskResult, book_of, ends_of
from dataplane.replay.task import ReplayTask
from dataplane.replay.turns import RunStep, WaitingRun
from dataplane.spec import TopicDestination
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, DestinationRecord, PlanRecord, ReplayRecord
from dataplane.tables.replays import REPLAY_VERSION, ReplayProgress, encode_replay_progress, replay_progress_key
from dataplane.tables.run_notes import error_text, expiry_note

log = logging.getLogger("replays")

KIND: Final = "replay"  # of audit records
TABLES_S: Final = 5.0  # then a plan that lacks look-up tables tries again
BY_LANE_S: Final = 300.0  # for which copies for a topic that does not store them are sent by lanes

RunTasks = Callable[[list[ReplayTask]], list[TaskResult]]
_State = RunState[ReplayRecord, ReplayProgress]


class ReplayQueue(RunQueue[ReplayRecord, ReplayProgress]):
    """Replays of one cell. Of each tenant, only the replay that was created first takes turns."""

    kind: ClassVar[str] = KIND

    def __init__(
        self,
        table: ControlTable,
        fernet_keys: tuple[str, ...],
        reporter: QueryLedgerReporter,
        reader: Any,
        run: RunTasks,
        *,
        offsets: TransmitOffsets,
    ) -> None:
        """`reader`: consumer for assigned partitions, which reports the end of a partition."""
        super().__init__(table, reporter, reader)
        self._run_tasks = run
        self._gate = ReplayGate(offsets, reporter.highs)
        self._backlogs: dict[str, CopyBacklog] = {}  # by replay, copies that wait for delivery
        self._plans = PlanCache(table, fernet_keys)
        self._needs_salt: dict[tuple[str, int], bool] = {}
        self._masked: dict[str, frozenset[MaskedField]] = {}
        self._by_lane_until_s: dict[tuple[str, str], float] = {}  # by pipe and destination

    def _read_progress(self, topic: str) -> dict[str, ReplayProgress]:
        return read_progress(self._reader, topic)

    def _no_progress(self, run: str) -> ReplayProgress:
        return ReplayProgress(REPLAY_VERSION, run, 0, {}, {})

    def _encoded(self, progress: ReplayProgress) -> tuple[str, bytes]:
        return replay_progress_key(progress.replay), encode_replay_progress(progress)

    def _waiting(self, state: _State) -> WaitingRun:
        record, pipe = state.record, self._table.pipe(state.record.pipe)
        tenant = pipe.tenant if pipe is not None else record.pipe
        return WaitingRun(record.replay, tenant, record.bucket, state.due_s, state.last_s)

    def _next_step(self, cell: CellRecord, state: _State, slots: int) -> RunStep:
        record = state.record
        step = next_step(record, state.progress, self._context(cell, record, slots))
        if step.action == "run" and not record.rehearsal and state.due_s <= self._now_s:
            return self._gate.step(cell, record, self._backlog(record))
        if step.action == "wait" and step.reason != NO_SLOT:
            self._backlog(record).interrupt(time.monotonic())
        return step

    def _resolve(self, cell: CellRecord, state: _State) -> None:
        record = state.record
        resolved = resolve(self._reader, cell.topics["ingest"], record.since_us, record.until_us)
        error = expiry_note(resolved.retained_since_us)
        self._publish(cell, state, first_progress(record.replay, resolved.ranges, now_us(), error))

    def _run(self, cell: CellRecord, state: _State, slots: int) -> None:
        """Run one job: store its facts, then its progress."""
        record, progress = state.record, state.progress
        if progress is None:
            raise ValueError(f"{record.replay} has no range")
        began_s, rate_per_s, backlog = time.monotonic(), self._rate(record), self._backlog(record)
        if not record.rehearsal:
            rate_per_s = backlog.begin_job(began_s, rate_per_s)
        results = self._run_tasks(self._tasks(cell, record, next_tasks(progress, slots, rate_per_s)))
        took_s, units = time.monotonic() - began_s, sum(sum(result.units.values()) for result in results)
        if ends := ends_of(results, cell.topics["egress"].name):
            backlog.add(WrittenJob(ends, units, began_s + took_s))
        facts = FactBook() if record.rehearsal else book_of(record.replay, record.bucket, results)
        usage = _usage(record.pipe, results)
        if len(facts) or usage.busy_us:
            sent = len(facts) and any(result.units for result in results)
            outputs = self._reporter.highs(cell.topics["egress"]) if sent else []
            lags = [lag for result in results for lag in result.lags]
            self._reporter.report(facts, [], outputs, KIND, lags=lags, usage=usage)
        expired = expiry_note(max((result.expired_until_us for result in results), default=0))
        waits = next((result.waits for result in results if result.waits), "")
        after = merged(progress, results, now_us())
        after = msgspec.structs.replace(after, error=error_text(progress.error, waits, expired))
        self._publish(cell, state, after)
        crashed = [(result.place, result.reached) for result in results if result.crashed]
        if state.crashes_too_often(has_crashed=bool(crashed), has_advanced=after.read > progress.read):
            self._end(cell, state, crash_reason(cell.topics["ingest"], crashed))
            return
        state.due_s = time.monotonic()
        if not record.rehearsal:
            state.due_s += pause_s(units, rate_per_s, state.due_s - began_s)
        self._send_by_lane(record.pipe, results)
        errors = [result.error for result in results if result.error and not result.unwritable]
        if errors:
            raise ReportWriteError("; ".join(errors))
        state.failures = 0
        if waits:
            state.due_s += TABLES_S

    def _tasks(
        self, cell: CellRecord, record: ReplayRecord, ranges: list[tuple[OffsetRange, float]]
    ) -> list[ReplayTask]:
        plan, pipe = self._table.plan(record.pipe, record.revision), self._table.pipe(record.pipe)
        if plan is None or pipe is None:
            raise ValueError(f"{record.replay} has no plan")
        salt = self._plans.salt(record.pipe) if self._does_need_salt(record) else b""
        masks = self._masks(record) if record.where else frozenset()
        current = self._destinations(record).values()
        topics = tuple(one for one in current if one is not None and self._does_write(one))
        return [
            ReplayTask(
                record,
                plan.spec,
                salt or b"",
                pipe.tenant,
                one,
                cell.topics["ingest"].generation,
                cell.topics["egress"],
                rate,
                masks,
                topics,
            )
            for one, rate in ranges
        ]

    def _send_by_lane(self, pipe: str, results: Sequence[TaskResult]) -> None:
        """Let lanes send the copies for topics that do not store them: they retry, and dead-letter what is refused.

        The tasks would repeat the copies of all other destinations, too, until the topic stores its own.
        """
        for result in results:
            for destination in result.unwritable:
                log.warning("lanes send the copies of %s for %s: %s", pipe, destination, result.error)
                self._by_lane_until_s[pipe, destination] = time.monotonic() + BY_LANE_S

    def _does_write(self, record: DestinationRecord) -> bool:
        """Return True if tasks write the copies for this destination themselves."""
        by_lane_until_s = self._by_lane_until_s.get((record.pipe, record.name), 0.0)
        return isinstance(record.to, TopicDestination) and time.monotonic() >= by_lane_until_s

    def _rate(self, record: ReplayRecord) -> float:
        return record.rate_per_s if record.rehearsal else rate_of(record, self._destinations(record).values())

    def _backlog(self, record: ReplayRecord) -> CopyBacklog:
        if record.replay not in self._backlogs:
            known = [one.to for one in self._destinations(record).values() if one is not None]
            self._backlogs[record.replay] = CopyBacklog(pace_per_s=start_pace(known))
        return self._backlogs[record.replay]

    def _destinations(self, record: ReplayRecord) -> dict[str, DestinationRecord | None]:
        return {name: self._table.destination(record.pipe, name) for name in record.destinations}

    def _masks(self, record: ReplayRecord) -> frozenset[MaskedField]:
        """Return the fields that a revision of the pipe masks: the event's own, the newest, or any other."""
        if record.replay not in self._masked:
            # A list: the driver's thread adds records meanwhile.
            plans = [one for one in list(self._table) if isinstance(one, PlanRecord) and one.pipe == record.pipe]
            fields = (masked_fields(msgspec.to_builtins(one.spec)) for one in plans)
            self._masked[record.replay] = frozenset().union(*fields)
        return self._masked[record.replay]

    def _context(self, cell: CellRecord, record: ReplayRecord, slots: int) -> ReplayContext:
        table = self._table
        return ReplayContext(
            cell=cell,
            pipe=table.pipe(record.pipe),
            plan=table.plan(record.pipe, record.revision),
            destinations=self._destinations(record),
            has_salt=not self._does_need_salt(record) or self._plans.salt(record.pipe) is not None,
            slots=slots,
        )

    def _does_need_salt(self, record: ReplayRecord) -> bool:
        key = (record.pipe, record.revision)
        if key not in self._needs_salt:
            plan = self._table.plan(*key)
            if plan is None:
                return False
            self._needs_salt[key] = compile_plan(plan.spec).needs_salt
        return self._needs_salt[key]


def _usage(pipe: str, results: Sequence[TaskResult]) -> UsageReport:
    """Return the usage of a job: its CPU time, and the copies that it has written to topics."""
    written, size_bytes = sum(one.written for one in results), sum(one.written_bytes for one in results)
    return UsageReport(sum(one.cpu_us for one in results), 0, [PipeUsage(pipe, written, size_bytes, 1)])
