"""Task of the bulk query: records from Arrow, and what a worker keeps from one task to the next."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from dataplane.jobs import bulk_task
from dataplane.jobs.bulk_task import BulkRecord, BulkTask, BulkWorker, records_of, run_bulk_task
from dataplane.runtime.lanes.context import LaneError

TASK = BulkTask("c1", 1, "run", 7)
AT = datetime(2026, 11, 29, 12, 0, 0, 123_000, tzinfo=UTC)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
    ]
)


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)


def row(offset: int, **changes: Any) -> dict[str, Any]:
    headers = [{"key": "m", "value": b"1"}]
    return {
        "partition": 3, "offset": offset, "timestamp": AT, "key": b"k", "value": b"{}", "headers": headers, **changes
    }  # fmt: skip


class FakeLane:
    """Lane context that reads all records, or fails; it notes what is called."""

    fails = False
    opened = 0

    def __init__(self, _task: BulkTask, _settings: object) -> None:
        FakeLane.opened += 1
        self.closed = False
        self.caught_up: list[int] = []
        self.read: list[int] = []

    def catch_up(self, control_offset: int) -> None:
        self.caught_up.append(control_offset)

    def run(self, records: Iterator[BulkRecord]) -> None:
        self.read += [record.offset() for record in records]
        if FakeLane.fails:
            raise LaneError("a table is missing")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[BulkWorker]:
    monkeypatch.setattr(bulk_task, "BulkLane", FakeLane)
    monkeypatch.setattr(bulk_task, "settings_from", lambda: None)
    monkeypatch.setattr(FakeLane, "fails", False)
    monkeypatch.setattr(FakeLane, "opened", 0)
    worker = BulkWorker()
    monkeypatch.setattr(bulk_task, "_WORKER", worker)
    yield worker
    if worker._closing is not None:
        worker._closing.cancel()


def test_records_have_what_the_work_calls():
    one, two = records_of([batch(row(5), row(6, key=None, value=None, headers=None))])
    assert (one.partition(), one.offset(), one.key(), one.value(), one.error()) == (3, 5, b"k", b"{}", None)
    assert one.headers() == [("m", b"1")]
    assert one.timestamp() == (1, round(AT.timestamp() * 1_000))
    assert (two.key(), two.value(), two.headers()) == (None, b"", [])


def test_worker_keeps_its_context_for_the_next_task_and_catches_up_with_the_driver(worker: BulkWorker):
    worker.run(TASK, records_of([batch(row(5))]))
    lane: Any = worker._lane
    worker.run(BulkTask("c1", 1, "run", 9), records_of([batch(row(6))]))
    assert (lane.caught_up, lane.read) == ([9], [5, 6])
    assert worker._lane is lane


def test_worker_opens_another_context_for_another_application(worker: BulkWorker):
    worker.run(TASK, records_of([batch(row(5))]))
    lane: Any = worker._lane
    worker.run(BulkTask("c1", 2, "next", 7), records_of([batch(row(6))]))
    assert lane.closed
    assert FakeLane.opened == 2


def test_failed_task_closes_the_context_and_gives_the_reason(worker: BulkWorker, monkeypatch: pytest.MonkeyPatch):
    worker.run(TASK, records_of([batch(row(5))]))
    lane: Any = worker._lane
    monkeypatch.setattr(FakeLane, "fails", True)
    (found,) = list(run_bulk_task(TASK, [batch(row(6))]))
    assert found.to_pylist() == [{"problem": "a table is missing"}]
    assert lane.closed
    assert worker._lane is None


def test_context_is_closed_once_no_task_has_come_for_a_while(worker: BulkWorker, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bulk_task, "IDLE_S", 0.0)
    worker.run(TASK, records_of([batch(row(5))]))
    lane: Any = worker._lane or FakeLane
    closing = worker._closing
    if closing is not None:
        closing.join(10)
    assert worker._lane is None
    assert lane is FakeLane or lane.closed
