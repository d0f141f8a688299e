"""The windows query: aggregates what lanes tapped, and lets each closed window enter its pipe as a message.

Results are a function of what was tapped: which events a window takes is decided by their own stamps (plan.taps), and
a window closes only when the clock on the topic says that no more can come. A batch that is done again says the same
results again, under the same ids.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from dataplane.ingest.stamp import key_bytes
from dataplane.jobs.dedup import kafka_rows
from dataplane.jobs.queries import Start
from dataplane.jobs.slots import Recent, Slot
from dataplane.jobs.telling import NotStoredError, Teller, end_of
from dataplane.ledger.facts import ACKED, INGEST, Fact, FactBook, FactKey, log_key
from dataplane.ledger.meta import META_HEADER, Meta, encode_meta
from dataplane.ledger.units import bucket_of, partition_base
from dataplane.names import WIRE_VERSION, Purpose, lane_group, query_group
from dataplane.plan.queries import is_asked
from dataplane.plan.taps import Clock, decode_clock, encode_clock, pane_place
from dataplane.spec import PipeSpec
from dataplane.spec.windows import WINDOW_SOURCE
from dataplane.tables.records import TopicRecord

log = logging.getLogger("windows")

SLOTS: Final = 16
MOST_ROWS: Final = 20_000
TICK_S: Final = 1.0
BEHIND_US: Final = 10_000_000  # longer than ingest lets a record wait for its report, plus clocks that differ
# Without an id: what the open windows of a key say now.
RESULT_ROW: Final = "id string, pipe string, revision int, window string, key binary, end_us long, body binary"
_ACKED: Final = FactKey(INGEST, Fact.SENT, ACKED)


class Aggregating(StatefulProcessor):  # type: ignore[misc]  # PySpark is not typed here
    """Runs in Spark's Python workers."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of a slot."""
        self._keys = handle.getMapState("keys", "key binary", "kept binary")
        self._slot = handle.getValueState("slot", "recent binary, clock_us long, due_us long")

    def handleInputRows(self, _slot: Any, rows: Iterable[Row], _timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        """In: taps of one slot, and clocks. Out: the results of windows that closed, what changed keys say now."""
        known = self._slot.get() or (b"", 0, 0)
        slot = Slot(self._keys, Recent(bytes(known[0])), known[1], known[2])
        for row in sorted(rows, key=lambda row: row.offset):
            if row.key is not None:
                slot.take(bytes(row.value))
                continue
            for said in slot.tick(decode_clock(bytes(row.value))):
                yield Row(**msgspec.structs.asdict(said))
        for now in slot.current():
            yield Row(id=None, pipe=None, revision=None, window=None, key=now.key, end_us=None, body=now.body)
        slot.store()
        self._slot.update((slot.recent.encode(), slot.clock_us, slot.due_us))


class WindowsQuery:
    """At most one in a cell, for all windows of all its pipes."""

    name = "windows"
    reads: Purpose = "taps"
    may_forget = False  # open windows would be told wrong
    tasks = 2

    def __init__(self) -> None:
        self._teller: Teller | None = None
        self._ticking: Ticking | None = None

    def asked_by(self, spec: PipeSpec) -> bool:
        """Whether a revision has windows."""
        return is_asked(self.name, spec)

    def start(self, spark: SparkSession, start: Start) -> Any:
        """Start it, and its clock."""
        self._teller = Teller(start.settings.kafka, start.cell.cell, self.name)
        rows = kafka_rows(spark, start, self.reads, MOST_ROWS).select("key", "value", "offset")
        every = f"sequence(0, {SLOTS - 1})"
        own = f"array(cast(pmod(crc32(key), {SLOTS}) as int))"
        slots = rows.withColumn("slot", f.explode(f.expr(f"if(key is null, {every}, {own})")))
        results = slots.groupBy("slot").transformWithState(Aggregating(), RESULT_ROW, "append", "none")
        streaming = (
            results.writeStream.queryName(f"{start.cell.cell}-{self.name}")
            .option("checkpointLocation", start.checkpoint)
            .outputMode("append")
            .foreachBatch(Entering(start, self._teller))
            .start()
        )
        self._ticking = Ticking(start)
        return streaming

    def close(self) -> None:
        """Stop the clock, let go of the broker."""
        if self._ticking is not None:
            self._ticking.close()
        if self._teller is not None:
            self._teller.close()


class Entering:
    """The end of a batch: results are produced to the ingest topic, as ingest would, and booked as ACKed.

    What keys say now goes to the compacted `panes` topic, where a cell made by an earlier release may have none yet.
    """

    def __init__(self, start: Start, teller: Teller) -> None:
        self._teller, self._ingest = teller, start.cell.topics["ingest"]
        self._panes = start.cell.topics.get("panes")
        self._grace_us = start.settings.grace_s * 1_000_000

    def __call__(self, batch: DataFrame, _number: int) -> None:
        """Safe to run twice with the same batch: the results come again under their ids."""
        facts = FactBook()
        for row in batch.toLocalIterator():
            if row.id is None:
                self._show(row)
            else:
                self._enter(row, facts, time.time_ns() // 1_000)
        self._teller.await_stored()
        if len(facts):
            self._teller.tell(facts, [], [], WindowsQuery.name)

    def _show(self, row: Row) -> None:
        if self._panes is not None:
            key, body = bytes(row.key), None if row.body is None else bytes(row.body)
            place = pane_place(key, self._panes.partitions)
            self._teller.produce(self._panes.name, body, key=key, partition=place)

    def _enter(self, row: Row, facts: FactBook, now_us: int) -> None:
        stamp = bucket_of(row.end_us, now_us, self._grace_us)
        source = f"{WINDOW_SOURCE}{row.window}"
        meta = Meta(WIRE_VERSION, row.id, row.pipe, row.revision, source, row.end_us, now_us, *stamp)
        meta.producer = self._teller.producer
        headers = [(META_HEADER, encode_meta(meta)), ("content-type", b"application/json")]

        def stored(message: Any) -> None:
            position = partition_base(self._ingest.generation, message.partition()) + message.offset()
            facts.add(row.pipe, stamp.bucket, _ACKED, position)
            facts.add(row.pipe, stamp.bucket, log_key(ACKED, meta.producer), position)

        key = key_bytes(row.pipe, bytes(row.key).decode())
        self._teller.produce(self._ingest.name, bytes(row.body), stored, key=key, headers=headers)


class Ticking:
    """The clock: a thread that says on the taps topic up to which moment everything ingested has been tapped.

    It looks at where the ingest topic ends now, and waits until process lanes have settled all of that: what they
    tapped of it is stored. What dedup has under judgement comes back on the ingest topic, so that is waited for, too.
    """

    def __init__(self, start: Start) -> None:
        self._cell, kafka = start.cell, start.settings.kafka
        self._teller = Teller(kafka, self._cell.cell, "windows-clock")
        self._readers = {group: _reader(kafka, group) for group in self._groups()}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="windows-clock", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop it."""
        self._ending.set()
        self._thread.join(30)

    def _groups(self) -> tuple[str, str]:
        return lane_group(self._cell.cell, "process"), query_group(self._cell.cell, "dedup")

    def _run(self) -> None:
        while not self._ending.wait(TICK_S):
            try:
                now_us = time.time_ns() // 1_000
                if self._all_settled():
                    clock = encode_clock(Clock(now_us - BEHIND_US))
                    self._teller.produce(self._cell.topics["taps"].name, clock, partition=0)
                    self._teller.await_stored()
            except (KafkaException, NotStoredError) as exc:
                log.warning("the clock waits: %s", exc)
        self._teller.close()
        for reader in self._readers.values():
            reader.close()

    def _all_settled(self) -> bool:
        """Wait until what is on the topics now has been read; False if the query ends before that."""
        lanes, dedup = self._groups()
        ingest, asked = self._cell.topics["ingest"], self._cell.topics["dedup"]
        return self._passed(lanes, ingest) and self._passed(dedup, asked) and self._passed(lanes, ingest)

    def _passed(self, group: str, topic: TopicRecord) -> bool:
        reader = self._readers[group]
        places = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        ends = [end_of(reader, place) for place in places]
        while not self._ending.is_set():
            known = reader.committed(places, timeout=10)
            if all(place.offset >= end for place, end in zip(known, ends, strict=True)):
                return True
            self._ending.wait(0.2)
        return False


def _reader(kafka: str, group: str) -> Consumer:
    """To look at a group's offsets; it joins nothing and commits nothing."""
    return Consumer({"bootstrap.servers": kafka, "group.id": group, "enable.auto.commit": False, "log_level": 3})
