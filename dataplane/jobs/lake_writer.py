"""One batch of the lake's topic: rows into tables, what cannot be written to retry-in, and word of it to the ledger.

A batch may be done again at any point of it: rows are known by their message, facts are sets, parked messages come back
to a table that knows them.
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
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way of writing it)

from dataplane.jobs.lake_batch import Lot, ends_of, file_lot, lots_of, note_lags
from dataplane.jobs.lake_table import LakeTable, Writing
from dataplane.ledger.audit import AUDIT_VERSION, Audit, Mark
from dataplane.ledger.breakdown import Slice
from dataplane.ledger.deadletter import Death
from dataplane.ledger.facts import Fact, FactBook, dead_detail
from dataplane.ledger.meta import META_HEADER, Headers, Meta, encode_meta
from dataplane.ledger.report_parts import encode_parts
from dataplane.ledger.stopwatch import passed_on
from dataplane.names import AUDIT_TOPIC, transmit_node
from dataplane.runtime.deadletters import DeadLetters
from dataplane.runtime.kafka import lane_producer
from dataplane.runtime.lags import LagBook
from dataplane.runtime.outbox import Outbox
from dataplane.runtime.settings import Settings
from dataplane.spec import LakeDestination, Retry
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord
from dataplane.transmit.schedule import NextTry, next_try

log = logging.getLogger("lake")

COMPACT_EVERY = 20  # batches
SWEEP_EVERY: Final = 2_000
STORED_WITHIN_S: Final = 60.0
UNWRITABLE: Final = "lake-unwritable"
_ENDING: Final = ("InterruptedException", "SparkContext was shut down", "stopped SparkContext")


class NotStoredError(Exception):
    """Kafka did not take the batch's records in time: the query ends, and does the batch again."""


class NoSuchLakeError(Exception):
    """The destination names a store that the platform does not."""


class Failed(Struct, frozen=True):
    """What becomes of one message that could not be written."""

    meta: Meta
    next_try: NextTry | None


