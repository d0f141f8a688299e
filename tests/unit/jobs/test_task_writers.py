"""Writers in Spark's tasks: a failure is an answer of the task, so that Spark does not repeat it at once."""

import gc
import time
import weakref
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from dataplane.jobs import ledger_reporter, task_writers
from dataplane.jobs.dedup import KnownEvents
from dataplane.jobs.ledger_reporter import ReportWriteError
from dataplane.jobs.task_writers import Rows, task_reporter
from dataplane.plan.dedup import SeenEvent
from tests.support.librdkafka import MockCluster, client_threads

BATCHES = [pa.RecordBatch.from_pylist([{"n": number, "body": b"x"}]) for number in range(3)]


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    cluster = MockCluster()
    cluster.make_topic("t")
    yield cluster
    cluster.start()
    task_writers.close_reporters()


def write_attempt(kafka: str, name: bytes, _rows: Rows) -> int:
    reporter = task_reporter(kafka, "c1", "dedup")
    for number in range(3):
        reporter.produce("t", name + b" %d" % number, key=b"k", partition=0)
    reporter.await_stored()
    return 3


def values_of(kafka: str) -> list[bytes]:
    """Return the records of the topic after its first."""
    with closing(Consumer({"bootstrap.servers": kafka, "group.id": "g", "log_level": 0})) as reader:
        reader.assign([TopicPartition("t", 0, 1)])
        found = reader.consume(100, 3)
    return [value for message in found if isinstance(value := message.value(), bytes)]


def test_task_writes_the_rows_of_all_its_batches_in_their_order():
    seen: list[Any] = []

    def write(rows: Rows) -> int:
        seen.extend((row["n"], row["body"]) for row in rows)
        return len(seen)

    written = task_writers._written(write, BATCHES)
    assert seen == [(0, b"x"), (1, b"x"), (2, b"x")]
    assert written.to_pylist() == [{"number": 3, "problem": ""}]


@pytest.mark.parametrize("error", [ReportWriteError("3 records not stored within 30 s"), KafkaException("away")])
def test_task_that_cannot_write_reports_why_(error: Exception):
    def write(_rows: Rows) -> int:
        raise error

    [written] = task_writers._written(write, BATCHES).to_pylist()
    assert written["problem"] == str(error)


def test_records_of_a_failed_task_are_never_sent(cluster: MockCluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ledger_reporter, "STORED_S", 0.2)
    cluster.kill()
    [failed] = task_writers._written(partial(write_attempt, cluster.address, b"first"), BATCHES).to_pylist()
    assert "3 records not stored" in failed["problem"]
    cluster.start()
    monkeypatch.setattr(ledger_reporter, "STORED_S", 10)
    [written] = task_writers._written(partial(write_attempt, cluster.address, b"second"), BATCHES).to_pylist()
    assert written == {"number": 3, "problem": ""}
    assert values_of(cluster.address) == [b"second 0", b"second 1", b"second 2"]


def test_failed_tasks_leave_neither_clients_nor_threads(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ledger_reporter, "STORED_S", 0.2)
    reporters: list[Any] = []

    def write(_rows: Rows) -> int:
        reporters.append(weakref.ref(task_reporter("127.0.0.1:1", "c1", "dedup")))
        return write_attempt("127.0.0.1:1", b"lost", _rows)

    gc.collect()
    before = client_threads()
    for _ in range(2):
        assert task_writers._written(write, BATCHES).to_pylist()[0]["problem"]
    gc.collect()
    deadline = time.monotonic() + 10
    while client_threads() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [reporter() for reporter in reporters] == [None, None]
    assert client_threads() <= before


def test_tasks_of_one_worker_share_a_reporter_by_writer():
    try:
        first = task_reporter("127.0.0.1:1", "c1", "dedup")
        assert task_reporter("127.0.0.1:1", "c1", "dedup") is first
        assert task_reporter("127.0.0.1:1", "c1", "windows") is not first
        assert first._reader is None, "tasks need no consumer"
    finally:
        task_writers.close_reporters()


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
