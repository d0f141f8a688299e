"""Body of the bulk query's Spark task: it runs the work of a process lane on the records of one partition.

A Python worker keeps its Kafka clients, control table and compiled plans from one task to the next. A task has settled
all of its records, and stored their audit records, when it ends; only then may Spark commit the batch.
"""

import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa
from confluent_kafka import KafkaException
from msgspec import Struct

from dataplane.jobs.kept_context import KeptContext
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, OffsetMark
from dataplane.ledger.facts import FactBook
from dataplane.ledger.meta import Headers, MessageMeta
from dataplane.ledger.report_parts import encode_parts
from dataplane.names import AUDIT_TOPIC
from dataplane.process.work import ProcessWork
from dataplane.runtime.kafka import lane_producer
from dataplane.runtime.lanes.context import MAX_WINDOW_BYTES, LaneError, LaneIdentity
from dataplane.runtime.lanes.envelopes import EnvelopeReader, UnreadableEnvelope
from dataplane.runtime.lanes.poison import PoisonTracker
from dataplane.runtime.lanes.slots import PartitionSlots
from dataplane.runtime.lanes.watchdog import Watchdog
from dataplane.runtime.lanes.window import AckWindow
from dataplane.runtime.lookups import open_lookups
from dataplane.runtime.producers.tracked_producer import ProducerFencedError, TrackedProducer
from dataplane.runtime.settings import DataPlaneSettings, settings_from
from dataplane.runtime.telemetry.fields import FieldBook
from dataplane.runtime.telemetry.lags import LagBook
from dataplane.runtime.telemetry.logs import log_as_json
from dataplane.runtime.telemetry.message_tally import MessageTally
from dataplane.runtime.telemetry.tracing import tracing_from
from dataplane.runtime.telemetry.usage import UsageBook
from dataplane.tables.control import ControlReader, snapshot_path
from dataplane.tables.optional_files import OptionalFiles

log = logging.getLogger("bulk")

COLUMNS: Final = ("partition", "offset", "timestamp", "key", "value", "headers")
RESULT: Final = "partition int, next long, problem string"
_RESULT: Final = pa.schema([("partition", pa.int32()), ("next", pa.int64()), ("problem", pa.string())])
WRITER: Final = "bulk"
AT_ONCE: Final = 500  # records passed to the work together
MOST_UNSETTLED: Final = 4_000
CATCH_UP_S: Final = 20.0
LOG_EVERY_S: Final = 10.0
ALONE_S: Final = 30.0  # for a message that is processed alone, after crashes
LINGER_MS: Final = 10  # larger batches; nobody waits for a single record
_OWN_ERRORS: Final = (LaneError, ProducerFencedError, KafkaException, OSError)


class BulkTask(Struct, frozen=True):
    """Task of a batch.

    control_offset: of the control table that the driver had when the batch began
    settled:        by partition, the offset below which an earlier attempt of the batch has settled everything
    """

    cell: str
    epoch: int
    incarnation: str
    control_offset: int
    settled: dict[int, int] = {}


class BulkIdentity(LaneIdentity, frozen=True):
    """Identity of the context of one process; its number is the process id. It runs what slow lanes run."""

    @property
    def writer(self) -> str:
        """Name of the writer of its signals: several processes run tasks."""
        return f"{WRITER}-{socket.gethostname()[:40]}-{self.number}"


class BulkRecord(NamedTuple):
    """Record of the bulk topic, with the methods of the client's message that the work calls."""

    at: tuple[int, int]  # partition, offset
    stored_ms: int
    record_key: bytes | None
    body: bytes
    all_headers: Headers

    def partition(self) -> int:
        """Return the partition."""
        return self.at[0]

    def offset(self) -> int:
        """Return the offset."""
        return self.at[1]

    def timestamp(self) -> tuple[int, int]:
        """Return the type of the timestamp, and the timestamp in milliseconds."""
        return 1, self.stored_ms

    def key(self) -> bytes | None:
        """Return the key."""
        return self.record_key

    def value(self) -> bytes:
        """Return the body."""
        return self.body

    def headers(self) -> Headers:
        """Return all headers."""
        return self.all_headers

    def error(self) -> None:
        """Return None: a batch has records alone, and no errors of the client."""


