"""`python -m dataplane.jobs.lake_recompute`: recompute a time range of a lake table with one revision.

The events of the ingest topic pass the same plan as in lanes. The rows of the range are replaced in one commit, so
readers see either all old rows or all new ones. The ledger does not change: it records the original deliveries.
"""

import argparse
import logging
import os
import sys
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from dataplane.jobs.lake_columns import TypedColumns, UntypableError, typed_columns_of
from dataplane.jobs.lake_table import LakeTable
from dataplane.jobs.lake_writer import table_path
from dataplane.jobs.recompute_task import ASKED, RECOMPUTED, SENT, RecomputeRequest, RecomputeTask, verdicts
from dataplane.jobs.recompute_windows import WindowTask, refolded_results
from dataplane.kafka_java import spark_kafka_options
from dataplane.plan import compile_plan
from dataplane.process.plans import PlanCache
from dataplane.runtime.lake_conf import LAKE_CONF
from dataplane.runtime.settings import DataPlaneSettings, settings_from
from dataplane.spec import ColumnsEncoding, LakeDestination, encoding_of
from dataplane.tables.control import ControlReader, ControlTable, snapshot_path
from dataplane.tables.lookup_store import lookup_folder
from dataplane.tables.records import PlanRecord, RegisteredSchema, TopicRecord

MARGIN_US: Final = 60_000_000  # clocks of ingest and brokers differ, and lanes may not have written the last minute yet
READ_WITHIN_S: Final = 30.0


class CannotRecomputeError(Exception):
    """The request cannot be carried out; the message says what is needed."""


def recompute(
    spark: SparkSession, settings: DataPlaneSettings, table: ControlTable, request: RecomputeRequest
) -> RecomputeRequest:
    """Recompute the rows and return the request with the range that was written.

    The range starts no earlier than the data that Kafka still retains. Raises CannotRecomputeError if the request
    cannot be carried out, and Spark's own errors.
    """
    pipe, plan = table.pipe(request.pipe), table.plan(request.pipe, request.revision)
    cell = table.cell(pipe.cell) if pipe is not None else None
    if pipe is None or plan is None or cell is None:
        raise CannotRecomputeError(
            f"needs a pipe and a revision that are published, got {request.pipe}@{request.revision}"
        )
    destination = plan.spec.destinations.get(request.destination)
    if not isinstance(destination, LakeDestination):
        raise CannotRecomputeError(f"needs a lake destination of that revision, got {request.destination}")
    typed = typed_columns(table, pipe.tenant, request, destination)
    earlier = {one.revision: one.spec for one in table if isinstance(one, PlanRecord) and one.pipe == request.pipe}
    hashes = any(compile_plan(spec).needs_salt for spec in earlier.values())
    salt = PlanCache(table, settings.fernet_keys).salt(request.pipe) if hashes else b""
    if salt is None:
        raise CannotRecomputeError("needs the tenant's salt and PENSTOCK_FERNET_KEYS: a step of a revision hashes")
    topic = cell.topics["ingest"]
    records = _ingested(spark, settings, topic)
    complete_us = _retained_since_us(records)
    span = request._replace(since_us=max(request.since_us, complete_us))
    dedup = {number: spec.dedup for number, spec in earlier.items() if spec.dedup is not None}
    lookups = lookup_folder(settings.var)
    task = RecomputeTask(span, plan.spec, salt, pipe.tenant, topic.generation, lookups, complete_us, dedup)
    made = _made(spark, records, task, WindowTask(task, earlier)).persist()
    try:
        path = table_path(settings.lakes, destination, pipe.tenant, request.pipe, request.destination)
        lake, rows, micros = LakeTable(spark, path, typed), made.where("child >= 0"), "unix_micros(ingest_time)"
        if request.key is None:
            lake.replace(rows, f"{micros} >= {span.since_us} AND {micros} < {span.until_us}")
        else:  # results of windows are sent later than their events
            lake.replace_events(rows, made.where("child < 0").select("position"), f"{micros} >= {span.since_us}")
    finally:
        made.unpersist()
    return span


def _made(spark: SparkSession, records: DataFrame, task: RecomputeTask, windows: WindowTask) -> DataFrame:
    """Return the table rows of the request, and a row of child EVENT or ASKED for each event whose rows to replace.

    Raises CannotRecomputeError if dedup has not judged an event yet: it may be a repeat.
    """
    made = spark.createDataFrame(records.rdd.mapPartitions(task.rows), RECOMPUTED)
    repeats = None
    if task.dedup:
        by_pipe = partial(verdicts, task.request.pipe)
        judged = spark.createDataFrame(records.rdd.mapPartitions(by_pipe), "position long, is_repeat boolean")
        repeats = judged.where("is_repeat").select("position")
    if repeats is not None and task.spec.dedup is not None:
        waiting = made.where(f"child = {ASKED}").join(judged, "position", "left_anti").count()
        if waiting:
            raise CannotRecomputeError(
                f"needs a range that dedup has judged, but {waiting} of its events wait; use an earlier --until"
            )
        made = made.where("child < 0").unionByName(made.where("child >= 0").join(repeats, "position", "left_anti"))
    if task.spec.windows:
        sent = spark.createDataFrame(records.rdd.mapPartitions(task.sent_results), SENT)
        refolded = refolded_results(spark, records, windows, repeats)
        results = sent.join(refolded, "id", "left")
        made = made.unionByName(spark.createDataFrame(results.rdd.mapPartitions(task.result_rows), RECOMPUTED))
    return made