class LakeWriter:
    """Writes batch after batch, in the thread of the query that calls it."""

    def __init__(self, spark: SparkSession, cell: CellRecord, settings: Settings, table: ControlTable) -> None:
        self._spark, self._cell, self._settings, self._table = spark, cell, settings, table
        self._outbox = Outbox(lane_producer(settings.kafka, f"{cell.cell}-lake"))
        self._letters = DeadLetters(self._outbox, cell.topics["dead"].name)
        self._facts, self._lags = FactBook(), LagBook()

    def write(self, records: DataFrame, batch: int) -> None:
        """All of it, or an exception and all of it again."""
        self._facts, self._lags = FactBook(), LagBook()
        query = str(self._spark.sparkContext.getLocalProperty("sql.streaming.queryId"))
        records.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            header = F.col("headers")[0]["value"].alias("header")
            heads = [tuple(row) for row in records.select("partition", "offset", header).collect()]
            lots, strange = lots_of(heads)
            for lot in lots:
                self._put(lot, records, Writing(query, batch))
        finally:
            records.unpersist()
        for place in strange:
            log.error("passed over: unreadable envelope at %s/%s of the lake's topic", *place)
        self._tell(ends_of(heads))

    def _put(self, lot: Lot, records: DataFrame, writing: Writing) -> None:
        record = self._table.destination(lot.pipe, lot.destination)
        to = record.to if record is not None else None
        if record is not None and record.state == "removed":
            file_lot(lot.metas.values(), Fact.CANCELLED, self._facts)
            return
        if not isinstance(to, LakeDestination):
            self._fail(lot, records, Retry(), "the destination is no lake any more")
            return
        try:
            self._store(LakeTable(self._spark, self._path(lot, to)), lot, records, writing)
        except (PySparkException, Py4JJavaError, NoSuchLakeError) as exc:
            if any(word in str(exc) for word in _ENDING):
                raise
            log.warning("pipe=%s destination=%s not written: %s", lot.pipe, lot.destination, str(exc)[:2_000])
            self._fail(lot, records, to.retry, _first_line(exc))
        else:
            file_lot(lot.metas.values(), Fact.DELIVERED, self._facts)
            note_lags(list(lot.metas.values()), self._lags, _now_us())

    def _store(self, table: LakeTable, lot: Lot, records: DataFrame, writing: Writing) -> None:
        rows = lot.rows(table.known(lot))
        if rows:
            table.append(records, rows, writing)
        if writing.batch % COMPACT_EVERY == COMPACT_EVERY - 1:
            table.compact()
        if writing.batch % SWEEP_EVERY == SWEEP_EVERY - 1:
            table.sweep()

    def _path(self, lot: Lot, to: LakeDestination) -> str:
        """Raises NoSuchLakeError."""
        pipe = self._table.pipe(lot.pipe)
        if pipe is None:
            raise NoSuchLakeError("the pipe is not known here yet")
        return table_path(self._settings.lakes, to, pipe.tenant, lot.pipe, lot.destination)

    # -- what cannot be written ------------------------------------------------------------------------------------

    def _fail(self, lot: Lot, records: DataFrame, retry: Retry, reason: str) -> None:
        """Each message to retry-in, or to dead if its span is over; one at a time, for bodies may be large."""
        failed = {where: _failed(meta, retry, _now_us()) for where, meta in lot.metas.items()}
        places = self._spark.createDataFrame(list(failed), "partition int, offset long")
        chosen = records.join(F.broadcast(places), ["partition", "offset"])
        for row in chosen.select("partition", "offset", "key", "value", "headers").toLocalIterator():
            headers = [(header.key, bytes(header.value)) for header in row.headers]
            self._put_aside(failed[row.partition, row.offset], row, headers, reason)
        parked = [one.meta for one in failed.values() if one.next_try is not None]
        file_lot(parked, Fact.PARKED, self._facts, detail={meta.attempt: str(meta.attempt + 1) for meta in parked})
        self._file_dead([one.meta for one in failed.values() if one.next_try is None])

    def _put_aside(self, failed: Failed, row: Any, headers: Headers, reason: str) -> None:
        key = bytes(row.key) if row.key is not None else None
        value = bytes(row.value)
        if failed.next_try is not None:
            headers = [(META_HEADER, encode_meta(_next_round(failed))), *headers[1:]]
            self._outbox.send(self._cell.topics["retry-in"].name, None, value=value, key=key, headers=headers)
            return
        dead = msgspec.structs.replace(failed.meta, stopwatch=_stamp(failed.meta, Slice.DEAD_LETTER))
        death = Death(transmit_node(dead.destination), "expired", f"tried for its whole span: {reason}")
        original = (self._cell.topics["lake"].name, row.partition, row.offset)
        self._letters.send(None, death, meta=dead, headers=headers, value=value, original=original, key=key)

    def _file_dead(self, metas: Sequence[Meta]) -> None:
        for meta in metas:
            file_lot([meta], Fact.DEAD, self._facts, detail=dead_detail("expired", meta.life))

    # -- the books -------------------------------------------------------------------------------------------------

    def _tell(self, ends: dict[int, int]) -> None:
        """Store the audit records, one after the other, after the records that they are about."""
        self._await_stored()
        topic = self._cell.topics["lake"].name
        inputs = [Mark(topic, partition, offset) for partition, offset in sorted(ends.items())]
        about = (AUDIT_VERSION, self._cell.cell, "lake", "lake", _now_us())
        audit = Audit(*about, inputs, self._outbox.marks(), self._facts.take(), self._lags.take())
        for record in encode_parts(audit):
            self._outbox.send(AUDIT_TOPIC, None, key=self._cell.cell.encode(), value=record)
            self._await_stored()

    def _await_stored(self) -> None:
        """Raises NotStoredError, ProducerDeadError."""
        deadline = time.monotonic() + STORED_WITHIN_S
        while self._outbox.in_flight:
            self._outbox.collect(0.05)
            if time.monotonic() > deadline:
                raise NotStoredError(f"{self._outbox.in_flight} records within {STORED_WITHIN_S} s")


def table_path(lakes: Sequence[str], to: LakeDestination, tenant: str, pipe: str, destination: str) -> str:
    """Where a destination's table lies: below a store of the platform's, so that no tenant can name another's place.

    Raises NoSuchLakeError.
    """
    root = to.root or next(iter(lakes), None)
    if root is None or root not in lakes:
        raise NoSuchLakeError(f"the platform has no lake at {root}")
    return f"{root.rstrip('/')}/{tenant}/{pipe}/{destination}"


def _failed(meta: Meta, retry: Retry, now_us: int) -> Failed:
    meta.first_us = meta.first_us or now_us
    after = next_try(
        meta.tried + 1, delays_s=retry.delays_s, span_s=retry.span_s, first_us=meta.first_us, now_us=now_us
    )
    return Failed(meta, after)


def _next_round(failed: Failed) -> Meta:
    meta, due_us = failed.meta, failed.next_try.due_us if failed.next_try is not None else 0
    changes = {"attempt": meta.attempt + 1, "tried": meta.tried + 1, "not_before_us": due_us}
    return msgspec.structs.replace(meta, **changes, stopwatch=_stamp(meta, Slice.RETRY))


def _stamp(meta: Meta, waiting: Slice) -> bytes:
    return passed_on(meta, _now_us(), waiting)


def _first_line(exc: BaseException) -> str:
    return (str(exc).splitlines() or [type(exc).__name__])[0][:200]


def _now_us() -> int:
    return time.time_ns() // 1_000
