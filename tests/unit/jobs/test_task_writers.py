"""Writers in Spark's tasks: a failure is an answer of the task, so that Spark does not repeat it at once."""

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaException

from dataplane.jobs import task_writers
from dataplane.jobs.dedup import KnownEvents
from dataplane.jobs.ledger_reporter import ReportWriteError
from dataplane.jobs.task_writers import Rows
from dataplane.plan.dedup import SeenEvent

BATCHES = [pa.RecordBatch.from_pylist([{"n": number, "body": b"x"}]) for number in range(3)]


def test_task_writes_the_rows_of_all_its_batches_in_their_order():
    seen: list[Any] = []

    def write(rows: Rows) -> int:
        seen.extend((row["n"], row["body"]) for row in rows)
        return len(seen)

    written = task_writers._written(write, BATCHES)
    assert seen == [(0, b"x"), (1, b"x"), (2, b"x")]
    assert written.to_pylist() == [{"number": 3, "problem": ""}]


@pytest.mark.parametrize("error", [ReportWriteError("3 records not stored within 30 s"), KafkaException("away")])
def test_task_that_cannot_write_reports_why_and_drops_its_producer(error: Exception, monkeypatch: pytest.MonkeyPatch):
    dropped: list[bool] = []
    monkeypatch.setattr(task_writers.task_reporter, "cache_clear", lambda: dropped.append(True))

    def write(_rows: Rows) -> int:
        raise error

    [written] = task_writers._written(write, BATCHES).to_pylist()
    assert written["problem"] == str(error)
    assert dropped == [True]


def test_error_in_the_program_is_not_a_failure_to_write():
    def write(_rows: Rows) -> int:
        raise KeyError("position")

    with pytest.raises(KeyError):
        task_writers._written(write, BATCHES)


class CountedMap:
    """Map state that counts calls."""

    def __init__(self, known: dict[tuple[bytes], tuple[int, int]]) -> None:
        self.known, self.calls = known, 0

    def getValue(self, key: tuple[bytes]) -> tuple[int, int] | None:  # noqa: N802
        self.calls += 1
        return self.known.get(key)

    def updateValue(self, key: tuple[bytes], value: tuple[int, int]) -> None:  # noqa: N802
        self.calls += 1
        self.known[key] = value


def test_batch_of_dedup_reads_and_writes_each_identity_once():
    state = CountedMap({(b"a",): (1, 10)})
    known = KnownEvents(state)
    assert [known.get(b"a"), known.get(b"a"), known.get(b"b"), known.get(b"b")] == [SeenEvent(1, 10)] * 2 + [None] * 2
    for position in (2, 3):
        known.remember(b"b", SeenEvent(position, 20))
        assert known.get(b"b") == SeenEvent(position, 20)
    known.store()
    assert (state.known, state.calls) == ({(b"a",): (1, 10), (b"b",): (3, 20)}, 3)


def test_next_batch_reads_the_state_again():
    state = CountedMap({})
    known = KnownEvents(state)
    assert known.get(b"a") is None
    known.store()
    state.known[b"a",] = (7, 70)  # as after a restart from another state
    assert known.get(b"a") == SeenEvent(7, 70)
