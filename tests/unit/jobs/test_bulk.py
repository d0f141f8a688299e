"""Sink of the bulk query: what it hands to the tasks of a repeated batch."""

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.jobs.bulk import BulkWriter
from dataplane.jobs.ledger_reporter import ReportWriteError

Row = SimpleNamespace


class Batch:
    """Batch whose tasks return these rows; it notes the task that they got."""

    def __init__(self, *rows: Row) -> None:
        self._rows = rows
        self.task: Any = None

    def select(self, *_: str) -> "Batch":
        return self

    def mapInArrow(self, body: Any, _schema: str) -> "Batch":  # noqa: N802 (Spark's own name)
        (self.task,) = body.args
        return self

    def collect(self) -> tuple[Row, ...]:
        return self._rows


def test_batch_that_failed_in_one_partition_is_repeated_there_alone():
    start: Any = SimpleNamespace(
        cell=SimpleNamespace(cell="c1", epoch=1), incarnation="run", table=SimpleNamespace(offset=9)
    )
    settled: dict[int, int] = {}
    good, bad = Row(partition=0, next=50, problem=""), Row(partition=-1, next=0, problem="topic refuses")
    with pytest.raises(ReportWriteError, match="topic refuses"):
        BulkWriter(start, settled)(Batch(good, bad), 1)
    again = Batch(good, Row(partition=1, next=70, problem=""))
    BulkWriter(start, settled)(again, 1)
    assert (again.task.settled, again.task.control_offset) == ({0: 50}, 9)
    assert settled == {0: 50, 1: 70}
