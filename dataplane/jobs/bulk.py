"""The bulk query: runs the steps of pipes with bulk execution, in batches of the cell's `bulk` topic.

Process lanes pass the events of these pipes on. Each task of a batch runs the same work as a lane, on the records of
one partition; the query has no state. A repeated batch produces the same messages again, with the same ids: a crash
repeats the messages of the batch that was in flight.
"""

from functools import partial
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from dataplane.jobs.bulk_task import COLUMNS, RESULT, BulkTask, run_bulk_task
from dataplane.jobs.dedup import kafka_rows, start_stream
from dataplane.jobs.ledger_reporter import ReportWriteError
from dataplane.jobs.queries import QueryStart
from dataplane.names import Purpose
from dataplane.plan.queries import needs_query
from dataplane.spec import PipeSpec

MOST_ROWS: Final = 50_000  # events of a batch; a crash repeats all messages made of them
EVERY_MS: Final = 1_000  # from one batch to the next: a batch takes CPU time for itself, however small it is


class BulkQuery:
    """The bulk query of a cell; it serves all pipes with bulk execution."""

    name = "bulk"
    reads: Purpose = "bulk"
    may_forget = True  # it has no state
    has_state = False
    tasks = 2

    def __init__(self) -> None:
        self._settled: dict[str, dict[int, int]] = {}

    def is_needed_by(self, spec: PipeSpec) -> bool:
        """Return True if the spec asks for bulk execution."""
        return needs_query(self.name, spec)

    def start(self, spark: SparkSession, start: QueryStart) -> Any:
        """Start the query and return Spark's StreamingQuery."""
        settled = self._settled.setdefault(start.cell.topics[self.reads].name, {})
        rows = kafka_rows(spark, start, self.reads, MOST_ROWS)
        return start_stream(rows, start, self.name, BulkWriter(start, settled), every_ms=EVERY_MS)

    def close(self) -> None:
        """Do nothing: the Python workers of the tasks own the Kafka clients."""


class BulkWriter:
    """Sink of a batch: a task for each partition of the topic runs its records.

    settled: by partition, the offset below which tasks have settled everything. A batch that failed in one partition
             is repeated there alone.
    """

    def __init__(self, start: QueryStart, settled: dict[int, int]) -> None:
        self._start, self._settled = start, settled

    def __call__(self, batch: DataFrame, _number: int) -> None:
        """Run one batch. Raises ReportWriteError if a task could not finish; the others may have."""
        start = self._start
        task = BulkTask(start.cell.cell, start.cell.epoch, start.incarnation, start.table.offset, dict(self._settled))
        found = batch.select(*COLUMNS).mapInArrow(partial(run_bulk_task, task), RESULT).collect()
        self._settled |= {row.partition: row.next for row in found if row.partition >= 0}
        if problems := [row.problem for row in found if row.problem]:
            raise ReportWriteError("; ".join(problems))
