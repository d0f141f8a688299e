"""Task of the bulk query: records from Arrow, and what a worker keeps from one task to the next."""

from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from dataplane.jobs import bulk_task
from dataplane.jobs.bulk_task import BulkLane, BulkRecord, BulkTask, records_of, run_bulk_task, run_in_kept_lane
from dataplane.jobs.kept_context import KeptContext, close_kept
from dataplane.ledger.facts import Fact, FactBook, FactKey
from dataplane.runtime.lanes.context import LaneError
from dataplane.runtime.telemetry.fields import FieldBook
from dataplane.runtime.telemetry.lags import LagBook
from dataplane.runtime.telemetry.usage import UsageBook
from dataplane.tables.optional_files import OptionalFiles

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
    """Lane context that reads all records, or fails; it notes what is called. `lanes`: all that were opened."""

    fails = False
    lanes: list["FakeLane"] = []

    def __init__(self, _task: BulkTask, _settings: object) -> None:
        FakeLane.lanes.append(self)
        self.closed = self.forgets = False
        self.caught_up: list[int] = []
        self.read: list[int] = []

    def catch_up(self, control_offset: int) -> None:
        self.caught_up.append(control_offset)

    def run(self, records: Iterator[BulkRecord]) -> tuple[int, int]:
        offsets = [record.offset() for record in records]
        self.read += offsets
        if FakeLane.fails:
            raise LaneError("a table is missing")
        return (3, offsets[-1] + 1) if offsets else (-1, 0)

    def forget_crashes(self) -> None:
        self.forgets = True

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeLane]]:
    monkeypatch.setattr(bulk_task, "BulkLane", FakeLane)
    monkeypatch.setattr(bulk_task, "settings_from", lambda: None)
    monkeypatch.setattr(FakeLane, "fails", False)
    monkeypatch.setattr(FakeLane, "lanes", [])
    kept = KeptContext[Any](lambda lane: lane.close(), has_files=True)
    monkeypatch.setattr(bulk_task, "_KEPT", kept)
    yield FakeLane.lanes
    kept.close()


def test_records_have_what_the_work_calls():
    one, two = records_of([batch(row(5), row(6, key=None, value=None, headers=None))])
    assert (one.partition(), one.offset(), one.key(), one.value(), one.error()) == (3, 5, b"k", b"{}", None)
    assert one.headers() == [("m", b"1")]
    assert one.timestamp() == (1, round(AT.timestamp() * 1_000))
    assert (two.key(), two.value(), two.headers()) == (None, b"", [])


def test_worker_keeps_its_context_for_the_next_task_and_catches_up_with_the_driver(lanes: list[FakeLane]):
    run_in_kept_lane(TASK, records_of([batch(row(5))]))
    run_in_kept_lane(BulkTask("c1", 1, "run", 9), records_of([batch(row(6))]))
    (lane,) = lanes
    assert (lane.caught_up, lane.read, lane.closed) == ([7, 9], [5, 6], False)


def test_worker_opens_another_context_for_another_application(lanes: list[FakeLane]):
    run_in_kept_lane(TASK, records_of([batch(row(5))]))
    run_in_kept_lane(BulkTask("c1", 2, "next", 7), records_of([batch(row(6))]))
    assert [lane.closed for lane in lanes] == [True, False]


def test_failed_task_closes_the_context_and_gives_the_reason(lanes: list[FakeLane], monkeypatch: pytest.MonkeyPatch):
    run_in_kept_lane(TASK, records_of([batch(row(5))]))
    monkeypatch.setattr(FakeLane, "fails", True)
    (found,) = list(run_bulk_task(TASK, [batch(row(6))]))
    assert found.to_pylist() == [{"partition": -1, "next": 0, "problem": "a table is missing"}]
    (lane,) = lanes
    assert lane.closed
    assert lane.forgets, "an own error counts as a crash of its message"


def test_task_leaves_out_what_an_earlier_attempt_of_the_batch_has_settled(lanes: list[FakeLane]):
    task = BulkTask("c1", 1, "run", 7, {3: 6})
    assert run_in_kept_lane(task, records_of([batch(row(5), row(6))])) == (3, 7)
    assert lanes[0].read == [6]
    assert run_in_kept_lane(task, records_of([batch(row(5))])) == (-1, 0)


def test_task_of_another_kind_closes_the_context_which_holds_files_open(lanes: list[FakeLane]):
    run_in_kept_lane(TASK, records_of([batch(row(5))]))
    close_kept()
    assert lanes[0].closed
    assert run_in_kept_lane(TASK, records_of([batch(row(6))])) == (3, 7)
    assert len(lanes) == 2


class RejectingProducer:
    """Producer whose audit topic rejects a record twice; the record is in no request meanwhile."""

    in_flight = 0
    trouble = "the audit topic rejects records"

    def __init__(self) -> None:
        self.asked = 0
        self._tokens: list[Any] = []

    def send(self, _topic: str, token: Any, **_: Any) -> None:
        self._tokens.append(token)

    def collect(self, _wait_s: float) -> list[Any]:
        self.asked += 1
        tokens, self._tokens = (self._tokens, []) if self.asked > 2 else ([], self._tokens)
        return tokens

    def marks(self) -> list[Any]:
        return []


def test_report_waits_for_an_audit_record_that_the_topic_rejects_for_now():
    lane: Any = BulkLane.__new__(BulkLane)
    lane.usage, lane.fields, lane.files = UsageBook(), FieldBook("off"), OptionalFiles()
    lane.facts, lane.lags, lane.producer = FactBook(), LagBook(), RejectingProducer()
    lane.cell = SimpleNamespace(cell="c1")
    lane._topic, lane._log_due_s, lane._watchdog = "penstock.c1.bulk.g1", 0.0, SimpleNamespace(pat=lambda: None)
    lane.facts.add("p", 1, FactKey("process", Fact.SENT), 1)
    lane._report(0, 5)
    assert lane.producer.asked == 3
    assert len(lane.facts) == 0
