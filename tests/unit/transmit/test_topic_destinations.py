"""Destinations that are Kafka topics: each record is settled by its own report; failures end as for HTTP."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from dataplane.ledger.meta import read_meta
from dataplane.names import LOOKUP_TOPIC
from dataplane.spec import DestinationSpec, LakeDestination, RetryPolicy, TableDestination, TopicDestination
from dataplane.tables.lookups import decode_row, row_key
from dataplane.tables.records import DestinationRecord
from dataplane.transmit.work import TransmitWork
from tests.support.librdkafka import MockCluster, fail_for_good
from tests.support.memory_lane import MemoryLane, message
from tests.support.transmitting import KEY, NODE, MemoryProducer, without_kafka

ONCE = RetryPolicy(local_tries=1)
USERS = TableDestination("users", "body.id", "has(body.gone)", retry=ONCE)
TOPIC = "penstock.out.p.crm"


@pytest.fixture(autouse=True)
def _without_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    without_kafka(monkeypatch)


def opened(
    var: Path, to: DestinationSpec, state: Any = "active", kind: Any = "transmit"
) -> tuple[MemoryLane, TransmitWork, MemoryProducer]:
    lane = MemoryLane(kind, var, KEY)
    lane.table.apply(DestinationRecord("p", "crm", 1, state, to, [], table="tab1"))
    lane.work = TransmitWork(lane)
    producer = lane.work._writer._producer = MemoryProducer()
    return lane, lane.work, producer


def turned(work: TransmitWork) -> None:
    work.poll()
    work.poll()


def test_message_is_delivered_by_its_own_report_and_keeps_key_and_headers(tmp_path: Path):
    lane, work, producer = opened(tmp_path, TopicDestination(retry=ONCE))
    lane.take(message(5, b'{"a":1}', key=b"crm\0shop-7", more=[("ce_type", b"order")]), message(6, b"[]"))
    turned(work)
    assert [(one.topic, one.key, one.value) for one in producer.sent] == [
        (TOPIC, b"shop-7", b'{"a":1}'),
        (TOPIC, None, b"[]"),
    ]
    assert producer.sent[0].headers == [
        ("penstock-id", b"id-0-5"),
        ("penstock-position", b"0-0-5"),
        ("content-type", b"application/json"),
        ("ce_type", b"order"),
    ]
    assert lane.unsettled() == 2
    producer.report(count=1)
    turned(work)
    assert lane.unsettled() == 1, "not before its own delivery report"
    producer.report()
    turned(work)
    assert lane.unsettled() == 0
    assert lane.filed() == {(NODE, "delivered", ""): 2}
    work.close()


def test_message_for_the_lake_is_stored_and_not_yet_delivered(tmp_path: Path):
    lane, work, producer = opened(tmp_path, LakeDestination(retry=ONCE))
    lane.take(message(5, b'{"a":1}'))
    turned(work)
    (record,) = producer.sent
    assert record.topic == lane.cell.topics["lake"].name
    assert read_meta(record.headers).position == 5
    producer.report()
    turned(work)
    assert lane.filed() == {(NODE, "stored", ""): 1}
    work.close()


def test_row_key_comes_from_the_expression_and_the_version_grows_with_ingest(tmp_path: Path):
    lane, work, producer = opened(tmp_path, USERS)
    lane.take(message(5, b'{"id":7,"n":1}', ingest_time_us=10), message(6, b'{"id":7,"gone":1}', ingest_time_us=10))
    lane.take(message(7, b'{"id":7,"n":2}', ingest_time_us=11, position=1))
    turned(work)
    assert {(one.topic, one.key) for one in producer.sent} == {(LOOKUP_TOPIC, row_key("tab1", "7"))}
    first, second, third = (decode_row(one.value) for one in producer.sent)
    assert (bytes(first.row), first.is_removed, second.is_removed) == (b'{"id":7,"n":1}', False, True)
    assert first.version < second.version, "the later ingest wins, even within one microsecond"
    assert second.version < third.version, "and in a later microsecond, whatever the offset"
    work.close()


@pytest.mark.parametrize(
    "body", [b"[1]", b"{", b'{"id":1.5}', b'{"id":""}', b"{}", b'{"id":"%s"}' % (b"x" * 500)], ids=repr
)
def test_message_that_cannot_be_a_row_is_dead_with_its_cause(tmp_path: Path, body: bytes):
    lane, work, producer = opened(tmp_path, USERS)
    lane.take(message(5, body))
    turned(work)
    assert not producer.sent
    (record,) = lane.producer.of(lane.cell.topics["dead"].name)
    assert dict(record["headers"])["penstock-cause"] in (b"row", b"decode")
    lane.store()
    assert lane.unsettled() == 0
    work.close()


def test_failed_delivery_report_schedules_a_retry(tmp_path: Path):
    lane, work, producer = opened(tmp_path, TopicDestination(retry=ONCE))
    lane.take(message(5))
    turned(work)
    producer.report(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    turned(work)
    (record,) = lane.producer.of(lane.cell.topics["retry-in"].name)
    assert read_meta(record["headers"]).attempt == 1
    lane.store()
    assert lane.filed() == {(NODE, "parked", "1"): 1}
    work.close()


def test_record_too_large_for_its_topic_is_dead(tmp_path: Path):
    lane, work, producer = opened(tmp_path, TopicDestination(retry=ONCE))
    lane.take(message(5))
    turned(work)
    producer.report(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
    turned(work)
    (record,) = lane.producer.of(lane.cell.topics["dead"].name)
    assert dict(record["headers"])["penstock-cause"] == b"too-large"
    work.close()


@pytest.mark.parametrize(("state", "purpose"), [("paused", "held"), ("suspended", "held")])
def test_paused_or_suspended_lake_destination_holds_like_any_other(tmp_path: Path, state: str, purpose: Any):
    lane, work, producer = opened(tmp_path, LakeDestination(retry=ONCE), state)
    lane.take(message(5))
    turned(work)
    assert not producer.sent
    assert len(lane.producer.of(lane.cell.topics[purpose].name)) == 1
    work.close()


def test_nothing_is_written_for_a_revoked_partition(tmp_path: Path):
    lane, work, producer = opened(tmp_path, TopicDestination(retry=ONCE))
    lane.take(message(5))
    lane.ours = set()
    turned(work)
    assert not producer.sent
    work.close()


@pytest.fixture
def written(tmp_path: Path) -> Iterator[tuple[MemoryLane, TransmitWork, MockCluster]]:
    """Lane whose writer has a real producer on librdkafka's mock broker."""
    cluster = MockCluster()
    lane, work, _ = opened(tmp_path, TopicDestination(retry=ONCE))
    work._writer._kafka, work._writer._producer = cluster.address, None
    yield lane, work, cluster
    work.close()


def turn_until(work: TransmitWork, truth: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not truth():
        assert time.monotonic() < deadline, "no delivery report arrived"
        work.poll()


def test_failed_producer_is_replaced_and_the_lane_continues(
    written: tuple[MemoryLane, TransmitWork, MockCluster],
):
    lane, work, cluster = written
    lane.take(message(1))
    turn_until(work, lambda: not lane.unsettled())
    failed = work._writer._producer
    assert failed is not None
    cluster.kill()
    lane.take(message(2))
    work.poll()
    fail_for_good(failed)
    retried = lane.cell.topics["retry-in"].name
    turn_until(work, lambda: len(lane.producer.of(retried)) == 1)
    cluster.start()
    lane.take(message(3))
    turn_until(work, lambda: lane.unsettled() == 1)  # the scheduled retry is settled by its own report
    assert lane.filed()[NODE, "delivered", ""] == 2
    assert work._writer._producer is not failed
