"""Replays of a cell in their turns: decide the next step of each, run a job, and store its facts and its progress.

It does not know Spark: `RunTasks` runs the tasks of a job.
"""

import logging
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaException
from msgspec import Struct, field

from dataplane.jobs.driver_decisions import back_off_s
from dataplane.jobs.ledger_reporter import QueryLedgerReporter, ReportWriteError
from dataplane.jobs.replay_gate import ReplayGate
from dataplane.jobs.transmit_offsets import TransmitOffsets
from dataplane.plan import compile_plan
from dataplane.plan.masked_fields import MaskedField, masked_fields
from dataplane.process.plans import PlanCache
from dataplane.replay.backlog import CopyBacklog, WrittenJob
from dataplane.replay.decisions import (
    ABORTED,
    FAILED,
    ReplayContext,
    ReplayStep,
    WaitingReplay,
    behind_others,
    crash_reason,
    error_text,
    expiry_note,
    next_step,
    next_turn,
    pause_s,
    rate_of,
)
from dataplane.replay.offsets import resolve
from dataplane.replay.progress_log import read_progress
from dataplane.replay.ranges import OffsetRange, first_progress, merged, next_tasks
from dataplane.replay.result import TaskResult, book_of, ends_of
from dataplane.replay.task import ReplayTask
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, PlanRecord, ReplayRecord
from dataplane.tables.replays import REPLAY_VERSION, ReplayProgress, encode_replay_progress, replay_progress_key

log = logging.getLogger("replays")

KIND: Final = "replay"  # of audit records
MOST_CRASHES: Final = 5  # jobs in a row in which the process of a task ended, each several times, and none advanced
TABLES_S: Final = 5.0  # then a plan that lacks look-up tables tries again

RunTasks = Callable[[list[ReplayTask]], list[TaskResult]]


class ReplayState(Struct):
    """One replay of the cell.

    progress: the newest one that is stored
    due_s:    time before which it does nothing, for its rate or after an error; monotonic clock, as `last_s`
    last_s:   its last turn; 0 if it had none
    failures: errors since its last turn without one
    backlog:  copies that wait for their destinations
    crashes:  jobs since the last progress in which the process of a task ended
    is_undecided: True after an error in the decision on its next step
    """

    record: ReplayRecord
    progress: ReplayProgress | None
    due_s: float = 0.0
    last_s: float = 0.0
    failures: int = 0
    crashes: int = 0
    backlog: CopyBacklog = field(default_factory=CopyBacklog)
    is_undecided: bool = False

    @property
    def is_done(self) -> bool:
        """True when the replay has ended."""
        return self.progress is not None and self.progress.done


