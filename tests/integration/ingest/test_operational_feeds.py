"""Source of type penstock on a real broker: each tenant gets its own events, and kills of the reader leave no gap."""

import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import TopicPartition

from dataplane.ingest.operational_feed import GROUP_PART
from dataplane.ledger.meta import read_meta
from dataplane.names import OPERATIONAL_TOPIC
from tests.support.cluster import PIPE, TENANT, Cluster, key_of
from tests.support.ingest_replica import Replica, feeding_cluster
from tests.support.kafka import admin_consumer, admin_producer
from tests.support.patience import until
from tests.support.topic_reader import read_topic

OTHER_PIPE, OTHER_TENANT = "pipe_other", "ten_other"
SOURCE = "events"
KILLS = 3


class Seen(NamedTuple):
    """Operational event on the ingest topic."""

    id: str
    record_key: bytes
    event: dict[str, Any]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Broker with two tenants, each with a pipe that receives operational events."""
    source = {"type": "penstock", "events": ["penstock.alert.*"]}
    sources = {"shop": {}, SOURCE: source}
    with feeding_cluster(tmp_path, "orders.eu", sources, partitions=2) as made:
        destinations = {"crm": {"url": "http://127.0.0.1:1/"}}
        made.add_pipe(OTHER_PIPE, key_of(OTHER_PIPE), destinations, tenant=OTHER_TENANT, sources=sources)
        yield made


class Publisher:
    """Publishes operational events of both tenants, and remembers those that each pipe should get."""

    def __init__(self, cluster: Cluster) -> None:
        self._producer = admin_producer({"bootstrap.servers": cluster.kafka, "acks": "all"})
        self.expected: dict[str, list[str]] = {PIPE: [], OTHER_PIPE: []}

    def publish(self, number: int) -> None:
        """Publish one event for each pipe, twice, and one of each kind that no pipe gets."""
        for tenant, receiver in ((TENANT, PIPE), (OTHER_TENANT, OTHER_PIPE)):
            wanted = f"evt_{tenant}_{number}"
            self._send(wanted, "penstock.alert.opened", tenant, f"pipe_watched_{number % 3}")
            self._send(wanted, "penstock.alert.opened", tenant, f"pipe_watched_{number % 3}")
            self._send(f"evt_own_{number}", "penstock.alert.opened", tenant, receiver)
            self._send(f"evt_paused_{number}", "penstock.pipe.paused", tenant, "pipe_watched_0")
            self.expected[receiver].append(wanted)

    def _send(self, id_: str, type_: str, tenant: str, pipe: str) -> None:
        event = {"id": id_, "type": type_, "time": "2026-11-29T06:00:00+00:00", "tenant": tenant, "data": {}}
        value = json.dumps(event | {"pipe": {"id": pipe, "name": "watched"}})
        self._producer.produce(OPERATIONAL_TOPIC, value, tenant)
        self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(20) == 0


def ingested(cluster: Cluster, pipe: str) -> list[Seen]:
    """Return the operational events that a pipe has got."""
    found = []
    for message in read_topic(cluster.kafka, cluster.topics["ingest"].name, 2):
        meta = read_meta(message.headers())
        if (meta.pipe, meta.source) == (pipe, SOURCE):
            found.append(Seen(meta.id, message.key(), json.loads(message.value())))
    return found


def has_begun(cluster: Cluster, pipe: str) -> bool:
    """Return True if the first offset of a pipe's source is committed."""
    group = f"penstock.{pipe}.{SOURCE}.{GROUP_PART}"
    consumer = admin_consumer({"bootstrap.servers": cluster.kafka, "group.id": group, "log_level": 3})
    (known,) = consumer.committed([TopicPartition(OPERATIONAL_TOPIC, 0)], timeout=10)
    consumer.close()
    return bool(known.offset >= 0)


def ids(found: list[Seen]) -> set[str]:
    return {one.event["id"] for one in found}


def wait_for_more(cluster: Cluster) -> None:
    before = len(ingested(cluster, PIPE))
    until(lambda: len(ingested(cluster, PIPE)) > before, "more after a kill", 90)


def wait_for_all(cluster: Cluster, pipe: str, expected: set[str]) -> list[Seen]:
    until(lambda: ids(ingested(cluster, pipe)) >= expected, "every event", 90)
    return ingested(cluster, pipe)


@pytest.mark.timeout(900)
def test_each_tenant_gets_all_its_events_and_no_others_through_kills(cluster: Cluster, tmp_path: Path):
    publisher = Publisher(cluster)
    publisher.publish(0)
    publisher.flush()
    for missed in publisher.expected.values():
        missed.clear()  # the sources begin later
    replica = Replica(cluster, tmp_path)
    until(lambda: has_begun(cluster, PIPE) and has_begun(cluster, OTHER_PIPE), "both sources", 90)
    ended = threading.Event()

    def publish() -> None:
        for number in range(1, 100_000):
            publisher.publish(number)
            if ended.wait(0.02):
                return

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        for _ in range(KILLS):
            time.sleep(random.uniform(1, 4))
            replica.kill()
            replica.start()
            wait_for_more(cluster)
    finally:
        ended.set()
        thread.join()
    publisher.flush()
    for pipe, tenant in ((PIPE, TENANT), (OTHER_PIPE, OTHER_TENANT)):
        expected = set(publisher.expected[pipe])
        found = wait_for_all(cluster, pipe, expected)
        assert ids(found) == expected
        assert {one.event["tenant"] for one in found} == {tenant}
        assert len({one.id for one in found}) == len(expected), "repeats of an event have the same id"
        assert all(one.record_key == f"{pipe}\0{one.event['pipe']['id']}".encode() for one in found)
    replica.close()
