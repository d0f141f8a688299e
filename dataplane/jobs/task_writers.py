"""Writers of a query's results: each Spark task writes the rows of its partition, so that none pass through the driver.

A failed or repeated task writes its records again. Records have the same ids or positions then, so readers recognise
the repeats.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import KafkaException
from pyspark.sql import DataFrame

from dataplane.jobs.ledger_reporter import QueryLedgerReporter, ReportWriteError

Rows = Iterator[Mapping[str, Any]]
WRITTEN: Final = "number long, problem string"
QUEUE_KIB: Final = 32 * 1024  # of a task's records; there is a producer in each Python worker
_WRITTEN: Final = pa.schema([("number", pa.int64()), ("problem", pa.string())])
_reporters: Final[dict[tuple[str, str, str], QueryLedgerReporter]] = {}


def task_reporter(kafka: str, cell: str, writer: str) -> QueryLedgerReporter:
    """Return this Python worker's reporter, which serves the tasks of all batches.

    The cache key includes the writer's name. Spark gives no sign before it ends a worker, so a reporter lives until
    then, or until a task fails.
    """
    key = kafka, cell, writer
    if key not in _reporters:
        _reporters[key] = QueryLedgerReporter(*key, queue_kib=QUEUE_KIB)
    return _reporters[key]


def close_reporters() -> None:
    """Close the reporters of this worker and drop their records, which would follow those of the next attempt."""
    while _reporters:
        _reporters.popitem()[1].close()


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
        close_reporters()
        problem = str(exc) or type(exc).__name__
    return pa.RecordBatch.from_pylist([{"number": number, "problem": problem}], schema=_WRITTEN)
