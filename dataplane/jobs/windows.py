"""The windows query: aggregates tapped events and sends the result of each closed window into its pipe as a message.

Results are a function of the taps: the stamps of the events decide which window takes them (plan.taps), and a window
closes only when the clock on the topic shows that no more events can come. A repeated batch produces the same results
under the same ids.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaException, TopicPartition
from msgspec import Struct
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from dataplane.ingest.stamp import key_bytes
from dataplane.jobs.dedup import kafka_rows, start_stream
from dataplane.jobs.ledger_reporter import QueryLedgerReporter, ReportWriteError, end_of
from dataplane.jobs.queries import QueryStart
from dataplane.jobs.slots import RecentEvents, SlotBatch, SlotClocks
from dataplane.jobs.task_writers import Rows, task_reporter, write_in_tasks
from dataplane.kafka_clients import make_offset_client
from dataplane.ledger.facts import ACKED, INGEST, Fact, FactBook, FactKey, log_key
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.ledger.units import bucket_of, partition_base
from dataplane.names import WIRE_VERSION, Purpose, lane_group, query_group
from dataplane.plan.queries import needs_query
from dataplane.plan.taps import TapClock, decode_clock, digest_partition, encode_clock
from dataplane.spec import PipeSpec
from dataplane.spec.windows import WINDOW_SOURCE
from dataplane.tables.records import TopicRecord

log = logging.getLogger("windows")

SLOTS: Final = 16
MOST_ROWS: Final = 20_000
TICK_S: Final = 1.0
BEHIND_US: Final = 10_000_000  # longer than ingest waits for a delivery report, plus clock differences
# A row without an id holds the current values of a key's open windows.
RESULT_ROW: Final = "id string, pipe string, revision int, window string, key binary, end_us long, body binary"
_ACKED: Final = FactKey(INGEST, Fact.SENT, ACKED)


class WindowProcessor(StatefulProcessor):  # type: ignore[misc]  # PySpark is not typed here
    """Stateful processor in Spark's Python workers; one group of rows is a slot. `partitions`: of the taps topic."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of a slot. The cells of earlier releases have one partition, and no state `clocks`."""
        self._keys = handle.getMapState("keys", "key binary", "kept binary")
        self._slot = handle.getValueState("slot", "recent binary, clock_us long, due_us long")
        self._clocks = handle.getValueState("clocks", "by_partition binary") if self._partitions > 1 else None

    def handleInputRows(self, _slot: Any, rows: Iterable[Row], _timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        """Aggregate the taps of one slot.

        In:  taps of one slot, and clock records (without a key). All taps of a key are in one partition.
        Out: the results of closed windows, then the current values of the changed keys.
        """
        known = self._slot.get() or (b"", 0, 0)
        slot = SlotBatch(self._keys, RecentEvents(bytes(known[0]), self._partitions), known[1], known[2])
        clocks = self._read_clocks()
        for row in sorted(rows, key=lambda row: (row.partition, row.offset)):
            if row.key is not None:
                slot.take(bytes(row.value), row.partition)
                continue
            for result in slot.tick(clocks.note(row.partition, decode_clock(bytes(row.value)))):
                yield Row(**msgspec.structs.asdict(result))
        for value in slot.current():
            yield Row(id=None, pipe=None, revision=None, window=None, key=value.key, end_us=None, body=value.body)
        slot.store()
        self._slot.update((slot.recent.encode(), slot.clock_us, slot.due_us))
        if self._clocks is not None:
            self._clocks.update((clocks.encode(),))

    def _read_clocks(self) -> SlotClocks:
        known = self._clocks.get() if self._clocks is not None else None
        return SlotClocks(self._partitions, bytes(known[0]) if known else b"")


class WindowsQuery:
    """The windows query of a cell; it serves all windows of all pipes."""

    name = "windows"
    reads: Purpose = "taps"
    may_forget = False  # open windows would report wrong results
    has_state = True
    tasks = 2

    def __init__(self) -> None:
        self._ticking: TapTicker | None = None

    def is_needed_by(self, spec: PipeSpec) -> bool:
        """Return True if the spec has windows."""
        return needs_query(self.name, spec)

    def start(self, spark: SparkSession, start: QueryStart) -> Any:
        """Start the query and its clock; return Spark's StreamingQuery."""
        topics, grace_us = start.cell.topics, start.settings.grace_s * 1_000_000
        writer = ResultWriter(start.settings.kafka, start.cell.cell, topics["ingest"], topics.get("panes"), grace_us)
        rows = kafka_rows(spark, start, self.reads, MOST_ROWS).select("key", "value", "partition", "offset")
        all_slots = f"sequence(0, {SLOTS - 1})"
        own_slot = f"array(cast(pmod(crc32(key), {SLOTS}) as int))"
        slots = rows.withColumn("slot", f.explode(f.expr(f"if(key is null, {all_slots}, {own_slot})")))
        results = slots.groupBy("slot").transformWithState(
            WindowProcessor(topics["taps"].partitions), RESULT_ROW, "append", "none"
        )
        streaming = start_stream(results, start, self.name, lambda batch, _: write_in_tasks(batch, writer, sum))
        self._ticking = TapTicker(start)
        return streaming

    def close(self) -> None:
        """Stop the clock and close its Kafka clients."""
        if self._ticking is not None:
            self._ticking.close()


class ResultWriter(Struct, frozen=True):
    """Writer in a task: produces results to the ingest topic, as ingest would, and reports them as ACKed.

    Current values of keys are produced to the compacted `panes` topic, which a cell of an earlier release may lack.
    """

    kafka: str
    cell: str
    ingest: TopicRecord
    panes: TopicRecord | None
    grace_us: int

    def __call__(self, rows: Rows) -> int:
        """Write the rows; return the number of results. Idempotent: repeated results have the same ids."""
        reporter = task_reporter(self.kafka, self.cell, WindowsQuery.name)
        facts, results = FactBook(), 0
        for row in rows:
            if row["id"] is None:
                self._produce_current(reporter, row)
            else:
                self._produce_result(reporter, row, facts, time.time_ns() // 1_000)
                results += 1
        reporter.await_stored()
        if len(facts):
            reporter.report(facts, [], [], WindowsQuery.name)
        return results

    def _produce_current(self, reporter: QueryLedgerReporter, row: Mapping[str, Any]) -> None:
        if self.panes is not None:
            key = row["key"]
            partition = digest_partition(key, self.panes.partitions)
            reporter.produce(self.panes.name, row["body"], key=key, partition=partition)

    def _produce_result(
        self, reporter: QueryLedgerReporter, row: Mapping[str, Any], facts: FactBook, now_us: int
    ) -> None:
        pipe, end_us = row["pipe"], row["end_us"]
        stamp = bucket_of(end_us, now_us, self.grace_us)
        source = f"{WINDOW_SOURCE}{row['window']}"
        meta = MessageMeta(WIRE_VERSION, row["id"], pipe, row["revision"], source, end_us, now_us, *stamp)
        meta.producer = reporter.producer
        headers = [(META_HEADER, encode_meta(meta)), ("content-type", b"application/json")]

        def stored(message: Any) -> None:
            position = partition_base(self.ingest.generation, message.partition()) + message.offset()
            facts.add(pipe, stamp.bucket, _ACKED, position)
            facts.add(pipe, stamp.bucket, log_key(ACKED, meta.producer), position)

        key = key_bytes(pipe, row["key"].decode())
        reporter.produce(self.ingest.name, row["body"], stored, key=key, headers=headers)


class TapTicker:
    """The clock: a thread that reports on the taps topic up to which time all ingested events have been tapped.

    Each partition has its own clock records, because a reader knows only that it has read what precedes one.
    It reads the end offsets of the ingest topic and waits until the process lanes have committed them, and the slow
    lane and the bulk query what these have passed on: the taps of these events are then stored. Messages that dedup
    judges return to the ingest topic, so it waits for them, too.
    """

    def __init__(self, start: QueryStart) -> None:
        self._cell, kafka = start.cell, start.settings.kafka
        self._reporter = QueryLedgerReporter(kafka, self._cell.cell, "windows-clock")
        cell, topics = self._cell.cell, self._cell.topics
        stages = [(lane_group(cell, "process"), topics["ingest"])]
        stages += [(lane_group(cell, "process-slow"), topics["process-slow"])] if "process-slow" in topics else []
        stages += [(query_group(cell, "bulk"), topics["bulk"])] if "bulk" in topics else []
        self._stages = stages
        self._dedup = query_group(cell, "dedup")
        self._readers = {group: make_offset_client(kafka, group) for group in (*dict(stages), self._dedup)}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="windows-clock", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread; wait up to 30 s for it to end."""
        self._ending.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._ending.wait(TICK_S):
            try:
                now_us = time.time_ns() // 1_000
                if self._all_settled():
                    clock, taps = encode_clock(TapClock(now_us - BEHIND_US)), self._cell.topics["taps"]
                    for partition in range(taps.partitions):
                        self._reporter.produce(taps.name, clock, partition=partition)
                    self._reporter.await_stored()
            except (KafkaException, ReportWriteError) as exc:
                log.warning("the windows clock is delayed: %s", exc)
        self._reporter.close()
        for reader in self._readers.values():
            reader.close()

    def _all_settled(self) -> bool:
        """Wait until the records now on the topics have been settled; return False if the query ends before that."""
        asked = self._cell.topics["dedup"]
        return self._steps_passed() and self._passed(self._dedup, asked) and self._steps_passed()

    def _steps_passed(self) -> bool:
        return all(self._passed(group, topic) for group, topic in self._stages)

    def _passed(self, group: str, topic: TopicRecord) -> bool:
        reader = self._readers[group]
        partitions = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        ends = [end_of(reader, partition) for partition in partitions]
        while not self._ending.is_set():
            committed = reader.committed(partitions, timeout=10)
            if all(entry.offset >= end for entry, end in zip(committed, ends, strict=True)):
                return True
            self._ending.wait(0.2)
        return False