class BulkLane:
    """Lane context of this process: it runs the records of one partition after the other, each to its end."""

    def __init__(self, task: BulkTask, settings: DataPlaneSettings) -> None:
        """Open the clients. Raises LaneError if the cell has no control record."""
        self.identity: LaneIdentity = BulkIdentity(task.cell, "process-slow", os.getpid(), task.epoch, task.incarnation)
        self.settings = settings
        self.tracing = tracing_from("penstock-bulk", f"{task.cell}/{WRITER}", follows=True)
        self.usage, self.fields, self.files = UsageBook(), FieldBook(settings.fields), OptionalFiles()
        self.tally, self.facts, self.lags = MessageTally(), FactBook(), LagBook()
        self.held_pipes = 0
        self._log_due_s = 0.0
        self.windows: dict[int, AckWindow] = {}
        self._reader = ControlReader(settings.kafka, snapshot_path(settings.var), self.files)
        self.table = self._reader.table
        self.catch_up(task.control_offset)
        cell = self.table.cell(task.cell)
        if cell is None or "bulk" not in cell.topics:
            raise LaneError(f"no record of cell {task.cell} with a bulk topic")
        self.cell = cell
        self._topic = cell.topics["bulk"].name
        self.slots = PartitionSlots([self._topic])
        self._producer = lane_producer(settings.kafka, f"{task.cell}-{WRITER}", LINGER_MS)
        self.producer = TrackedProducer(self._producer)
        self.audits = _NoCheckpoints()
        self._envelopes = EnvelopeReader(self.slots, self.producer, cell.topics["dead"].name)
        self._crashes = PoisonTracker(settings.var / "data" / "crashes", self.files)
        self._work = ProcessWork(self, open_lookups(settings.var, settings.kafka, self.files), is_bulk=True)

    # -- LaneContext -----------------------------------------------------------------------------------------------

    def settle(self, slot: int, offset: int) -> None:
        """Settle a message."""
        self.windows[slot].settle(offset)

    def settle_all(self, slot: int, offsets: Iterable[int]) -> None:
        """Settle all of these messages."""
        self.windows[slot].settle_all(offsets)

    def bound_windows(self, _messages: int, _size_bytes: int) -> None:
        """Do nothing: the size of a batch is bounded."""

    def keep_notes(self, _note: Callable[[int, int], str], _recall: Callable[[int, str], None]) -> None:
        """Do nothing: a batch has no notes."""

    def renote(self, _slot: int) -> None:
        """Do nothing: a batch has no notes."""

    def committed_note(self, _slot: int) -> str:
        """Return "": a batch has no notes."""
        return ""

    def owns(self, slot: int) -> bool:
        """Return True for the partition of the task."""
        return slot in self.windows

    def may_send(self, slot: int) -> bool:
        """Return True for the partition of the task."""
        return slot in self.windows

    def read_all(self, messages: Iterable[Any]) -> list[tuple[Any, MessageMeta, Headers]]:
        """Return each message with its decoded `Meta` and all of its headers; dead-letter unreadable ones."""
        return self._envelopes.read_all(messages)

    # -- a task ----------------------------------------------------------------------------------------------------

    def catch_up(self, control_offset: int) -> None:
        """Read the control topic up to this offset. Raises LaneError after CATCH_UP_S."""
        deadline = time.monotonic() + CATCH_UP_S
        self._reader.refresh()
        while self.table.offset < control_offset:
            if time.monotonic() > deadline:
                raise LaneError(f"has read control records up to {self.table.offset} of {control_offset}")
            time.sleep(0.01)
            self._reader.refresh()

    def run(self, records: Iterator[BulkRecord]) -> tuple[int, int]:
        """Run the records of one partition, in their order, to their end; return the partition and the next offset.

        Without records, the partition is -1. Raises LaneError, ProducerFencedError, KafkaException.
        """
        self._watchdog = Watchdog()
        try:
            return self._run(records)
        finally:
            self._watchdog.close()

    def forget_crashes(self) -> None:
        """Delete the notes of crashes: the task ends by an error of its own, for which no message is to blame."""
        self._crashes.close()

    def _run(self, records: Iterator[BulkRecord]) -> tuple[int, int]:
        partition, name = -1, ""
        while some := list(islice(records, AT_ONCE)):
            if partition < 0:
                (partition, first), now_s = some[0].at, time.time()
                name = f"{self._topic}-{partition}"
                self.windows = {partition: AckWindow(first)}
                self._crashes.assigned([name], now_s)
                self._crashes.opened(name, first, now_s)
            window = self.windows[partition]
            window.take_all([record.at[1] for record in some], [len(record.body) for record in some])
            self._hand_over(name, some)
            self._advance(partial(_has_room, window))
        if partition < 0:
            return -1, 0
        window = self.windows[partition]
        self._advance(lambda: not (window.unsettled or self.producer.in_flight))
        self._report(partition, window.prefix)
        self._crashes.let_go(name)
        self.tally.write()
        return partition, window.prefix

    def close(self) -> None:
        """Close everything; records that are not stored are dropped, because the batch is run again."""
        with ExitStack() as stack:
            stack.callback(self._reader.close)
            stack.callback(self._drop_records)
            stack.callback(self._work.close)
            if self.tracing is not None:
                stack.callback(self.tracing.close)
        self._crashes.abandon()

    def _drop_records(self) -> None:
        """Drop the records that are not stored and serve their reports, which refer to the producer."""
        self._producer.purge()
        self._producer.poll(0)

    def _hand_over(self, name: str, records: Sequence[BulkRecord]) -> None:
        """Pass records to the work: together, or one at a time after repeated crashes on this host."""
        if not self._crashes.is_careful:
            self._crashes.handed(name, records[-1].at[1])
            self._work.process(records)
            return
        for record in records:
            partition, offset = record.at
            if not self._crashes.try_alone(name, offset, time.time()):
                log.error("dead: message at %s %d crashed tasks that processed it alone", name, offset)
                self._work.dead_letter_poison(record)
                continue
            self._work.process([record])
            window, deadline = self.windows[partition], time.monotonic() + ALONE_S
            self._advance(partial(_is_settled, window, offset, deadline))
            self._crashes.survived(name, time.time())

    def _advance(self, is_done: Callable[[], bool]) -> None:
        """Run queued messages and collect stored records until `is_done`. A missing plan or table is waited for.

        What keeps the task waiting is logged: brokers that do not answer, topics that reject records.
        """
        while not is_done():
            self._watchdog.pat()
            self._log_trouble()
            self._work.poll()
            wait_s = self._work.poll_timeout_s()
            self._collect(wait_s)
            if wait_s and not self.producer.in_flight:  # something is missing, which the next control record may bring
                self._reader.refresh()

    def _log_trouble(self) -> None:
        now_s = time.monotonic()
        if (trouble := self.producer.trouble or self.files.trouble) and now_s >= self._log_due_s:
            self._log_due_s = now_s + LOG_EVERY_S
            log.warning("bulk task waits: %s", trouble)

    def _collect(self, wait_s: float) -> None:
        for token in self.producer.collect(wait_s):
            if isinstance(token, _AuditPart):
                token.is_stored = True
            elif isinstance(token, UnreadableEnvelope):
                self.settle(token.slot, token.offset)
            else:
                self._work.on_delivery(token)

    def _report(self, partition: int, next_offset: int) -> None:
        """Store the audit records of the task, one after the other."""
        self.usage.hasten()
        self.fields.hasten()
        audit = AuditRecord(
            AUDIT_VERSION,
            self.cell.cell,
            WRITER,
            WRITER,
            at_us=time.time_ns() // 1_000,
            inputs=[OffsetMark(self._topic, partition, next_offset)],
            outputs=self.producer.marks(),
            facts=self.facts.sets(),
            lags=self.lags.sketches(),
            usage=self.usage.take_if_due(),
            fields=self.fields.take_if_due(),
        )
        for record in encode_parts(audit):
            part = _AuditPart()  # a record that the topic rejects is tried again: so nothing in flight proves nothing
            self.producer.send(AUDIT_TOPIC, part, key=self.cell.cell.encode(), value=record)
            while not part.is_stored:
                self._watchdog.pat()
                self._log_trouble()
                self._collect(0.05)
        self.facts.clear()
        self.lags.clear()


