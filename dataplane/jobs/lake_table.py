"""One lake table: a Delta table written by Spark, so that readers see each row once or not yet, never twice.

No customer text reaches Spark's SQL: paths, predicates and rows are arguments of DataFrame calls.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from dataplane.jobs.lake_batch import Key, LakeGroup, LakeHour, Where, hour_of, key_of
from dataplane.jobs.lake_columns import TypedColumns
from dataplane.ledger.meta import MessageMeta

_ROWS: Final = (
    "partition int, offset long, id string, position long, child int, pipe string, revision int, source string, "
    "event_time_us long, ingest_time_us long, date date, hour int"
)
_TIMES: Final = "spark.sql.parquet.outputTimestampType"


class LakeWrite(NamedTuple):
    """Query and batch number of a write; Delta skips a write whose query and batch it has already committed."""

    query: str
    batch: int


class LakeTable:
    """Delta table at a path; the first write creates it.

    typed: typed columns of its rows. A write adds those that the table lacks, and never changes or removes one
    """

    def __init__(self, spark: SparkSession, path: str, typed: TypedColumns | None = None) -> None:
        self._spark, self._path, self._typed = spark, path, typed

    def known(self, group: LakeGroup) -> set[Key]:
        """Return the keys of the messages that the table holds already: after a kill, a lane may send a message twice.

        Delta skips files by partition and by their range of positions, so normally no file is read.
        """
        if not self._exists():
            return set()
        keys = self._spark.createDataFrame([key_of(meta) for meta in group.metas.values()], "position long, child int")
        in_ranges = reduce(or_, [F.col("position").between(low, high) for low, high in group.ranges()])
        held = self._spark.read.format("delta").load(self._path).where(_in_hours(group.hours()) & in_ranges)
        found = held.select("position", "child").join(F.broadcast(keys), ["position", "child"], "left_semi")
        return {(row.position, row.child) for row in found.collect()}

    def append(self, records: DataFrame, rows: Mapping[Where, MessageMeta], writing: LakeWrite) -> None:
        """Append these rows, all or none; the bodies come from `records`, the rows of Spark's Kafka source."""
        envelopes = self._spark.createDataFrame([(*where, *_envelope_row(meta)) for where, meta in rows.items()], _ROWS)
        chosen = self._rows(records.join(F.broadcast(envelopes), ["partition", "offset"])).coalesce(1)
        options = {"txnAppId": writing.query, "txnVersion": str(writing.batch)} | self._evolution()
        with self._encoded_times(records.sparkSession, self._typed is not None):
            chosen.write.format("delta").mode("append").partitionBy("date", "hour").options(**options).save(self._path)

    def replace(self, records: DataFrame, where: str) -> None:
        """Replace all rows that match `where` (a predicate of our own, never customer text) in one commit.

        records: columns of the envelope (`_ROWS`), and the bodies as `value`
        """
        options = {"replaceWhere": where} if self._exists() else {}
        writer = self._rows(records).write.format("delta").mode("overwrite").partitionBy("date", "hour")
        with self._encoded_times(records.sparkSession, self._typed is not None):
            writer.options(**options, **self._evolution()).save(self._path)

    def replace_events(self, records: DataFrame, positions: DataFrame, where: str) -> None:
        """Replace all rows at these positions in one commit; rows at others, which may be appended meanwhile, stay.

        records:   as for `replace`
        positions: column `position`; those without a row in `records` lose theirs
        where:     predicate (never customer text) that holds for all rows of these positions
        """
        if not self._exists():
            self.replace(records, where)
            return
        rows, key = self._rows(records), ["date", "hour", "position", "child"]
        with self._encoded_times(records.sparkSession, self._typed is not None):
            if self._typed is not None:  # a merge adds no columns
                rows.limit(0).write.format("delta").mode("append").options(**self._evolution()).save(self._path)
            held = self._spark.read.format("delta").load(self._path).where(where).select(key)
            gone = held.join(positions, "position", "left_semi").join(rows, key, "left_anti")
            source = rows.withColumn("is_gone", F.lit(False)).unionByName(
                gone.withColumn("is_gone", F.lit(True)), allowMissingColumns=True
            )
            columns = {name: f"source.`{name}`" for name in rows.columns}
            same = " AND ".join(f"held.{name} = source.{name}" for name in key)
            merge = self._delta().alias("held").merge(source.alias("source")._jdf, same)
            merge = merge.whenMatched("source.is_gone").delete().whenMatched().updateExpr(columns)
            merge.whenNotMatched("NOT source.is_gone").insertExpr(columns).execute()

    def compact(self) -> None:
        """Compact the small files of each hour; readers see either the old files or the new one."""
        # Also those of a table that has lost the option: its earlier rows are typed.
        is_typed = "event" in self._spark.read.format("delta").load(self._path).columns
        with self._encoded_times(self._spark, is_typed):
            self._delta().optimize().executeCompaction()

    def sweep(self) -> None:
        """Delete files that no table version of the last seven days refers to."""
        self._delta().vacuum()

    def _rows(self, records: DataFrame) -> DataFrame:
        typed = self._typed
        if typed is not None and self._exists():
            typed = typed.of_table(self._spark.read.format("delta").load(self._path))
        return table_rows(records, [] if typed is None else typed.columns())

    def _evolution(self) -> dict[str, str]:
        return {"mergeSchema": "true"} if self._typed is not None else {}

    @contextmanager
    def _encoded_times(self, spark: SparkSession, is_typed: bool) -> Iterator[None]:
        """Write times as microseconds in files of typed tables.

        Spark's default, INT96, makes Arrow's readers refuse a file with the year 9999. Files of other tables keep it,
        because readers of files alone, such as DuckDB, would see another type in new files.
        """
        before = spark.conf.get(_TIMES)
        if is_typed:
            spark.conf.set(_TIMES, "TIMESTAMP_MICROS")
        try:
            yield
        finally:
            spark.conf.set(_TIMES, before)

    def _exists(self) -> bool:
        java: Any = self._spark._jvm
        return bool(java.io.delta.tables.DeltaTable.isDeltaTable(self._spark._jsparkSession, self._path))

    def _delta(self) -> Any:
        java: Any = self._spark._jvm
        return java.io.delta.tables.DeltaTable.forPath(self._spark._jsparkSession, self._path)


def table_rows(records: DataFrame, typed: Iterable[Column] = ()) -> DataFrame:
    """Return the columns of a table, from Kafka's `value` and the columns of the envelope (`_ROWS`)."""
    text = F.try_validate_utf8(F.col("value").cast("string"))
    return records.select(
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
        *typed,
        "date",
        "hour",
    )


def _envelope_row(meta: MessageMeta) -> tuple[Any, ...]:
    times = (meta.event_time_us, meta.ingest_time_us)
    return (meta.id, *key_of(meta), meta.pipe, meta.revision, meta.source, *times, *hour_of(meta.ingest_time_us))


def _in_hours(hours: Iterable[LakeHour]) -> Any:
    return reduce(or_, [(F.col("date") == F.lit(at.date)) & (F.col("hour") == at.hour) for at in sorted(hours)])
