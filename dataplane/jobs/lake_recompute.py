"""`python -m dataplane.jobs.lake_recompute`: a span of a lake table anew, by one revision, from what was ingested.

What was ingested goes through the same plan as in lanes; the rows of the span are replaced in one step, so readers see
the old ones or the new ones. The ledger is not touched: it says what was delivered then.
"""

import argparse
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way of writing it)

from dataplane.jobs.lake_batch import hour_of
from dataplane.jobs.lake_table import LakeTable, table_rows
from dataplane.jobs.lake_writer import table_path
from dataplane.ledger.meta import decode_meta
from dataplane.ledger.units import position_of
from dataplane.plan import compile_plan
from dataplane.plan.through import through
from dataplane.process.lookups import TenantRows
from dataplane.process.plans import Plans
from dataplane.runtime.lake_conf import LAKE_CONF
from dataplane.runtime.settings import Settings, settings_from
from dataplane.spec import LakeDestination, PipeSpec
from dataplane.tables.control import ControlReader, ControlTable, snapshot_path
from dataplane.tables.lookup_store import LookupStore, lookup_folder
from dataplane.tables.records import PlanRecord, TopicRecord

log = logging.getLogger("lake-recompute")

MARGIN_US: Final = 60_000_000  # clocks of ingest and brokers differ, and lanes may not have written the last minute yet
READ_WITHIN_S: Final = 30.0
_MADE: Final = (
    "id string, position long, child int, pipe string, revision int, source string, event_time_us long, "
    "ingest_time_us long, date date, hour int, value binary"
)


class CannotRecomputeError(Exception):
    """What was asked for cannot be done; the text says what is needed."""


class Wish(NamedTuple):
    """Which rows of which table, and by which revision's plan. Times of ingest, microseconds since 1970."""

    pipe: str
    destination: str
    revision: int
    since_us: int
    until_us: int