def typed_columns(
    table: ControlTable, tenant: str, request: RecomputeRequest, to: LakeDestination
) -> TypedColumns | None:
    """Return the typed columns of a revision's destination. Raises CannotRecomputeError if their schema is missing.

    The control records have the schema of the destination as it is now, and the newest versions of subjects that a
    source has as an event type.
    """

    def find(encoding: ColumnsEncoding) -> RegisteredSchema | None:
        now = table.destination(request.pipe, request.destination)
        if now is not None and encoding_of(now.to) == encoding:
            return now.schema
        subject = table.subject(tenant, encoding.subject)
        versions = subject.schemas if subject is not None else []
        return next((one for one in versions if one.number == encoding.version), None)

    try:
        return typed_columns_of(to, find)
    except UntypableError as exc:
        raise CannotRecomputeError(f"{exc}; recompute with a revision whose destination has the live encoding") from exc


def _ingested(spark: SparkSession, settings: DataPlaneSettings, topic: TopicRecord) -> DataFrame:
    options = spark_kafka_options(settings.kafka) | {"subscribe": topic.name, "includeHeaders": "true"}
    options |= {"startingOffsets": "earliest", "endingOffsets": "latest"}
    events: DataFrame = spark.read.format("kafka").options(**options).load()
    header = F.col("headers")[0]["value"].alias("header")
    last = F.element_at("headers", -1).alias("last")
    return events.select("partition", "offset", "timestamp", "key", "value", header, last)


def _retained_since_us(records: DataFrame) -> int:
    """Return the ingest time from which on all partitions are complete: rows of expired events must be kept."""
    firsts = records.groupBy("partition").agg(F.min(F.struct("offset", "timestamp")).alias("first")).collect()
    starts = [row.first.timestamp.timestamp() for row in firsts if row.first.offset > 0]
    return int(max(starts) * 1_000_000) + MARGIN_US if starts else 0


def time_us(text: str) -> int:
    """Parse an RFC 3339 time with an offset to microseconds since 1970. Raises CannotRecomputeError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as exc:
        raise CannotRecomputeError(f"needs a time such as 2026-11-21T12:00:00Z, got {text!r}") from exc
    if moment.tzinfo is None:
        raise CannotRecomputeError(f"needs a time with its offset, such as a final Z, got {text!r}")
    return int(moment.timestamp() * 1_000_000)


def _session() -> SparkSession:
    jars = Path(os.environ.get("PENSTOCK_SPARK_JARS", ""))
    builder = SparkSession.builder.master("local[2]").appName("penstock-lake-recompute")
    builder = builder.config("spark.jars", ",".join(map(str, jars.glob("*.jar"))))
    for name, value in {**LAKE_CONF, "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def parsed(arguments: list[str] | None) -> RecomputeRequest:
    """Return the request of a command line. Raises CannotRecomputeError."""
    parser = argparse.ArgumentParser(prog="python -m dataplane.jobs.lake_recompute", description=__doc__)
    parser.add_argument("--pipe", required=True)
    parser.add_argument("--destination", required=True)
    parser.add_argument("--revision", type=int, required=True, help="revision whose steps and routes are run")
    parser.add_argument(
        "--since", default="", help="first ingest time (RFC 3339); default: the oldest event that Kafka retains"
    )
    parser.add_argument(
        "--until", default="", help="ingest time (RFC 3339) at which the range ends; default: one minute ago"
    )
    parser.add_argument("--key", help="only events with this key, such as a customer's id; default: all events")
    given = parser.parse_args(arguments)
    latest_us = time.time_ns() // 1_000 - MARGIN_US
    until_us = min(latest_us, time_us(given.until)) if given.until else latest_us
    since_us = time_us(given.since) if given.since else 0
    return RecomputeRequest(given.pipe, given.destination, given.revision, since_us, until_us, given.key)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 0 when the range is written, 2 when it cannot be."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    settings = settings_from()
    reader = ControlReader(settings.kafka, snapshot_path(settings.var))
    try:
        request = parsed(arguments)
        reader.catch_up(READ_WITHIN_S)
        span = recompute(_session(), settings, reader.table, request)
    except CannotRecomputeError as exc:
        print(f"penstock: {exc}", file=sys.stderr)  # noqa: T201 (output of a command)
        return 2
    finally:
        reader.close()
    since, until = (datetime.fromtimestamp(us / 1e6, UTC).isoformat() for us in (span.since_us, span.until_us))
    events = "events" if request.key is None else f"events with the key {request.key!r}"
    print(f"rewritten: rows of {events} ingested from {since} until {until}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
