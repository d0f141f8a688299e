"""Writers of a query's results: each Spark task writes the rows of its partition, so that none pass through the driver.

A failed or repeated task writes its records again. Records have the same ids or positions then, so readers recognise
the repeats.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import KafkaException
from pyspark.sql import DataFrame

from dataplane.jobs.ledger_reporter import QueryLedgerReporter, ReportWriteError

Rows = Iterator[Mapping[str, Any]]
WRITTEN: Final = "number long, problem string"
_WRITTEN: Final = pa.schema([("number", pa.int64()), ("problem", pa.string())])


@lru_cache(maxsize=4)
def task_reporter(kafka: str, cell: str, writer: str) -> QueryLedgerReporter:
    """Return this Python worker's reporter, which serves the tasks of all batches. Writers of one process differ."""
    return QueryLedgerReporter(kafka, cell, writer)


def write_in_tasks(rows: DataFrame, write: Callable[[Rows], int], combine: Callable[[list[int]], int]) -> int:
    """Run `write` in a task for each partition of `rows`; return what its numbers combine to, 0 without partitions.

    A task that could not write is not repeated at once, because the query starts again after a back-off.

    write: picklable; called with the rows as dicts. Raises ReportWriteError or KafkaException if it could not write

    Raises ReportWriteError if a task could not write; the others may have written.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _written(write, batches)

    written = rows.mapInArrow(run, WRITTEN).collect()
    if problems := [row.problem for row in written if row.problem]:
        raise ReportWriteError("; ".join(problems))
    return combine([row.number for row in written]) if written else 0


def _written(write: Callable[[Rows], int], batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    number, problem = 0, ""
    try:
        number = write(chain.from_iterable(batch.to_pylist() for batch in batches))
    except (KafkaException, ReportWriteError) as exc:
        task_reporter.cache_clear()  # its producer may still have records of this task
        problem = str(exc) or type(exc).__name__
    return pa.RecordBatch.from_pylist([{"number": number, "problem": problem}], schema=_WRITTEN)
