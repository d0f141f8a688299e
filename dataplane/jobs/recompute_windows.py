"""Spark tasks that compute the results of a pipe's windows again, for a recomputation of a lake table.

The selected events run the requested revision, and all others the revision that they were ingested with: a result over
many customers then changes by what the requested revision changes for the selected ones.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from typing import Any, Final

from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession

from dataplane.jobs.recompute_task import RecomputeTask, is_result
from dataplane.ledger.meta import MessageMeta
from dataplane.plan import CompiledPlan, compile_plan
from dataplane.plan.refold import refold
from dataplane.plan.taps import TapRecord, decode_tap, encode_tap, key_of
from dataplane.plan.through import pass_through
from dataplane.spec import PipeSpec
from dataplane.stages.enrich import TableRows

TAPPED: Final = "window_key binary, ingest_us long, position long, child int, deduped boolean, tap binary"
REFOLDED: Final = "id string, refolded binary"


class WindowTask(Struct, frozen=True):
    """Input of the tasks that tap events.

    rows:  the task that selects events, with the requested revision
    specs: the other revisions of the pipe, by number
    """

    rows: RecomputeTask
    specs: dict[int, PipeSpec]

    def taps(self, records: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the taps of all events of the pipe in these records of the ingest topic."""
        task = self.rows
        requested = compile_plan(task.spec, task.salt)
        earlier = {number: compile_plan(spec, task.salt) for number, spec in self.specs.items()}
        with task.tables() as tables:
            for record, meta in task.originals(records):
                if is_result(meta):
                    continue
                plan = requested if task.selects(record, meta) else earlier.get(meta.revision, requested)
                for unit, tap in _taps(plan, meta, bytes(record.value or b""), tables):
                    place = (meta.ingest_time_us, meta.position, unit.child)
                    yield (key_of(tap), *place, plan.dedup is not None, encode_tap(tap))


def refolded_results(spark: SparkSession, records: DataFrame, task: WindowTask, repeats: DataFrame | None) -> DataFrame:
    """Return the results of all windows, as columns REFOLDED.

    repeats: column `position` of the events that dedup found to be repeats; None if no revision has dedup
    """
    taps = spark.createDataFrame(records.rdd.mapPartitions(task.taps), TAPPED)
    if repeats is not None:
        marked = repeats.withColumnRenamed("position", "repeat")
        taps = taps.join(marked, (taps.position == marked.repeat) & taps.deduped, "left_anti")
    by_key = taps.repartition("window_key").sortWithinPartitions("window_key", "ingest_us", "position", "child")
    return spark.createDataFrame(by_key.select("window_key", "tap").rdd.mapPartitions(_refold), REFOLDED)


def _taps(plan: CompiledPlan, meta: MessageMeta, body: bytes, rows: TableRows) -> list[tuple[MessageMeta, TapRecord]]:
    found: list[tuple[MessageMeta, TapRecord]] = []

    def note(unit: MessageMeta, value: Any) -> None:
        for window in plan.windows:
            with suppress(RecursionError):  # as in a lane: the value of its key is nested too deeply
                if (tap := window.tap(unit, value)) is not None:
                    found.append((unit, tap))

    if plan.windows:
        pass_through(plan, (), meta, body, rows, tap=note)
    return found


def _refold(rows: Iterable[Any]) -> Iterator[tuple[str, bytes]]:
    for _, group in groupby(rows, lambda row: bytes(row.window_key)):
        yield from refold(decode_tap(bytes(row.tap)) for row in group)
