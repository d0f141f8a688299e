"""Records wait, in order, for in-flight records of their own partition, and of no other."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dataplane.ingest import topic_throttle
from dataplane.ingest.acks import RequestRecords
from dataplane.ingest.topic_throttle import MAX_IN_FLIGHT, TopicThrottle
from tests.support.reports import Report

TIMED_OUT = KafkaError(KafkaError._MSG_TIMED_OUT)


class Taking:
    """Producer whose delivery reports come when the test says so."""

    def __init__(self) -> None:
        self.full = False
        self.taken: dict[int, list[bytes]] = defaultdict(list)
        self.due: dict[int, list[Callable[[Any, Any], None]]] = defaultdict(list)

    def produce(self, _topic: str, value: bytes, _key: object, partition: int, report: Any, *, headers: object) -> None:
        assert headers == []
        if self.full:
            raise BufferError
        self.taken[partition].append(value)
        self.due[partition].append(report)

    def report(self, partition: int, error: KafkaError | None = None) -> None:
        offset = None if error else len(self.taken[partition])
        self.due[partition].pop(0)(error, Report(partition, offset))


class Sending:
    """Requests sent through a topic throttle."""

    def __init__(self) -> None:
        self.producer = Taking()
        self.pace = TopicThrottle(self.producer, "t")
        self.sent: dict[int, list[bytes]] = defaultdict(list)
        self.done: list[RequestRecords] = []
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()

    def send(self, partition: int, records: int = 1) -> None:
        batch = RequestRecords([], self.pace, self._loop)
        for number in range(records):
            value = b"%d-%d" % (partition, len(self.sent[partition]))
            batch.subject.append(value)
            batch.numbers[partition].append(number)
            self.pace.send(value, None, partition, [], batch)
            self.sent[partition].append(value)
        batch.begin(records, self.done)

    def stored(self) -> list[bytes]:
        return [value for batch in self.done if None not in batch.places for value in batch.subject]

    def refused(self) -> list[bytes]:
        return [value for batch in self.done if None in batch.places for value in batch.subject]


def test_throttle_sends_a_few_records_at_once_and_the_rest_when_those_are_stored():
    sending = Sending()
    for _ in range(MAX_IN_FLIGHT + 3):
        sending.send(0)
    assert sending.producer.taken[0] == sending.sent[0][:MAX_IN_FLIGHT]
    sending.pace.poll()
    assert len(sending.producer.taken[0]) == MAX_IN_FLIGHT, "nothing has been stored yet"
    sending.producer.report(0)
    sending.send(0)
    assert len(sending.producer.taken[0]) == MAX_IN_FLIGHT, "the new record does not overtake waiting ones"
    sending.pace.poll()
    assert sending.producer.taken[0] == sending.sent[0]


def test_started_request_is_sent_completely():
    sending = Sending()
    sending.send(0, records=100)
    assert sending.producer.taken[0] == sending.sent[0]
    sending.send(0, records=2)
    assert len(sending.producer.taken[0]) == 100, "the next request waits"


def test_one_partition_does_not_delay_another():
    sending = Sending()
    for _ in range(MAX_IN_FLIGHT + 1):
        sending.send(0)
    sending.send(1)
    assert sending.producer.taken[1] == sending.sent[1]


def test_records_behind_a_failed_one_are_refused_at_once():
    sending = Sending()
    for _ in range(MAX_IN_FLIGHT + 2):
        sending.send(0)
    sending.producer.report(0, TIMED_OUT)
    sending.pace.poll()
    assert sending.refused() == [sending.sent[0][0], *sending.sent[0][MAX_IN_FLIGHT:]]
    sending.send(0)
    assert sending.producer.taken[0][-1] == sending.sent[0][-1], "the next record is tried again"


def test_waiting_record_that_a_full_producer_rejects_is_refused():
    sending = Sending()
    for _ in range(MAX_IN_FLIGHT + 1):
        sending.send(0)
    sending.producer.full = True
    sending.producer.report(0)
    sending.pace.poll()
    assert sending.refused() == sending.sent[0][-1:]


def test_records_beyond_the_held_bytes_are_refused_until_earlier_ones_are_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(topic_throttle, "HELD_BYTES", 2 * topic_throttle.RECORD_BYTES)
    sending = Sending()
    for _ in range(MAX_IN_FLIGHT + 2):
        sending.send(0)
    with pytest.raises(BufferError):
        sending.send(0)
    sending.producer.report(0)
    sending.pace.poll()
    sending.send(0)
    assert len(sending.producer.taken[0]) == MAX_IN_FLIGHT + 2


class AnyTraffic(RuleBasedStateMachine):
    """Random traffic in random order: no record is lost, duplicated or overtakes another of its partition."""

    def __init__(self) -> None:
        super().__init__()
        self.sending = Sending()

    @rule(partition=st.integers(0, 2), records=st.integers(1, 9))
    def send(self, partition: int, records: int) -> None:
        self.sending.send(partition, records)

    @rule(partition=st.integers(0, 2), error=st.sampled_from([None, None, None, TIMED_OUT]))
    def report(self, partition: int, error: KafkaError | None) -> None:
        if self.sending.producer.due[partition]:
            self.sending.producer.report(partition, error)

    @rule(full=st.booleans())
    def turn(self, full: bool) -> None:
        self.sending.producer.full = full
        self.sending.pace.poll()
        self.sending.producer.full = False

    @invariant()
    def order_stands(self) -> None:
        for partition, sent in self.sending.sent.items():
            places = [sent.index(value) for value in self.sending.producer.taken[partition]]
            assert places == sorted(set(places))

    def teardown(self) -> None:
        producer = self.sending.producer
        self.sending.pace.poll()
        while any(producer.due.values()):
            for partition, due in producer.due.items():
                while due:
                    producer.report(partition)
            self.sending.pace.poll()
        everything = sorted(value for sent in self.sending.sent.values() for value in sent)
        assert sorted(self.sending.stored() + self.sending.refused()) == everything


TestAnyTraffic = AnyTraffic.TestCase
