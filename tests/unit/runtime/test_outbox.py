"""The outbox's promise: a token comes out once, when all of its records are stored, and never after an error."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError

from dataplane.ledger.meta import Headers
from dataplane.runtime.outbox import Outbox, ProducerDeadError


class Report:
    def __init__(self, partition: int, offset: int) -> None:
        self._place = (partition, offset)

    def partition(self) -> int:
        return self._place[0]

    def offset(self) -> int:
        return self._place[1]


class ManualProducer:
    """Takes records; the test says what became of them, in the next poll, as librdkafka does."""

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
        if not self.reports and len(self.due) == self.room:  # a full queue empties by itself
            self.reports.append((None, Report(0, 0)))
        while self.reports:
            self.due.pop(0)(*self.reports.pop(0))


@pytest.fixture
def producer() -> ManualProducer:
    return ManualProducer()


def test_a_token_comes_out_once_all_of_its_records_are_stored(producer: ManualProducer):
    outbox = Outbox(producer)
    shipment = outbox.shipment("t", "run")
    for _ in range(2):
        shipment.send(b"v", None, 0, [])
    shipment.close()
    producer.reports = [(None, Report(0, 7))]
    assert outbox.collect() == []
    producer.reports = [(None, Report(0, 8))]
    assert outbox.collect() == ["run"]
    assert outbox.collect() == []
    assert [(mark.topic, mark.partition, mark.offset) for mark in outbox.marks()] == [("t", 0, 8)]


def test_a_shipment_still_open_keeps_its_token(producer: ManualProducer):
    outbox = Outbox(producer)
    shipment = outbox.shipment("t", "run")
    shipment.send(b"v", None, 0, [])
    producer.reports = [(None, Report(0, 7))]
    assert outbox.collect() == []
    shipment.close()
    assert outbox.collect() == ["run"]


def test_an_empty_shipment_gives_its_token_back(producer: ManualProducer):
    outbox = Outbox(producer)
    outbox.shipment("t", "run").close()
    assert outbox.collect() == ["run"]


def test_a_refused_record_ends_the_producer_and_settles_nothing(producer: ManualProducer):
    outbox = Outbox(producer)
    outbox.send("t", "token", value=b"v")
    producer.reports = [(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), Report(0, -1))]
    with pytest.raises(ProducerDeadError, match=r"^t: "):
        outbox.collect()


def test_a_full_queue_is_waited_for_and_loses_nothing():
    producer = ManualProducer(room=2)
    outbox = Outbox(producer)
    for number in range(5):
        outbox.send("t", number, value=b"v")
    producer.reports = [(None, Report(0, n)) for n in range(len(producer.due))]
    assert outbox.collect() == [0, 1, 2, 3, 4]
    assert outbox.in_flight == 0
