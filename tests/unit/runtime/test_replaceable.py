"""A producer is replaced after a fatal error, and its records are reported as not stored."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from dataplane.jobs.ledger_reporter import QueryLedgerReporter, ReportWriteError
from dataplane.runtime.kafka import ingest_producer, lane_producer
from dataplane.runtime.producers.replaceable import MOST, ReplaceableProducer
from dataplane.runtime.producers.tracked_producer import ProducerFencedError, TrackedProducer
from tests.support.librdkafka import MockCluster, fail_for_good


@pytest.fixture(scope="module")
def cluster() -> MockCluster:
    cluster = MockCluster()
    cluster.make_topic("t")
    return cluster


@pytest.fixture
def made() -> list[Producer]:
    """All producer instances, newest last."""
    return []


@pytest.fixture
def producer(cluster: MockCluster, made: list[Producer]) -> Iterator[ReplaceableProducer]:
    cluster.start()

    def make() -> Producer:
        made.append(ingest_producer(cluster.address, "test", 5_000))
        return made[-1]

    yield ReplaceableProducer(make)
    cluster.start()


def until(truth: Callable[[], Any], turn: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not truth():
        assert time.monotonic() < deadline
        turn()


def replaced(producer: ReplaceableProducer, times: int) -> bool:
    return producer.replacements == times


def test_fatal_error_replaces_the_instance_and_reports_its_records_as_not_stored(
    cluster: MockCluster, producer: ReplaceableProducer, made: list[Producer]
):
    reports: list[Any] = []

    def note(error: Any, _message: Any) -> None:
        reports.append(error)

    cluster.kill()
    producer.produce("t", b"1", on_delivery=note)
    before = producer.instance
    fail_for_good(made[0])
    until(lambda: producer.replacements, lambda: producer.poll(0.01))
    assert [error is not None for error in reports] == [True]
    assert producer.trouble
    assert producer.instance != before
    assert len(made) == 2
    cluster.start()
    producer.produce("t", b"2", on_delivery=note)
    until(lambda: len(reports) == 2, lambda: producer.poll(0.1))
    assert reports[1] is None


def test_records_of_two_replaced_instances_are_all_reported(cluster: MockCluster, producer: ReplaceableProducer):
    reports: list[tuple[bool, bool]] = []

    def note(error: Any, _message: Any) -> None:
        reports.append((error is not None, producer.is_draining))

    cluster.kill()
    for number in (1, 2):
        producer.produce("t", b"%d" % number, on_delivery=note)
        producer.renew("a test")
    until(lambda: len(reports) == 2, lambda: producer.poll(0.01))
    assert reports == [(True, True), (True, True)]
    assert not producer.is_draining


def test_produce_that_meets_the_error_first_raises_once(producer: ReplaceableProducer, made: list[Producer]):
    fail_for_good(made[0])
    with pytest.raises(KafkaException):
        producer.produce("t", b"1")
    assert producer.replacements == 1
    producer.produce("t", b"2")
    assert producer.flush(10) == 0
    assert producer.replacements == 1


def test_repeatedly_failing_instances_are_reported(producer: ReplaceableProducer, made: list[Producer]):
    for number in range(1, MOST + 1):
        assert not producer.is_failing
        fail_for_good(made[-1])
        until(partial(replaced, producer, number), lambda: producer.poll(0.01))
    assert producer.is_failing


def test_buffered_record_is_sent_without_waiting_for_its_batch(cluster: MockCluster):
    reports: list[Any] = []
    slow = ReplaceableProducer(lambda: lane_producer(cluster.address, "lingering", linger_ms=60_000))
    slow.produce("t", b"1", on_delivery=lambda error, _message: reports.append(error))
    until(lambda: reports, slow.send_now)
    assert reports == [None]


def test_tracked_record_is_sent_without_waiting_for_its_batch(cluster: MockCluster):
    outbox, tokens = TrackedProducer(lane_producer(cluster.address, "lingering", linger_ms=60_000)), list[Any]()
    outbox.send("t", "token", value=b"1")

    def turn() -> None:
        outbox.send_now()
        tokens.extend(outbox.collect())

    until(lambda: tokens, turn)
    assert tokens == ["token"]


def test_fatal_error_while_records_are_sent_replaces_the_instance_and_reports_them_as_not_stored(
    cluster: MockCluster, producer: ReplaceableProducer, made: list[Producer]
):
    reports: list[bool] = []
    cluster.kill()
    for number in range(3):
        producer.produce("t", b"%d" % number, on_delivery=lambda error, _message: reports.append(error is not None))
    fail_for_good(made[0])
    until(lambda: producer.replacements, producer.send_now)
    assert reports == [True] * 3
    assert len(made) == 2


def test_fatal_error_while_records_are_sent_ends_the_tracked_producer(cluster: MockCluster):
    producer = lane_producer(cluster.address, "lane")
    outbox = TrackedProducer(producer)
    cluster.kill()
    outbox.send("t", "token", value=b"v")
    fail_for_good(producer)
    with pytest.raises(ProducerFencedError, match="planted"):
        until(lambda: False, outbox.send_now)
    cluster.start()


def test_tracked_producer_raises_once_its_client_is_dead(cluster: MockCluster):
    producer = lane_producer(cluster.address, "lane")
    outbox = TrackedProducer(producer)
    fail_for_good(producer)
    with pytest.raises(ProducerFencedError, match="planted"):
        until(lambda: False, lambda: outbox.collect(0.01))


def test_query_repeats_its_failed_batch_with_a_new_producer(cluster: MockCluster):
    teller = QueryLedgerReporter(cluster.address, "c1", "dedup")
    cluster.kill()
    teller.produce("t", b"1")
    fail_for_good(teller._producer._producer)
    with pytest.raises(ReportWriteError):
        teller.await_stored()
    cluster.start()
    teller.produce("t", b"1")
    teller.await_stored()
    teller.close()
