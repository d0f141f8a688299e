"""Source of type kafka on a real broker: a killed replica loses nothing, and repeats keep their id."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from dataplane.ledger.meta import read_meta
from tests.support.cluster import PIPE, Cluster
from tests.support.ingest_replica import Replica, feeding_cluster
from tests.support.kafka import admin_consumer, admin_producer
from tests.support.patience import until

TOPIC = "orders.eu"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    sources = {"shop": {}, "theirs": {"type": "kafka", "cluster": "theirs", "topic": TOPIC, "event_time": "at"}}
    with feeding_cluster(tmp_path, TOPIC, sources, partitions=2) as made:
        yield made


def produce(cluster: Cluster, first: int, count: int) -> None:
    producer = admin_producer({"bootstrap.servers": cluster.kafka, "acks": "all"})
    for number in range(first, first + count):
        producer.produce(TOPIC, b'{"n":%d}' % number, key=f"k{number % 7}")
    assert producer.flush(20) == 0


def ingested(cluster: Cluster) -> list[tuple[str, int, bytes]]:
    """Return (id, number, key) of everything on the ingest topic."""
    consumer = admin_consumer({"bootstrap.servers": cluster.kafka, "group.id": "test", "log_level": 3})
    topic, found = cluster.topics["ingest"].name, []
    for partition in range(2):
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
        consumer.assign([TopicPartition(topic, partition, 0)])
        position = 0
        while position < high:
            message = consumer.poll(10)
            assert message is not None
            position = message.offset() + 1
            found.append((read_meta(message.headers()).id, json.loads(message.value())["n"], message.key()))
    consumer.close()
    return found


@pytest.mark.timeout(900)
def test_killed_replica_loses_nothing_and_repeats_keep_their_ids(cluster: Cluster, tmp_path: Path):
    produce(cluster, 0, 2_000)
    replica = Replica(cluster, tmp_path)
    until(lambda: len(ingested(cluster)) > 200, "the first events", 90)
    replica.kill()
    produce(cluster, 2_000, 500)
    replica.start()
    until(lambda: {n for _, n, _ in ingested(cluster)} >= set(range(2_500)), "every event", 90)
    found = ingested(cluster)
    assert len({id_ for id_, _, _ in found}) == len({n for _, n, _ in found}) == 2_500
    assert all(key == f"{PIPE}\0k{n % 7}".encode() for _, n, key in found)
    replica.close()
    before = len(found)
    replica.start()
    produce(cluster, 2_500, 10)
    until(lambda: len(ingested(cluster)) >= before + 10, "ten more", 60)
    assert len(ingested(cluster)) == before + 10, "an orderly shutdown repeats nothing"
    replica.close()