class _AuditPart(Struct):
    """Token of an audit record."""

    is_stored: bool = False


class _NoCheckpoints(Struct, frozen=True):
    """Counts of a context without checkpoints."""

    begun: int = 0
    stored: int = 0
    floors: dict[tuple[str, int], int] = {}


def _has_room(window: AckWindow) -> bool:
    return window.unsettled <= MOST_UNSETTLED and window.bytes <= MAX_WINDOW_BYTES // 2


def _is_settled(window: AckWindow, offset: int, deadline_s: float) -> bool:
    return not window.is_unsettled(offset) or time.monotonic() > deadline_s


# Of this process, which runs one task at a time.
_KEPT: Final = KeptContext[BulkLane](lambda lane: lane.close(), has_files=True)


def run_in_kept_lane(task: BulkTask, records: Iterator[BulkRecord]) -> tuple[int, int]:
    """Run a task as `BulkLane.run`, in the context that this process has kept for its application, if it has one."""
    unsettled = (record for record in records if record.at[1] >= task.settled.get(record.at[0], 0))
    with _KEPT.lend((task.cell, task.epoch, task.incarnation), lambda: BulkLane(task, settings_from())) as lease:
        try:
            lease.context.catch_up(task.control_offset)
            result = lease.context.run(unsettled)
        except _OWN_ERRORS:
            lease.context.forget_crashes()
            raise
        lease.keep()
        return result


