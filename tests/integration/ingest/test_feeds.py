"""Source of type kafka on a real broker: a killed replica loses nothing, and repeats keep their id."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from dataplane.ledger.meta import read_meta
from localbox.settings import ROOT
from localbox.testing import free_ports
from tests.support.broker import Broker
from tests.support.cluster import KEY, PIPE, TENANT, Cluster
from tests.support.data_plane import until

TOPIC = "orders.eu"


class Replica:
    """One ingest replica that a test may kill."""

    def __init__(self, cluster: Cluster, var: Path) -> None:
        clusters = {"theirs": {"tenants": [TENANT], "topics": ["orders.*"]}}
        clusters["theirs"]["settings"] = {"bootstrap.servers": cluster.kafka, "session.timeout.ms": "6000"}  # type: ignore[assignment]
        file = var / "clusters.json"
        file.write_text(json.dumps(clusters))
        port = next(iter(free_ports().values()))
        self._env = os.environ | cluster.env(str(var), int(port)) | {"PENSTOCK_KAFKA_CLUSTERS": str(file)}
        self._env["PYTHONPATH"] = f"{ROOT}:{ROOT / 'platform'}"
        self._log = var / "ingest.log"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "dataplane.ingest", "--replica", "ingest-1"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, env=self._env, stdout=log, stderr=log)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(40)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    broker = Broker(tmp_path / "broker")
    broker.start()
    made = Cluster(broker.address, partitions=2)
    made.make_topics()
    made.publish_cell()
    made.admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result()
    sources = {"shop": {}, "theirs": {"type": "kafka", "cluster": "theirs", "topic": TOPIC, "event_time": "at"}}
    made.add_pipe(PIPE, KEY, {"crm": {"url": "http://127.0.0.1:1/"}}, sources=sources)
    yield made
    broker.stop()


def produce(cluster: Cluster, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.kafka, "acks": "all"})
    for number in range(first, first + count):
        producer.produce(TOPIC, b'{"n":%d}' % number, key=f"k{number % 7}")
    assert producer.flush(20) == 0


def ingested(cluster: Cluster) -> list[tuple[str, int, bytes]]:
    """Return (id, number, key) of everything on the ingest topic."""
    consumer = Consumer({"bootstrap.servers": cluster.kafka, "group.id": "test", "log_level": 3})
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
