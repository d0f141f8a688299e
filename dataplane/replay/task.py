"""One task of a replay: read a range of one partition, run the plan, and produce the copies.

The task is sent to Spark's Python workers (dataplane.jobs.replay_task). It reads by assignment, in no group, and
commits nothing. It ends at the end of its range or after TASK_S, once all of its copies are stored.
"""

import time
from typing import Any, Final

import msgspec
from confluent_kafka import Message
from msgspec import Struct

from dataplane.expr import CostLimitError, EvaluationError
from dataplane.ledger.meta import Headers, MessageMeta, read_meta
from dataplane.ledger.units import position_of
from dataplane.names import PartitionKey, output_topic, transform_node
from dataplane.plan import CompiledPlan, StageError
from dataplane.plan.masked_fields import MaskedField
from dataplane.plan.through import EndedUnit, pass_through
from dataplane.process.budget import budget_check
from dataplane.replay.copies import CopyProducer, IngestedEvent, NotStoredError, copy_meta
from dataplane.replay.range_reader import RangeReader
from dataplane.replay.ranges import OffsetRange
from dataplane.replay.result import PassageFacts, TaskResult
from dataplane.replay.selection import EventSelection
from dataplane.replay.topic_copies import TopicCopies
from dataplane.runtime.clock import SteadyClock
from dataplane.spec import PipeSpec
from dataplane.stages.enrich import TableRows
from dataplane.tables.records import DestinationRecord, ReplayRecord, TopicRecord

TASK_S: Final = 2.0


class ReplayTask(Struct, frozen=True):
    """Input of one Spark task; its worker compiles the plan.

    generation: of the ingest topic
    units_per_s: the task's share of the replay's rate
    masks: fields that a revision of the pipe masks
    topics: destinations of the replay that are topics, as they are now
    """

    record: ReplayRecord
    spec: PipeSpec
    salt: bytes
    tenant: str
    range: OffsetRange
    generation: int
    egress: TopicRecord
    units_per_s: float
    masks: frozenset[MaskedField] = frozenset()
    topics: tuple[DestinationRecord, ...] = ()


class ReplayTaskRun:
    """Execution of a task.

    plan:     compiled from the task's spec
    consumer: for assigned partitions, with offset reset `error`
    producer: an idempotent producer; None in a rehearsal
    rows:     the tenant's look-up tables
    """

    def __init__(self, task: ReplayTask, plan: CompiledPlan, consumer: Any, producer: Any, rows: TableRows) -> None:
        self._task, self._plan, self._rows = task, plan, rows
        self._reader = RangeReader(consumer, task.range)
        self._selection = EventSelection(task.record, task.masks)
        self._topics = topics = TopicCopies(task.topics)
        self._copies: CopyProducer | None = None
        if producer is not None:
            self._copies = CopyProducer(producer, task.egress, self._plan.spread, topics, SteadyClock())
        self._facts = PassageFacts()
        self._place: PartitionKey = task.range.place
        self._sent = 0
        self.result = TaskResult(self._place, task.range.first)

    def run(self) -> TaskResult:
        """Run the task and return its result. Copies whose fate is unknown make the whole task count as not done."""
        began_s, began_ns = time.monotonic(), time.thread_time_ns()
        try:
            self._read_until(began_s, began_s + TASK_S)
            if self._copies is not None:
                self._copies.flush()
        except NotStoredError as exc:
            if self._copies is not None:
                self._copies.drop()
            unwritable = tuple(one.name for one in self._task.topics if output_topic(one.pipe, one.name) in exc.topics)
            cpu_us = (time.thread_time_ns() - began_ns) // 1_000
            return TaskResult(self._place, self._task.range.first, cpu_us=cpu_us, error=str(exc), unwritable=unwritable)
        self.result.reached, self.result.read = self._reader.next, self._reader.read
        self.result.error = self._reader.error
        if self._copies is not None:
            self.result.ends = self._copies.ends
            self.result.facts = self._facts.serialized(self._topics)
            self.result.lags = self._topics.lags.take()
            self.result.written, self.result.written_bytes = self._topics.units, self._topics.size_bytes
        self.result.cpu_us = (time.thread_time_ns() - began_ns) // 1_000
        return self.result

    def _read_until(self, began_s: float, deadline_s: float) -> None:
        """Read and run events until the end of the range or of the time, or an error. Raises NotStoredError.

        At least one event is run, however long the first answer of the broker takes.
        """
        reader = self._reader
        for message in reader.messages(deadline_s):
            due_s = began_s + self._sent / self._task.units_per_s
            if reader.read and not self._wait_until(due_s, deadline_s):
                return
            self._take(message)

    def _wait_until(self, due_s: float, deadline_s: float) -> bool:
        """Wait until a time of the monotonic clock; return False at once if it, or the time now, is past the deadline.

        Raises NotStoredError.
        """
        now_s = time.monotonic()
        if now_s >= deadline_s or due_s >= deadline_s:
            return False
        if due_s > now_s:  # a sleep of no time, too, would be a system call for each event
            wait = time.sleep if self._copies is None else self._copies.wait
            wait(due_s - now_s)
        return True

    def _take(self, message: Message) -> None:
        """Run one record of the ingest topic, if the replay selects it. Raises NotStoredError."""
        offset = int(message.offset() or 0)
        headers: Headers = message.headers() or []
        try:
            meta = read_meta(headers)
        except (KeyError, msgspec.DecodeError):
            return
        self._note_expiry(meta)
        key, body = message.key(), message.value() or b""
        if not self._selection.names(meta, key) or not self._holds(meta, body):
            return
        position = position_of(self._task.generation, self._place[1], offset)
        meta = copy_meta(self._task.record, meta, position, message.timestamp()[1])
        self._run(IngestedEvent(self._place[1], key, headers[1:], meta), body)

    def _holds(self, meta: MessageMeta, body: bytes) -> bool:
        try:
            return self._selection.holds(meta, body)
        except (StageError, EvaluationError, CostLimitError):
            self.result.failed += 1
            return False

    def _note_expiry(self, meta: MessageMeta) -> None:
        if self._reader.take_gap():
            self.result.expired_until_us = max(self.result.expired_until_us, meta.ingest_time_us)

    def _run(self, event: IngestedEvent, body: bytes) -> None:
        """Run the plan for one event and produce its copies. Raises NotStoredError."""
        record, result, position = self._task.record, self.result, event.meta.position
        check = budget_check(self._plan)
        passage = pass_through(self._plan, record.destinations, event.meta, body, self._rows, check=check)
        refused: list[EndedUnit] = []
        if self._copies is not None and passage.sent:
            refused = self._copies.send(event, passage.sent)
            self._sent += len(passage.sent)
        failed = {(one.node, one.child) for one in refused} if refused else None
        result.asked += 1
        for one in (ended := passage.ended + refused):
            if one.outcome == "filtered":
                result.filtered += 1
            else:
                result.failed += 1
        self._facts.add(position, passage, ended)
        for meta, made in passage.sent:
            if failed and (transform_node(meta.destination), meta.child) in failed:
                continue
            self._facts.sent(position, meta.destination, meta.child)
            result.units[meta.destination] = result.units.get(meta.destination, 0) + 1
            result.size_bytes += len(made)
