"""The dedup query: judges each message of a pipe with dedup and returns it to the ingest topic with the verdict.

Rows are grouped by slot (a share of all identities) and judged in the order of the dedup topic's one partition. A
repeated batch starts from the same state, so it gives the same verdicts. A message that is returned twice is handled
like any redelivery: facts are sets, and the message keeps its id.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from msgspec import Struct
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessor, StatefulProcessorHandle, TimerValues

from dataplane.jobs.ledger_reporter import QueryLedgerReporter
from dataplane.jobs.queries import QueryStart
from dataplane.jobs.task_writers import Rows, task_reporter, write_in_tasks
from dataplane.kafka_java import spark_kafka_options
from dataplane.ledger.audit import OffsetMark
from dataplane.ledger.facts import DEDUP, JUDGED, Fact, FactBook, FactKey
from dataplane.ledger.meta import Headers, read_meta
from dataplane.ledger.units import format_position, place_of
from dataplane.names import Purpose
from dataplane.plan.dedup import SeenEvent, judge
from dataplane.plan.queries import needs_query
from dataplane.process.dedup import VERDICT_HEADER, read_question
from dataplane.spec import PipeSpec

SLOTS: Final = 16
MOST_ROWS: Final = 10_000  # of a batch, which holds their bodies
HOUR_S: Final = 3_600
# Window classes in seconds. An identity is remembered for twice as long by the wall clock, because a query may be down
# for a whole window.
CLASSES: Final = {"hour": HOUR_S, "day": 24 * HOUR_S, "week": 7 * 24 * HOUR_S}
JUDGED_ROW: Final = (
    "offset long, pipe string, bucket int, position long, sent boolean, partition int, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)
_JUDGED: Final = FactKey(DEDUP, Fact.SENT, JUDGED)


def class_of(window_us: int) -> str:
    """Return the narrowest class that covers a window of `window_us` microseconds."""
    return next(name for name, seconds in CLASSES.items() if window_us <= seconds * 1_000_000)


class KnownEvents:
    """Events that passed, by identity: Spark's map state of one window class. A batch reads each entry once."""

    def __init__(self, state: MapState) -> None:
        self._state = state
        self._known: dict[bytes, SeenEvent | None] = {}
        self._changed: dict[bytes, SeenEvent] = {}

    def get(self, identity: bytes) -> SeenEvent | None:
        """Return the latest event that passed with this identity; None if there is none."""
        if identity not in self._known:
            found = self._state.getValue((identity,))
            self._known[identity] = SeenEvent(*found) if found else None
        return self._known[identity]

    def remember(self, identity: bytes, event: SeenEvent) -> None:
        """Remember an event that passed, from now on."""
        self._known[identity] = self._changed[identity] = event

    def store(self) -> None:
        """Write the changed identities to Spark's state, and forget what was read."""
        for identity, event in self._changed.items():
            self._state.updateValue((identity,), tuple(event))
        self._known.clear()
        self._changed.clear()