class Recipe(Struct, frozen=True):
    """All that a Spark task needs: it makes its own plan and opens the host's look-up tables itself."""

    wish: Wish
    spec: PipeSpec
    salt: bytes
    tenant: str
    generation: int
    lookups: Path

    def rows(self, records: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """The table's rows that these records of the ingest topic make."""
        wish, plan = self.wish, compile_plan(self.spec, self.salt)
        store = LookupStore(self.lookups)
        pinned = store.pin()
        try:
            tables = TenantRows(pinned, self.tenant)
            for record in records:
                meta = decode_meta(bytes(record.header))
                if meta.pipe != wish.pipe or not wish.since_us <= meta.ingest_time_us < wish.until_us:
                    continue
                meta.position = position_of(self.generation, record.partition, record.offset)
                for unit, body in through(plan, wish.destination, meta, bytes(record.value or b""), tables):
                    names = (unit.id, unit.position, unit.child, unit.pipe, wish.revision, unit.source)
                    hour = hour_of(unit.ingest_time_us)
                    yield (*names, unit.event_time_us, unit.ingest_time_us, *hour, body)
        finally:
            pinned.close()
            store.close()


def recompute(spark: SparkSession, settings: Settings, table: ControlTable, wish: Wish) -> Wish:
    """Do it; returns the span that was written. Raises CannotRecomputeError, and what Spark raises."""
    pipe, plan = table.pipe(wish.pipe), table.plan(wish.pipe, wish.revision)
    cell = table.cell(pipe.cell) if pipe is not None else None
    if pipe is None or plan is None or cell is None:
        raise CannotRecomputeError(f"needs a pipe and a revision that are published, got {wish.pipe}@{wish.revision}")
    to = plan.spec.destinations.get(wish.destination)
    if not isinstance(to, LakeDestination):
        raise CannotRecomputeError(f"needs a lake destination of that revision, got {wish.destination}")
    if any(isinstance(one, PlanRecord) and one.pipe == wish.pipe and _needs_state(one.spec) for one in table):
        raise CannotRecomputeError("needs a pipe without dedup and windows: what they made hangs on more than the plan")
    salt = Plans(table, settings.fernet_keys).salt(wish.pipe) if compile_plan(plan.spec).needs_salt else b""
    if salt is None:
        raise CannotRecomputeError("needs the tenant's salt and PENSTOCK_FERNET_KEYS: a step of the revision hashes")
    topic = cell.topics["ingest"]
    records = _ingested(spark, settings, topic)
    span = wish._replace(since_us=max(wish.since_us, _retained_since_us(records)))
    recipe = Recipe(span, plan.spec, salt, pipe.tenant, topic.generation, lookup_folder(settings.var))
    made = spark.createDataFrame(records.rdd.mapPartitions(recipe.rows), _MADE)
    path = table_path(settings.lakes, to, pipe.tenant, wish.pipe, wish.destination)
    micros = "unix_micros(ingest_time)"
    where = f"{micros} >= {span.since_us} AND {micros} < {span.until_us}"
    LakeTable(spark, path).replace(table_rows(made), where)
    return span


def _needs_state(spec: PipeSpec) -> bool:
    return spec.dedup is not None or bool(spec.windows)


def _ingested(spark: SparkSession, settings: Settings, topic: TopicRecord) -> DataFrame:
    options = {"kafka.bootstrap.servers": settings.kafka, "subscribe": topic.name, "includeHeaders": "true"}
    options |= {"startingOffsets": "earliest", "endingOffsets": "latest"}
    known: DataFrame = spark.read.format("kafka").options(**options).load()
    header = F.col("headers")[0]["value"].alias("header")
    return known.select("partition", "offset", "timestamp", "value", header)


def _retained_since_us(records: DataFrame) -> int:
    """From when on every partition still has all that was ingested: rows of what Kafka has forgotten must stay."""
    firsts = records.groupBy("partition").agg(F.min(F.struct("offset", "timestamp")).alias("first")).collect()
    begun = [row.first.timestamp.timestamp() for row in firsts if row.first.offset > 0]
    return int(max(begun) * 1_000_000) + MARGIN_US if begun else 0


def time_us(text: str) -> int:
    """A time given as RFC 3339 text with an offset. Raises CannotRecomputeError."""
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


def _parsed(arguments: list[str] | None) -> Wish:
    parser = argparse.ArgumentParser(prog="python -m dataplane.jobs.lake_recompute", description=__doc__)
    parser.add_argument("--pipe", required=True)
    parser.add_argument("--destination", required=True)
    parser.add_argument("--revision", type=int, required=True, help="whose steps and routes are run")
    parser.add_argument("--since", default="", help="from this time of ingest on; all that Kafka still has if left out")
    parser.add_argument("--until", default="", help="before this one; until a minute ago if left out")
    given = parser.parse_args(arguments)
    latest_us = time.time_ns() // 1_000 - MARGIN_US
    until_us = min(latest_us, time_us(given.until)) if given.until else latest_us
    since_us = time_us(given.since) if given.since else 0
    return Wish(given.pipe, given.destination, given.revision, since_us, until_us)


def main(arguments: list[str] | None = None) -> int:
    """Entry point: 0 when the span is written, 2 when it cannot be."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    settings = settings_from()
    reader = ControlReader(settings.kafka, snapshot_path(settings.var))
    try:
        wish = _parsed(arguments)
        reader.catch_up(READ_WITHIN_S)
        span = recompute(_session(), settings, reader.table, wish)
    except CannotRecomputeError as exc:
        print(f"penstock: {exc}", file=sys.stderr)  # noqa: T201 (said to whoever typed the command)
        return 2
    finally:
        reader.close()
    since, until = (datetime.fromtimestamp(us / 1e6, UTC).isoformat() for us in (span.since_us, span.until_us))
    print(f"written anew: what was ingested from {since} until {until}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
