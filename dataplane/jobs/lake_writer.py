"""Writer of one batch of the lake topic: rows to tables, failed messages to retry-in, audit records to the ledger.

A batch may be repeated after a failure at any point: rows are identified by their message, facts are sets, and retried
messages return to a table that already holds their rows.
"""

import logging
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from dataplane.causes import Cause
from dataplane.jobs.lake_batch import LakeGroup, ends_of, file_facts, groups_of, note_lags
from dataplane.jobs.lake_columns import UntypableError, typed_columns_of
from dataplane.jobs.lake_table import LakeTable, LakeWrite
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, OffsetMark
from dataplane.ledger.breakdown import Slice
from dataplane.ledger.deadletter import DeadLetterReason
from dataplane.ledger.facts import Fact, FactBook, dead_detail
from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta, encode_meta
from dataplane.ledger.report_parts import encode_parts
from dataplane.ledger.stopwatch import forward_stamp
from dataplane.names import AUDIT_TOPIC, transmit_node
from dataplane.runtime.kafka import lane_producer
from dataplane.runtime.lanes.deadletters import DeadLetterWriter
from dataplane.runtime.producers.tracked_producer import TrackedProducer
from dataplane.runtime.settings import DataPlaneSettings
from dataplane.runtime.telemetry.lags import LagBook
from dataplane.spec import LakeDestination, RetryPolicy
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord
from dataplane.transmit.policy.schedule import RetrySchedule, next_try

log = logging.getLogger("lake")

COMPACT_EVERY = 20  # batches
SWEEP_EVERY: Final = 2_000
STORED_WITHIN_S: Final = 60.0
_ENDING: Final = ("InterruptedException", "SparkContext was shut down", "stopped SparkContext")


class LakeWriteError(Exception):
    """Kafka did not store the batch's records in time: the query fails, and its next start repeats the batch."""


class UnknownLakeError(Exception):
    """The table's path is unknown: the store is not a store of the platform, or the pipe has no control record yet."""


class FailedMessage(Struct, frozen=True):
    """Message that could not be written, with its next attempt; None if its retry horizon is over."""

    meta: MessageMeta
    next_try: RetrySchedule | None


