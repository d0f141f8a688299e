"""TrackedProducer returns a token once, when all of its records are stored, and never after an error."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError

from dataplane.ledger.meta import Headers
from dataplane.runtime.producers.rejected_records import MANY
from dataplane.runtime.producers.tracked_producer import ProduceGroup, ProducerFencedError, TrackedProducer
from tests.support.patience import until
from tests.support.reports import Report


class ManualProducer:
    """Producer whose delivery reports are set by the test and arrive in the next poll, as in librdkafka."""

    def __init__(self, room: int = 100) -> None:
        self.room = room
        self.due: list[Callable[[KafkaError | None, Report], None]] = []
        self.reports: list[tuple[KafkaError | None, Report]] = []

    def produce(self, *record: Any, headers: Headers) -> None:
        assert headers == []
        if len(self.due) == self.room:
            raise BufferError
        self.due.append(record[4])

    def poll(self, _wait_s: float) -> None:
        if not self.reports and len(self.due) == self.room:  # a full queue drains automatically
            self.reports.append((None, Report(0, 0)))
        while self.reports:
            self.due.pop(0)(*self.reports.pop(0))


@pytest.fixture
def producer() -> ManualProducer:
    return ManualProducer()


def test_token_is_returned_once_all_of_its_records_are_stored(producer: ManualProducer):
    outbox = TrackedProducer(producer)
    group = outbox.begin_group("t", "run")
    for _ in range(2):
        group.send(b"v", None, 0, [])
    group.close()
    producer.reports = [(None, Report(0, 7))]
    assert outbox.collect() == []
    producer.reports = [(None, Report(0, 8))]
    assert outbox.collect() == ["run"]
    assert outbox.collect() == []
    assert [(mark.topic, mark.partition, mark.offset) for mark in outbox.marks()] == [("t", 0, 8)]


def test_record_stored_by_an_earlier_attempt_counts_as_stored(producer: ManualProducer):
    outbox = TrackedProducer(producer)
    group = outbox.begin_group("t", "run")
    for _ in range(2):
        group.send(b"v", None, 0, [])
    group.close()
    producer.reports = [(None, Report(0, None)), (None, Report(0, 8))]
    assert outbox.collect() == ["run"]
    assert [mark.offset for mark in outbox.marks()] == [8]


def test_open_produce_group_keeps_its_token(producer: ManualProducer):
    outbox = TrackedProducer(producer)
    group = outbox.begin_group("t", "run")
    group.send(b"v", None, 0, [])
    producer.reports = [(None, Report(0, 7))]
    assert outbox.collect() == []
    group.close()
    assert outbox.collect() == ["run"]


def test_empty_produce_group_returns_its_token(producer: ManualProducer):
    outbox = TrackedProducer(producer)
    outbox.begin_group("t", "run").close()
    assert outbox.collect() == ["run"]


class Token:
    """Token that a weak reference can watch."""


@pytest.mark.parametrize("case", ["group", "group closed late", "empty group", "single record", "retried record"])
def test_stored_records_are_freed_without_the_garbage_collector(producer: ManualProducer, case: str):
    gc.disable()
    try:
        outbox, token = TrackedProducer(producer), Token()
        group: ProduceGroup | None = None
        watched = weakref.ref(token)
        if "record" in case:
            outbox.send("t", token, value=b"v")
        else:
            group = outbox.begin_group("t", token)
            if case != "empty group":
                group.send(b"v", None, 0, [])
            if case != "group closed late":
                group.close()
        if case == "retried record":
            producer.reports = [REFUSED]
            assert outbox.collect() == []
            until(lambda: outbox.collect() == [] and producer.due, "the record is produced again")
        producer.reports = [(None, Report(0, 7))] if producer.due else []
        if case == "group closed late" and group is not None:
            outbox.collect()
            group.close()
        group = None
        assert outbox.collect() == [token]
        del token
        assert watched() is None
    finally:
        gc.enable()


REFUSED = (KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), Report(0, -1))


def test_rejected_produce_group_ends_the_producer_and_settles_nothing(producer: ManualProducer):
    outbox = TrackedProducer(producer)
    group = outbox.begin_group("t", "run")
    group.send(b"v", None, 0, [])
    group.close()
    producer.reports = [REFUSED]
    with pytest.raises(ProducerFencedError, match=r"^t: "):
        outbox.collect()


def test_fatal_error_ends_the_producer(producer: ManualProducer):
    outbox = TrackedProducer(producer)
    outbox.send("t", "token", value=b"v")
    producer.reports = [(KafkaError(KafkaError._FATAL, "fenced", fatal=True), Report(0, -1))]
    with pytest.raises(ProducerFencedError, match=r"^t: "):
        outbox.collect()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    return now_s


def test_rejected_record_is_kept_and_retried_once_a_second_until_its_topic_accepts_it(
    producer: ManualProducer, clock: list[float]
):
    outbox = TrackedProducer(producer)
    outbox.send("t", "token", value=b"v")
    for _ in range(3):
        producer.reports = [REFUSED]
        assert outbox.collect() == []
        assert not producer.due, "not immediately"
        assert outbox.trouble.startswith("t refuses records: ")
        assert outbox.trouble.endswith("(1 wait)")
        clock[0] += 1
        outbox.collect()
        assert len(producer.due) == 1
    producer.reports = [(None, Report(0, 7))]
    assert outbox.collect() == ["token"]
    assert (outbox.trouble, outbox.in_flight) == ("", 0)


def test_records_after_a_rejected_one_wait_behind_it_and_keep_their_order(producer: ManualProducer, clock: list[float]):
    outbox = TrackedProducer(producer)
    for number in range(3):
        outbox.send("t", number, value=b"v")
    producer.reports = [REFUSED, REFUSED, REFUSED]
    outbox.collect()
    outbox.send("t", 3, value=b"v")
    outbox.send("other", "else", value=b"v")
    assert len(producer.due) == 1, "only the record of the other topic"
    producer.reports = [(None, Report(0, 1))]
    assert outbox.collect() == ["else"]
    clock[0] += 1
    outbox.collect()
    producer.reports = [(None, Report(0, 2))]
    assert outbox.collect() == [0]
    producer.reports = [(None, Report(0, n)) for n in (3, 4, 5)]
    assert outbox.collect() == [1, 2, 3]


def test_many_rejected_records_cause_back_pressure(producer: ManualProducer):
    producer.room = MANY
    outbox = TrackedProducer(producer)
    for number in range(MANY):
        assert not outbox.is_full
        outbox.send("t", number, value=b"v")
    producer.reports = [REFUSED] * MANY
    outbox.collect()
    assert outbox.is_full


def test_send_waits_for_a_full_queue_and_loses_nothing():
    producer = ManualProducer(room=2)
    outbox = TrackedProducer(producer)
    for number in range(5):
        outbox.send("t", number, value=b"v")
    producer.reports = [(None, Report(0, n)) for n in range(len(producer.due))]
    assert outbox.collect() == [0, 1, 2, 3, 4]
    assert outbox.in_flight == 0