def run_bulk_task(task: BulkTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the records of one partition (the body of a Spark task); yield its next offset, or why it could not."""
    log_as_json(cell=task.cell, lane=WRITER)
    partition, next_offset, problem = -1, 0, ""
    try:
        partition, next_offset = run_in_kept_lane(task, records_of(batches))
    except _OWN_ERRORS as exc:
        log.warning("bulk task failed: %s", exc)
        problem = str(exc) or type(exc).__name__
    row = {"partition": partition, "next": next_offset, "problem": problem}
    yield pa.RecordBatch.from_pylist([row], schema=_RESULT)


def records_of(batches: Iterable[pa.RecordBatch]) -> Iterator[BulkRecord]:
    """Yield the records of Arrow batches that have COLUMNS."""
    for batch in batches:
        partitions, offsets, times, keys, bodies, headers = (batch.column(name) for name in COLUMNS)
        stored_ms = times.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        places = zip(partitions.to_pylist(), offsets.to_pylist(), strict=True)
        plain = (column.to_pylist() for column in (stored_ms, keys, bodies))
        for at, stored, key, body, named in zip(places, *plain, _lists_of(headers), strict=True):
            yield BulkRecord(at, stored, key, body or b"", named)


def _lists_of(headers: pa.ListArray) -> Iterator[Headers]:
    """Yield the headers of each record. Flat columns are converted, because a dict for each header takes longer."""
    names, values = (headers.values.field(number).to_pylist() for number in (0, 1))
    pairs, bounds = list(zip(names, values, strict=True)), headers.offsets.to_pylist()
    return (pairs[first:end] for first, end in pairwise(bounds))