class LakeWriter:
    """Writer of batches, called in the thread of the query."""

    def __init__(self, spark: SparkSession, cell: CellRecord, settings: DataPlaneSettings, table: ControlTable) -> None:
        self._spark, self._cell, self._settings, self._table = spark, cell, settings, table
        self._outbox = TrackedProducer(lane_producer(settings.kafka, f"{cell.cell}-lake"))
        self._letters = DeadLetterWriter(self._outbox, cell.topics["dead"].name)
        self._facts, self._lags = FactBook(), LagBook()

    def write(self, records: DataFrame, batch: int) -> None:
        """Write a batch and report it to the ledger; after an exception the query repeats the whole batch.

        Raises LakeWriteError, ProducerFencedError and Spark's own errors.
        """
        self._facts, self._lags = FactBook(), LagBook()
        query = str(self._spark.sparkContext.getLocalProperty("sql.streaming.queryId"))
        records.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            header = F.col("headers")[0]["value"].alias("header")
            heads = [tuple(row) for row in records.select("partition", "offset", header).collect()]
            groups, unreadable = groups_of(heads)
            for group in groups:
                self._put(group, records, LakeWrite(query, batch))
        finally:
            records.unpersist()
        for where in unreadable:
            log.error("skipped a record with an unreadable envelope: partition %s, offset %s of the lake topic", *where)
        self._report(ends_of(heads))

    def _put(self, group: LakeGroup, records: DataFrame, writing: LakeWrite) -> None:
        record = self._table.destination(group.pipe, group.destination)
        to = record.to if record is not None else None
        if record is not None and record.state == "removed":
            file_facts(group.metas.values(), Fact.CANCELLED, self._facts)
            return
        if record is None or not isinstance(to, LakeDestination):
            self._fail(group, records, RetryPolicy(), "the destination is no longer a lake table")
            return
        try:
            table = LakeTable(self._spark, self._path(group, to), typed_columns_of(to, lambda _: record.schema))
            self._store(table, group, records, writing)
        except (PySparkException, Py4JJavaError, UnknownLakeError, UntypableError) as exc:
            if any(text in str(exc) for text in _ENDING):
                raise
            log.warning("pipe=%s destination=%s not written: %s", group.pipe, group.destination, str(exc)[:2_000])
            self._fail(group, records, to.retry, _first_line(exc))
        else:
            file_facts(group.metas.values(), Fact.DELIVERED, self._facts)
            note_lags(list(group.metas.values()), self._lags, _now_us())

    def _store(self, table: LakeTable, group: LakeGroup, records: DataFrame, writing: LakeWrite) -> None:
        rows = group.rows(table.known(group))
        if rows:
            table.append(records, rows, writing)
        if writing.batch % COMPACT_EVERY == COMPACT_EVERY - 1:
            table.compact()
        if writing.batch % SWEEP_EVERY == SWEEP_EVERY - 1:
            table.sweep()

    def _path(self, group: LakeGroup, to: LakeDestination) -> str:
        """Return the table's path. Raises UnknownLakeError."""
        pipe = self._table.pipe(group.pipe)
        if pipe is None:
            raise UnknownLakeError("the pipe's control record has not arrived yet")
        return table_path(self._settings.lakes, to, pipe.tenant, group.pipe, group.destination)

    # -- failed messages -------------------------------------------------------------------------------------------

    def _fail(self, group: LakeGroup, records: DataFrame, retry: RetryPolicy, reason: str) -> None:
        """Send each message to retry-in, or to dead after its retry horizon; one by one, as bodies may be large."""
        failed = {where: _failed(meta, retry, _now_us()) for where, meta in group.metas.items()}
        offsets = self._spark.createDataFrame(list(failed), "partition int, offset long")
        chosen = records.join(F.broadcast(offsets), ["partition", "offset"])
        for row in chosen.select("partition", "offset", "key", "value", "headers").toLocalIterator():
            headers = [(header.key, bytes(header.value)) for header in row.headers]
            self._put_aside(failed[row.partition, row.offset], row, headers, reason)
        retried = [message.meta for message in failed.values() if message.next_try is not None]
        file_facts(retried, Fact.PARKED, self._facts, detail={meta.attempt: str(meta.attempt + 1) for meta in retried})
        self._file_dead([message.meta for message in failed.values() if message.next_try is None])

    def _put_aside(self, failed: FailedMessage, row: Any, headers: Headers, reason: str) -> None:
        key = bytes(row.key) if row.key is not None else None
        value = bytes(row.value)
        if failed.next_try is not None:
            headers = [(META_HEADER, encode_meta(_next_round(failed))), *headers[1:]]
            self._outbox.send(self._cell.topics["retry-in"].name, None, value=value, key=key, headers=headers)
            return
        dead = msgspec.structs.replace(failed.meta, stopwatch=_stamp(failed.meta, Slice.DEAD_LETTER))
        why_dead = DeadLetterReason(transmit_node(dead.destination), Cause.EXPIRED, f"retry period ended: {reason}")
        original = (self._cell.topics["lake"].name, row.partition, row.offset)
        self._letters.send(None, why_dead, meta=dead, headers=headers, value=value, original=original, key=key)

    def _file_dead(self, metas: Sequence[MessageMeta]) -> None:
        for meta in metas:
            file_facts([meta], Fact.DEAD, self._facts, detail=dead_detail(Cause.EXPIRED, meta.life))

    # -- ledger ----------------------------------------------------------------------------------------------------

    def _report(self, ends: dict[int, int]) -> None:
        """Store the audit records, one after the other, once the records that they cover are stored."""
        self._await_stored()
        topic = self._cell.topics["lake"].name
        inputs = [OffsetMark(topic, partition, offset) for partition, offset in sorted(ends.items())]
        header = (AUDIT_VERSION, self._cell.cell, "lake", "lake", _now_us())
        audit = AuditRecord(*header, inputs, self._outbox.marks(), self._facts.take(), self._lags.take())
        for record in encode_parts(audit):
            self._outbox.send(AUDIT_TOPIC, None, key=self._cell.cell.encode(), value=record)
            self._await_stored()

    def _await_stored(self) -> None:
        """Wait until all records are stored. Raises LakeWriteError, ProducerFencedError."""
        deadline = time.monotonic() + STORED_WITHIN_S
        while self._outbox.in_flight:
            self._outbox.collect(0.05)
            if time.monotonic() > deadline:
                raise LakeWriteError(f"{self._outbox.in_flight} records not stored within {STORED_WITHIN_S:g} s")


def table_path(lakes: Sequence[str], to: LakeDestination, tenant: str, pipe: str, destination: str) -> str:
    """Return the path of a destination's table, below a store of the platform, so that no tenant can name another's.

    lakes: the platform's stores; the first one is the default

    Raises UnknownLakeError if the destination names another store, or the platform has none.
    """
    root = to.root or next(iter(lakes), None)
    if root is None or root not in lakes:
        raise UnknownLakeError(f"the platform has no lake store at {root}")
    return f"{root.rstrip('/')}/{tenant}/{pipe}/{destination}"


def _failed(meta: MessageMeta, retry: RetryPolicy, now_us: int) -> FailedMessage:
    meta.first_us = meta.first_us or now_us
    retry_at = next_try(
        meta.tried + 1, delays_s=retry.delays_s, span_s=retry.span_s, first_us=meta.first_us, now_us=now_us
    )
    return FailedMessage(meta, retry_at)


def _next_round(failed: FailedMessage) -> MessageMeta:
    meta, due_us = failed.meta, failed.next_try.due_us if failed.next_try is not None else 0
    changes = {"attempt": meta.attempt + 1, "tried": meta.tried + 1, "not_before_us": due_us}
    return msgspec.structs.replace(meta, **changes, stopwatch=_stamp(meta, Slice.RETRY))


def _stamp(meta: MessageMeta, waiting: Slice) -> bytes:
    return forward_stamp(meta, _now_us(), waiting)


def _first_line(exc: BaseException) -> str:
    return (str(exc).splitlines() or [type(exc).__name__])[0][:200]


def _now_us() -> int:
    return time.time_ns() // 1_000
