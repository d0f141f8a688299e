"""The dedup query: judges every message that a pipe asks about, and puts it back on the ingest topic with the verdict.

Rows are grouped by slot, a share of all identities, and judged in the order of the dedup topic's one partition. A batch
that is done again judges alike, because its state is what it was before: what was put back twice meets the ledger's
sets and the message's own id, as any redelivery does.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessor, StatefulProcessorHandle, TimerValues

from dataplane.jobs.queries import Start
from dataplane.jobs.telling import Teller
from dataplane.ledger.audit import Mark
from dataplane.ledger.facts import DEDUP, JUDGED, Fact, FactBook, FactKey
from dataplane.ledger.meta import Headers, read_meta
from dataplane.ledger.units import format_position, place_of
from dataplane.names import Purpose
from dataplane.plan.dedup import Seen, judge
from dataplane.plan.queries import is_asked
from dataplane.process.dedup import VERDICT_HEADER, read_question
from dataplane.record_limits import CLIENT_MAX_BYTES
from dataplane.spec import PipeSpec

SLOTS: Final = 16
MOST_ROWS: Final = 10_000  # a batch holds their bodies
HOUR_S: Final = 3_600
# Windows and how long an identity of one is remembered, by the wall clock: a query may stand still for a whole window.
CLASSES: Final = {"hour": HOUR_S, "day": 24 * HOUR_S, "week": 7 * 24 * HOUR_S}
JUDGED_ROW: Final = (
    "offset long, pipe string, bucket int, position long, sent boolean, partition int, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)
_JUDGED: Final = FactKey(DEDUP, Fact.SENT, JUDGED)


def class_of(window_us: int) -> str:
    """The narrowest class that holds a window."""
    return next(name for name, seconds in CLASSES.items() if window_us <= seconds * 1_000_000)


class Judge(StatefulProcessor):  # type: ignore[misc]  # PySpark is not typed here
    """Runs in Spark's Python workers; the state is a map of identity -> who went on, for each class of windows."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the maps."""
        self._known: dict[str, MapState] = {
            name: handle.getMapState(name, "identity binary", "position long, ingest_us long", 2 * seconds * 1_000)
            for name, seconds in CLASSES.items()
        }

    def handleInputRows(self, _slot: Any, rows: Iterable[Row], _timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        """In: messages of one slot. Out: one row each, in the topic's order; `sent`: whether it is put back."""
        for row in sorted(rows, key=lambda row: row.offset):
            yield self._judged(row)

    def _judged(self, row: Row) -> Row:
        headers: Headers = [(header["key"], bytes(header["value"])) for header in row.headers]
        meta, question = read_meta(headers), read_question(headers)
        known = self._known[class_of(question.window_us)]
        identity = (bytes(row.key),)
        before = known.getValue(identity)
        seen = Seen(meta.position, meta.ingest_time_us)
        verdict = judge(Seen(*before) if before else None, seen, question.window_us)
        if verdict.remember is not None:
            known.updateValue(identity, tuple(verdict.remember))
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
    """At most one in a cell, for all pipes that ask."""

    name = "dedup"
    reads: Purpose = "dedup"
    may_forget = True  # then repeats of what it forgot go on; nothing is lost
    tasks = 2

    def __init__(self) -> None:
        self._teller: Teller | None = None

    def asked_by(self, spec: PipeSpec) -> bool:
        """Whether a revision names what its events are known by."""
        return is_asked(self.name, spec)

    def start(self, spark: SparkSession, start: Start) -> Any:
        """Start it."""
        self._teller = Teller(start.settings.kafka, start.cell.cell, self.name)
        rows = kafka_rows(spark, start, self.reads, MOST_ROWS)
        slots = rows.withColumn("slot", f.expr(f"cast(pmod(crc32(key), {SLOTS}) as int)"))
        judged = slots.groupBy("slot").transformWithState(Judge(), JUDGED_ROW, "append", "processingTime")
        return (
            judged.writeStream.queryName(f"{start.cell.cell}-{self.name}")
            .option("checkpointLocation", start.checkpoint)
            .outputMode("append")
            .foreachBatch(PutBack(start, self._teller))
            .start()
        )

    def close(self) -> None:
        """Let go of the broker."""
        if self._teller is not None:
            self._teller.close()


class PutBack:
    """The end of a batch: judged messages go back in order, then the ledger is told; only then is the batch done."""

    def __init__(self, start: Start, teller: Teller) -> None:
        self._kafka, self._teller = start.settings.kafka, teller
        self._asked, self._ingest = start.cell.topics["dedup"], start.cell.topics["ingest"]

    def __call__(self, batch: DataFrame, _number: int) -> None:
        """Safe to run twice with the same batch."""
        judged = batch.persist()
        try:
            sent = judged.where("sent").coalesce(1).sortWithinPartitions("offset")
            write_rows(sent.select("partition", "key", "value", "headers"), self._kafka, self._ingest.name)
            self._tell(judged.select("offset", "pipe", "bucket", "position").collect())
        finally:
            judged.unpersist()

    def _tell(self, rows: list[Row]) -> None:
        if not rows:
            return
        facts = FactBook()
        for row in rows:
            facts.add(row.pipe, row.bucket, _JUDGED, row.position)
        inputs = [Mark(self._asked.name, 0, max(row.offset for row in rows) + 1)]
        self._teller.tell(facts, inputs, self._teller.highs(self._ingest), DedupQuery.name)


def kafka_rows(spark: SparkSession, start: Start, purpose: Purpose, most_rows: int) -> DataFrame:
    """A topic of the cell as a stream, headers included. Offsets that are gone end the query, never skip."""
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", start.settings.kafka)
        .option("subscribe", start.cell.topics[purpose].name)
        .option("startingOffsets", start.starting)
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", str(most_rows))
        .option("kafka.fetch.max.wait.ms", "50")
        .load()
    )


def write_rows(rows: DataFrame, kafka: str, topic: str) -> None:
    """Produce rows (key, value, headers, perhaps partition) with acks=all; returns when all are stored."""
    (
        rows.write.format("kafka")
        .option("kafka.bootstrap.servers", kafka)
        .option("kafka.acks", "all")
        .option("kafka.enable.idempotence", "true")
        .option("kafka.compression.type", "lz4")
        .option("kafka.max.request.size", str(CLIENT_MAX_BYTES))
        .option("topic", topic)
        .save()
    )