class DedupProcessor(StatefulProcessor):  # type: ignore[misc]  # PySpark is not typed here
    """Stateful processor in Spark's Python workers.

    State: one map per window class, from an identity to the latest message that passed with it.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state maps."""
        self._known = {
            name: KnownEvents(
                handle.getMapState(name, "identity binary", "position long, ingest_us long", 2 * seconds * 1_000)
            )
            for name, seconds in CLASSES.items()
        }

    def handleInputRows(self, _slot: Any, rows: Iterable[Row], _timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        """Judge the messages of one slot.

        In:  messages of one slot.
        Out: one row per message, in the topic's order; `sent` is true if the message is returned to ingest.
        """
        for row in sorted(rows, key=lambda row: row.offset):
            yield self._judged(row)
        for known in self._known.values():
            known.store()

    def _judged(self, row: Row) -> Row:
        headers: Headers = [(header["key"], bytes(header["value"])) for header in row.headers]
        meta, question = read_meta(headers), read_question(headers)
        known, identity = self._known[class_of(question.window_us)], bytes(row.key)
        seen = SeenEvent(meta.position, meta.ingest_time_us)
        verdict = judge(known.get(identity), seen, question.window_us)
        if verdict.remember is not None:
            known.remember(identity, verdict.remember)
        first = b"" if verdict.first is None else format_position(verdict.first).encode()
        return Row(
            offset=row.offset,
            pipe=meta.pipe,
            bucket=meta.bucket,
            position=meta.position,
            sent=verdict.passes or verdict.first is not None,
            partition=place_of(meta.position).partition,
            key=question.key,
            value=bytes(row.value) if verdict.passes else b"",
            headers=[{"key": name, "value": value} for name, value in [*headers[:-1], (VERDICT_HEADER, first)]],
        )


class DedupQuery:
    """The dedup query of a cell; it serves all pipes with dedup."""

    name = "dedup"
    reads: Purpose = "dedup"
    may_forget = True  # then repeats of forgotten events pass; nothing is lost
    has_state = True
    tasks = 2

    def __init__(self) -> None:
        self._reporter: QueryLedgerReporter | None = None

    def is_needed_by(self, spec: PipeSpec) -> bool:
        """Return True if the spec has dedup."""
        return needs_query(self.name, spec)

    def start(self, spark: SparkSession, start: QueryStart) -> Any:
        """Start the query and return Spark's StreamingQuery."""
        self._reporter = QueryLedgerReporter(start.settings.kafka, start.cell.cell, self.name)
        rows = kafka_rows(spark, start, self.reads, MOST_ROWS)
        slots = rows.withColumn("slot", f.expr(f"cast(pmod(crc32(key), {SLOTS}) as int)"))
        judged = slots.groupBy("slot").transformWithState(DedupProcessor(), JUDGED_ROW, "append", "processingTime")
        return start_stream(judged, start, self.name, DedupWriter(start, self._reporter))

    def close(self) -> None:
        """Close the Kafka clients."""
        if self._reporter is not None:
            self._reporter.close()


class DedupWriter:
    """Sink of a batch: tasks return the judged messages, then the driver reports the offsets, which completes it."""

    def __init__(self, start: QueryStart, reporter: QueryLedgerReporter) -> None:
        self._reporter = reporter
        self._asked, self._ingest = start.cell.topics["dedup"], start.cell.topics["ingest"]
        self._writer = VerdictWriter(start.settings.kafka, start.cell.cell, self._ingest.name)

    def __call__(self, batch: DataFrame, _number: int) -> None:
        """Write one batch. Idempotent: safe to run twice with the same batch.

        One task writes all messages of an ingest partition in their order, so messages of a key stay in order.
        """
        rows = batch.repartition(self._ingest.partitions, "partition").sortWithinPartitions("offset")
        if end := write_in_tasks(rows, self._writer, max):
            inputs = [OffsetMark(self._asked.name, 0, end)]
            self._reporter.report(FactBook(), inputs, self._reporter.highs(self._ingest), DedupQuery.name)


class VerdictWriter(Struct, frozen=True):
    """Writer in a task: returns judged messages to the ingest topic, and reports their facts once they are stored."""

    kafka: str
    cell: str
    ingest: str

    def __call__(self, rows: Rows) -> int:
        """Write the rows; return the offset after the last one, 0 without rows."""
        reporter = task_reporter(self.kafka, self.cell, DedupQuery.name)
        facts, end = FactBook(), 0
        for row in rows:
            if row["sent"]:
                headers = [(header["key"], header["value"]) for header in row["headers"]]
                record = {"key": row["key"], "partition": row["partition"], "headers": headers}
                reporter.produce(self.ingest, row["value"], **record)
            facts.add(row["pipe"], row["bucket"], _JUDGED, row["position"])
            end = max(end, row["offset"] + 1)
        reporter.await_stored()
        if len(facts):
            reporter.report(facts, [], [], DedupQuery.name)
        return end


def kafka_rows(spark: SparkSession, start: QueryStart, purpose: Purpose, most_rows: int) -> DataFrame:
    """Return a topic of the cell as a stream with headers. Offsets below the low watermark fail the query.

    most_rows: limit of a batch, in records
    """
    return (
        spark.readStream.format("kafka")
        .options(**spark_kafka_options(start.settings.kafka))
        .option("subscribe", start.cell.topics[purpose].name)
        .option("startingOffsets", start.starting)
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", str(most_rows))
        .option("kafka.fetch.max.wait.ms", "50")
        .load()
    )


def start_stream(
    results: DataFrame, start: QueryStart, query: str, write: Callable[[DataFrame, int], object], *, every_ms: int = 0
) -> Any:
    """Start a query that passes each batch of results to `write`; return Spark's StreamingQuery.

    every_ms: a batch begins at most so often; 0 as soon as there are records
    """
    return (
        results.writeStream.queryName(f"{start.cell.cell}-{query}")
        .option("checkpointLocation", start.checkpoint)
        .outputMode("append")
        .foreachBatch(write)
        .trigger(processingTime=f"{every_ms} milliseconds")
        .start()
    )
