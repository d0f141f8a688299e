"""Source with event types on a real broker: each framing is stored as JSON, and what does not fit is not stored."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from dataplane.ledger.meta import MessageMeta, read_meta
from dataplane.tables.records import EventTypesRecord
from tests.support.cluster import KEY, PIPE, TENANT, Cluster
from tests.support.event_types import ORDER_1, ORDER_2, confluent, container, gilt, registered, subject
from tests.support.ingest_replica import Replica, feeding_cluster
from tests.support.kafka import admin_consumer, admin_producer
from tests.support.patience import until

TOPIC = "orders.typed"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    sources = {"shop": {"key": "id"}, "theirs": {"type": "kafka", "cluster": "theirs", "topic": TOPIC}}
    types = [EventTypesRecord(PIPE, source, 1, "", {"": "orders"}) for source in sources]
    orders = subject("orders", registered(7, 1, ORDER_1), registered(8, 2, ORDER_2), tenant=TENANT)
    with feeding_cluster(tmp_path, TOPIC, sources, orders, *types) as made:
        yield made


def post(port: int, body: bytes, media_type: str) -> tuple[int, Any]:
    """Post a body; return status and answer."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": media_type}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/v1/events", body, headers)
        answer = connection.getresponse()
        return answer.status, json.load(answer)
    finally:
        connection.close()


def is_up(port: int) -> bool:
    try:
        return post(port, b"[]", "application/json")[0] == 202
    except OSError:
        return False


def stored(cluster: Cluster) -> list[tuple[bytes, MessageMeta]]:
    """Return body and Meta of everything on the ingest topic, in its order."""
    consumer = admin_consumer({"bootstrap.servers": cluster.kafka, "group.id": "test", "log_level": 3})
    partition = TopicPartition(cluster.topics["ingest"].name, 0, 0)
    _, high = consumer.get_watermark_offsets(partition, timeout=10)
    consumer.assign([partition])
    found: list[tuple[bytes, MessageMeta]] = []
    while len(found) < high:
        message = consumer.poll(10)
        assert message is not None
        found.append((message.value(), read_meta(message.headers())))
    consumer.close()
    return found


@pytest.mark.timeout(300)
def test_events_of_each_framing_are_stored_as_json_and_misfits_are_not_stored(cluster: Cluster, tmp_path: Path):
    replica = Replica(cluster, tmp_path)
    try:
        until(lambda: is_up(replica.port), "the replica", 60)
        avro = "avro/binary"
        sent = [
            (b'{"id": 1, "total": 1.50}', "application/json"),
            (confluent(8, ORDER_2, {"id": 2, "total": "2.50"}), avro),
            (gilt(ORDER_1, {"id": 3}), "application/avro"),
            (container(ORDER_1, {"id": 4}, {"id": 5}, codec="deflate"), "application/octet-stream"),
        ]
        assert [post(replica.port, body, media_type)[0] for body, media_type in sent] == [202] * 4
        status, answer = post(replica.port, b'[{"id": 6}, {"id": "x"}, {"total": 1}]', "application/json")
        assert (status, [one.get("pointer") for one in answer["items"]]) == (207, [None, "/id", "/id"])
        refused = [(confluent(99, ORDER_1, {"id": 7}), avro), (b"Obj\x01", avro), (b"\x00\x00\x00\x00\x07", avro)]
        answers = [post(replica.port, body, media_type) for body, media_type in refused]
        assert [(status, answer["code"]) for status, answer in answers] == [
            (422, "schema-unknown"),
            (422, "avro-invalid"),
            (422, "schema"),
        ]
        assert [(body, meta.schema) for body, meta in stored(cluster)] == [
            (b'{"id": 1, "total": 1.50}', "orders@2"),
            (b'{"id":2,"total":"2.50","type":null}', "orders@2"),
            (b'{"id":3}', "orders@1"),
            (b'{"id":4}', "orders@1"),
            (b'{"id":5}', "orders@1"),
            (b'{"id": 6}', "orders@2"),
        ]
    finally:
        replica.close()


@pytest.mark.timeout(300)
def test_feed_continues_after_a_misfit_and_stores_it_with_its_reason(cluster: Cluster, tmp_path: Path):
    producer = admin_producer({"bootstrap.servers": cluster.kafka, "acks": "all"})
    for body in (b'{"id":1}', b'{"id":"x"}', confluent(7, ORDER_1, {"id": 2}), b"\x00\x00", b'{"id":3}'):
        producer.produce(TOPIC, body, key="k")
    assert producer.flush(20) == 0
    replica = Replica(cluster, tmp_path)
    try:
        until(lambda: len(stored(cluster)) >= 5, "five records", 90)
        assert [(body, meta.schema, meta.misfit) for body, meta in stored(cluster)] == [
            (b'{"id":1}', "orders@2", ""),
            (b'{"id":"x"}', "", "/id: needs int, got a text"),
            (b'{"id":2}', "orders@1", ""),
            (b"\x00\x00", "", "the event: needs 4 bytes of the id of its schema, got 1"),
            (b'{"id":3}', "orders@2", ""),
        ]
    finally:
        replica.close()
