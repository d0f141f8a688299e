"""One table of the lake: a Delta table that Spark writes, so that every row is seen once or not yet, never twice.

No text of a customer reaches Spark's SQL: paths, predicates and rows are arguments of its DataFrame calls.
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way of writing it)

from dataplane.jobs.lake_batch import Hour, Key, Lot, Where, hour_of, key_of
from dataplane.ledger.meta import Meta

_ROWS: Final = (
    "partition int, offset long, id string, position long, child int, pipe string, revision int, source string, "
    "event_time_us long, ingest_time_us long, date date, hour int"
)


class Writing(NamedTuple):
    """Who writes, and the number of its batch: what was written under both is not written again, by nobody."""

    query: str
    batch: int


class LakeTable:
    """A table by its path; it is made by the first rows."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark, self._path = spark, path

    def known(self, lot: Lot) -> set[Key]:
        """Which of these messages the table holds already: a lane may send what it was killed with a second time.

        Files are skipped by partition and by the range of their positions, so in normal times nothing is read.
        """
        if not self._exists():
            return set()
        keys = self._spark.createDataFrame([key_of(meta) for meta in lot.metas.values()], "position long, child int")
        near = reduce(or_, [F.col("position").between(low, high) for low, high in lot.ranges()])
        held = self._spark.read.format("delta").load(self._path).where(_in_hours(lot.hours()) & near)
        found = held.select("position", "child").join(F.broadcast(keys), ["position", "child"], "left_semi")
        return {(row.position, row.child) for row in found.collect()}

    def append(self, records: DataFrame, rows: Mapping[Where, Meta], writing: Writing) -> None:
        """Add these rows, all or none; `records` are Kafka's, of which the bodies are taken."""
        about = self._spark.createDataFrame([(*where, *_about(meta)) for where, meta in rows.items()], _ROWS)
        chosen = table_rows(records.join(F.broadcast(about), ["partition", "offset"])).coalesce(1)
        options = {"txnAppId": writing.query, "txnVersion": str(writing.batch)}
        chosen.write.format("delta").mode("append").partitionBy("date", "hour").options(**options).save(self._path)

    def replace(self, rows: DataFrame, where: str) -> None:
        """Put these rows in the place of all that `where` (of our own making) is true of, in one step."""
        writer = rows.write.format("delta").mode("overwrite").partitionBy("date", "hour")
        (writer.option("replaceWhere", where) if self._exists() else writer).save(self._path)

    def compact(self) -> None:
        """Many small files of an hour become one; readers go on seeing either the old ones or the new one."""
        self._delta().optimize().executeCompaction()

    def sweep(self) -> None:
        """Delete files that no reader of the last seven days can still be reading."""
        self._delta().vacuum()

    def _exists(self) -> bool:
        java: Any = self._spark._jvm
        return bool(java.io.delta.tables.DeltaTable.isDeltaTable(self._spark._jsparkSession, self._path))

    def _delta(self) -> Any:
        java: Any = self._spark._jvm
        return java.io.delta.tables.DeltaTable.forPath(self._spark._jsparkSession, self._path)


def table_rows(known: DataFrame) -> DataFrame:
    """The columns of a table, from Kafka's `value` and what we know of it (`_ROWS`)."""
    text = F.try_validate_utf8(F.col("value").cast("string"))
    return known.select(
        "id",
        "position",
        "child",
        "pipe",
        "revision",
        "source",
        F.timestamp_micros("event_time_us").alias("event_time"),
        F.timestamp_micros("ingest_time_us").alias("ingest_time"),
        text.alias("body"),
        F.when(text.isNull(), F.col("value")).alias("body_bytes"),
        "date",
        "hour",
    )


def _about(meta: Meta) -> tuple[Any, ...]:
    times = (meta.event_time_us, meta.ingest_time_us)
    return (meta.id, *key_of(meta), meta.pipe, meta.revision, meta.source, *times, *hour_of(meta.ingest_time_us))


def _in_hours(hours: Iterable[Hour]) -> Any:
    return reduce(or_, [(F.col("date") == F.lit(at.date)) & (F.col("hour") == at.hour) for at in sorted(hours)])