class ReplayQueue:
    """Replays of one cell, used in one thread. A turn is one step of one replay; it blocks while its job runs."""

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
        self._table, self._reporter, self._reader, self._run_tasks = table, reporter, reader, run
        self._gate = ReplayGate(offsets, reporter.highs)
        self._plans = PlanCache(table, fernet_keys)
        self._needs_salt: dict[tuple[str, int], bool] = {}
        self._masked: dict[str, frozenset[MaskedField]] = {}
        self._stored: dict[str, ReplayProgress] | None = None
        self._states: dict[str, ReplayState] = {}

    def turn(self, cell: CellRecord, records: Mapping[str, ReplayRecord], slots: int) -> bool:
        """Take a step of the replay whose turn it is; return False if none is due.

        records: of the cell's replays that have not ended, and of those that ended since the last turn
        slots:   task slots that a job may take

        Raises KafkaException if the stored progress cannot be read, before any replay has begun.
        """
        if self._stored is None:
            self._stored = read_progress(self._reader, cell.topics["signals"].name)
        for replay, record in records.items():
            known = self._states.setdefault(replay, ReplayState(record, self._stored.get(replay)))
            known.record = record
        steps = {}
        for replay, state in self._states.items():
            if not state.is_done and (step := self._step(cell, state, slots)):
                steps[replay] = step
        now_s = time.monotonic()
        due = [_waiting(self._states[replay], self._table) for replay, step in steps.items() if step.action in _TURNS]
        for replay, reason in behind_others(due).items():
            self._note(cell, self._states[replay], reason)
        turn = next_turn(due, now_s)
        if turn:
            self._take(cell, self._states[turn], steps[turn], slots)
        return bool(turn)

    @property
    def ended(self) -> set[str]:
        """The replays that have ended."""
        return {replay for replay, state in self._states.items() if state.is_done}

    # -- steps -----------------------------------------------------------------------------------------------------

    def _step(self, cell: CellRecord, state: ReplayState, slots: int) -> ReplayStep | None:
        """Return the next step of a replay; carry it out already if it is to wait or to end.

        Returns None after an error, such as a plan that this release cannot compile: the other replays continue.
        """
        record = state.record
        if record.state == "ended" and state.is_undecided:
            self._end(cell, state, ABORTED)
            return None
        if state.is_undecided and state.due_s > time.monotonic():
            return None
        try:
            step = next_step(record, state.progress, self._context(cell, record, slots))
            if step.action == "run" and not record.rehearsal and state.due_s <= time.monotonic():
                step = self._gate.step(cell, record, state.backlog)
        except Exception as exc:
            log.exception("replay %s: no next step: %s", record.replay, str(exc)[:2_000])
            state.is_undecided = True
            self._back_off(cell, state)
            return None
        state.is_undecided = False
        if step.action == "wait" and step.reason:
            self._note(cell, state, step.reason)
        elif step.action == "end":
            self._end(cell, state, step.reason)
        return step

    def _take(self, cell: CellRecord, state: ReplayState, step: ReplayStep, slots: int) -> None:
        """Carry out a step; after an error the replay waits, and its next turn repeats the step."""
        state.last_s = time.monotonic()
        try:
            if step.action == "resolve":
                self._resolve(cell, state)
            else:
                self._run(cell, state, slots)
        except Exception as exc:  # of Kafka or of Spark, whose exceptions have no common type
            log.warning("replay %s: %s", state.record.replay, str(exc)[:2_000])
            self._back_off(cell, state)

    def _resolve(self, cell: CellRecord, state: ReplayState) -> None:
        record = state.record
        resolved = resolve(self._reader, cell.topics["ingest"], record.since_us, record.until_us)
        error = expiry_note(resolved.retained_since_us)
        self._publish(cell, state, first_progress(record.replay, resolved.ranges, _now_us(), error))

    def _run(self, cell: CellRecord, state: ReplayState, slots: int) -> None:
        """Run one job: store its facts, then its progress."""
        record, progress = state.record, state.progress
        if progress is None:
            raise ValueError(f"{record.replay} has no range")
        began_s, rate_per_s = time.monotonic(), self._rate(record)
        if not record.rehearsal:
            rate_per_s = state.backlog.begin_job(began_s, rate_per_s)
        results = self._run_tasks(self._tasks(cell, record, next_tasks(progress, slots, rate_per_s)))
        took_s, units = time.monotonic() - began_s, sum(sum(result.units.values()) for result in results)
        if ends := ends_of(results, cell.topics["egress"].name):
            state.backlog.add(WrittenJob(ends, units, began_s + took_s))
        facts = book_of(record.replay, record.bucket, results)
        if len(facts) and not record.rehearsal:
            sent = any(result.units for result in results)
            self._reporter.report(facts, [], self._reporter.highs(cell.topics["egress"]) if sent else [], KIND)
        expired = expiry_note(max((result.expired_until_us for result in results), default=0))
        waits = next((result.waits for result in results if result.waits), "")
        after = merged(progress, results, _now_us())
        after = msgspec.structs.replace(after, error=error_text(progress.error, waits, expired))
        self._publish(cell, state, after)
        state.crashes = state.crashes + any(result.crashed for result in results) if after.read == progress.read else 0
        if state.crashes >= MOST_CRASHES:
            self._end(cell, state, crash_reason(cell.topics["ingest"], results))
            return
        state.due_s = time.monotonic()
        if not record.rehearsal:
            state.due_s += pause_s(units, rate_per_s, state.due_s - began_s)
        errors = [result.error for result in results if result.error]
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
            )
            for one, rate in ranges
        ]

    def _rate(self, record: ReplayRecord) -> float:
        if record.rehearsal:
            return record.rate_per_s
        return rate_of(record, [self._table.destination(record.pipe, name) for name in record.destinations])

    def _masks(self, record: ReplayRecord) -> frozenset[MaskedField]:
        """Return the fields that a revision of the pipe masks: the event's own, the newest, or any other."""
        if record.replay not in self._masked:
            plans = [one for one in self._table if isinstance(one, PlanRecord) and one.pipe == record.pipe]
            fields = (masked_fields(msgspec.to_builtins(one.spec)) for one in plans)
            self._masked[record.replay] = frozenset().union(*fields)
        return self._masked[record.replay]

    def _back_off(self, cell: CellRecord, state: ReplayState) -> None:
        state.due_s = max(state.due_s, time.monotonic() + back_off_s(state.failures, random.random()))  # noqa: S311
        state.failures += 1
        self._note(cell, state, FAILED)

    def _end(self, cell: CellRecord, state: ReplayState, reason: str) -> None:
        before = state.progress or ReplayProgress(REPLAY_VERSION, state.record.replay, 0, {}, {})
        error = error_text(before.error, reason)
        after = msgspec.structs.replace(before, at_us=_now_us(), done=True, error=error)
        with suppress(KafkaException, ReportWriteError):  # the next turn tries again
            self._publish(cell, state, after)
            log.info("replay %s ended: %s", state.record.replay, error or "complete")

    # -- progress --------------------------------------------------------------------------------------------------

    def _note(self, cell: CellRecord, state: ReplayState, reason: str) -> None:
        """Publish the reason why a replay waits, unless its progress has it already."""
        before = state.progress or ReplayProgress(REPLAY_VERSION, state.record.replay, 0, {}, {})
        error = error_text(before.error, reason)
        if error != before.error:
            with suppress(KafkaException, ReportWriteError):  # the next turn tries again
                self._publish(cell, state, msgspec.structs.replace(before, at_us=_now_us(), error=error))

    def _publish(self, cell: CellRecord, state: ReplayState, progress: ReplayProgress) -> None:
        """Store a progress record. Raises ReportWriteError."""
        key = replay_progress_key(progress.replay)
        self._reporter.produce(cell.topics["signals"].name, encode_replay_progress(progress), key=key)
        self._reporter.await_stored()
        state.progress = progress

    # -- context ---------------------------------------------------------------------------------------------------

    def _context(self, cell: CellRecord, record: ReplayRecord, slots: int) -> ReplayContext:
        table = self._table
        return ReplayContext(
            cell=cell,
            pipe=table.pipe(record.pipe),
            plan=table.plan(record.pipe, record.revision),
            destinations={name: table.destination(record.pipe, name) for name in record.destinations},
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


_TURNS: Final = ("resolve", "run")


def _waiting(state: ReplayState, table: ControlTable) -> WaitingReplay:
    pipe = table.pipe(state.record.pipe)
    tenant = pipe.tenant if pipe is not None else state.record.pipe
    return WaitingReplay(state.record.replay, tenant, state.record.bucket, state.due_s, state.last_s)


def _now_us() -> int:
    return time.time_ns() // 1_000
