"""Kafka clients of the control plane on a real broker: few, kept across its restart, members of no group."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic

from controlplane.autoscaler.offsets import OffsetReader
from controlplane.autoscaler.tasks import Autoscaler, ScaleLimits
from controlplane.compute.memory import MemoryCompute
from controlplane.control_topic import ControlTopic
from controlplane.kafka import KafkaClients, RecordNotStoredError
from controlplane.lookups.publish import LookupPublisher
from controlplane.provisioner.act import Effects, ensure_cell_topics
from controlplane.provisioner.tasks import Provisioner
from controlplane.settings import control_settings
from controlplane.topics import TopicCreator
from dataplane.names import PURPOSES, cell_topic
from dataplane.runtime.kafka import lane_consumer
from dataplane.spec.kafka_security import VARIABLE
from localbox.settings import ROOT
from mgmt.lookups.row_files import NewRow
from mgmt.models import Cell, LookupTable, User
from mgmt.services import create_lookup_table, create_tenant, upload_rows
from tests.support.broker import Broker
from tests.support.kafka import broker_admin
from tests.support.librdkafka import client_threads, clients_made, fail_for_good
from tests.support.patience import Patience

ROUNDS: Final = 100
KILLS: Final = 10  # each outage is longer than a request's timeout
MISSING_S: Final = 12
ASKS_FOR_MISSING_TOPICS: Final = """
import sys, time, uuid
from concurrent.futures import ThreadPoolExecutor
from confluent_kafka import KafkaException
from controlplane.kafka import KafkaClients

clients, until = KafkaClients(sys.argv[1]), time.monotonic() + float(sys.argv[2])

def ask(number):
    asked = 0
    while time.monotonic() < until:
        asked += 1
        try:
            missing = [(f"penstock.missing-{uuid.uuid4().hex}", place) for place in range(4)]
            clients.starts(missing, group=f"penstock.g{number}")
            sys.exit("there was such a topic")
        except KafkaException:
            pass
    return asked

with ThreadPoolExecutor(10) as pool:
    print(sum(pool.map(ask, range(10))))
clients.close()
"""
ASKS: Final = """
import random, sys, threading, time
from confluent_kafka import KafkaException, TopicPartition
from controlplane import kafka
from tests.support.librdkafka import MockCluster

cluster, chance, done = MockCluster(), random.Random(1), threading.Event()
cluster.make_topic("t")
kafka._common = lambda servers: {
    "bootstrap.servers": servers, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50, "log_level": 0
}

def kill():
    for _ in range(int(sys.argv[1])):
        time.sleep(chance.uniform(0.2, 0.4))
        cluster.kill()
        time.sleep(chance.uniform(0.2, 0.4))
        cluster.start()
    done.set()

clients = kafka.kafka_clients(cluster.address)
clients.group_reader("g").commit(offsets=[TopicPartition("t", 0, 7)], asynchronous=False)
threading.Thread(target=kill, daemon=True).start()
while True:
    is_last = done.is_set()
    try:
        committed = clients.committed("g", [("t", 0)], timeout_s=0.2)["t", 0]
    except KafkaException:
        time.sleep(0.001)
    else:
        if is_last:
            break
print(committed)
"""


@pytest.fixture
def topic(kafka: str) -> Iterator[str]:
    """A topic with one partition."""
    name, admin = f"penstock.t{uuid.uuid4().hex[:8]}", broker_admin(kafka)
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)
    yield name
    admin.delete_topics([name])[name].result(20)


@pytest.fixture
def cell(kafka: str) -> Iterator[str]:
    """A cell with real topics, which are deleted after the test."""
    name = f"t{uuid.uuid4().hex[:8]}"
    Cell.objects.create(id=name)
    ensure_cell_topics(
        Effects(control_settings(), TopicCreator(kafka), ControlTopic(kafka), MemoryCompute(), {}), cell=name
    )
    yield name
    admin = broker_admin(kafka)
    for future in admin.delete_topics([cell_topic(name, purpose, 1) for purpose in PURPOSES]).values():
        future.exception()


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_hundred_ticks_create_no_more_clients_than_one(kafka: str, cell: str):
    hands = Effects(control_settings(), TopicCreator(kafka), ControlTopic(kafka), MemoryCompute(), {})
    provisioner, publisher = Provisioner(hands), LookupPublisher(kafka)
    scaler = Autoscaler(OffsetReader(kafka), ScaleLimits(4))
    table = create_lookup_table(tenant=create_tenant(name="A", owner=User.objects.create_user("alice")), name="shops")
    now = datetime.now(UTC)

    def tick(number: int) -> None:
        upload_rows(table=table, rows=[NewRow(1, "a", f'{{"n":{number}}}')], mode="merge")
        said = [provisioner.tick(), publisher.tick(), scaler.tick(now + timedelta(seconds=number))]
        assert not any("waiting" in one or "skipped" in one for one in said), said

    tick(0)
    made, threads = clients_made(), client_threads()
    for number in range(1, ROUNDS):
        tick(number)
        if number % 20 == 1:
            made += 1
            assert clients_made() == made, "only the client that does the counting"
    assert client_threads() <= threads
    assert LookupTable.objects.get().published_version == LookupTable.objects.get().version


def test_reading_committed_offsets_causes_no_rebalance(kafka: str, topic: str):
    with closing(KafkaClients(kafka)) as clients, closing(lane_consumer(kafka, topic, "lane", lambda *_: None)) as lane:
        reader = clients.group_reader(topic)
        reader.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
        rebalances: list[str] = []
        lane.subscribe(
            [topic],
            on_assign=lambda *_: rebalances.append("assigned"),
            on_revoke=lambda *_: rebalances.append("revoked"),
            on_lost=lambda *_: rebalances.append("lost"),
        )
        patience = Patience(60)
        while not rebalances:
            assert not patience.is_over
            lane.poll(0.1)
        for _ in range(50):
            assert clients.committed(topic, [(topic, 0)]) == {(topic, 0): 7}
            lane.poll(0)
        admin = broker_admin(kafka)
        group = admin.describe_consumer_groups([topic])[topic].result(20)
        assert [member.client_id for member in group.members] == ["lane"]
        assert rebalances == ["assigned"]


def test_producer_with_a_fatal_error_is_replaced(kafka: str, topic: str):
    with closing(KafkaClients(kafka)) as clients:
        clients.store("w", topic, [(b"k", b"1")], timeout_s=20)
        fail_for_good(clients._kept["producer w"])
        with pytest.raises(RecordNotStoredError, match="Fatal error"):
            clients.store("w", topic, [(b"k", b"2")], timeout_s=20)
        clients.store("w", topic, [(b"k", b"3")], timeout_s=20)
        assert clients.ends([(topic, 0)]) == {(topic, 0): 2}


def test_process_survives_repeated_kills_of_the_broker():
    """With the admin client's call the process ended at one of the first three kills (librdkafka's issue 4605).

    The broker is librdkafka's mock: a real broker cannot be killed and started ten times within seconds.
    """
    command = [sys.executable, "-c", ASKS, str(KILLS)]
    env = {name: value for name, value in os.environ.items() if name != VARIABLE}  # the mock has no TLS
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["7"]), done.stderr


@pytest.mark.long
def test_process_survives_threads_that_query_missing_topics(kafka: str):
    """The Provisioner does so right after it has created the topics of a cell.

    The admin client's `list_offsets` and `list_topics` corrupted memory and ended the process after some seconds.
    """
    command = [sys.executable, "-c", ASKS_FOR_MISSING_TOPICS, kafka, str(MISSING_S)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > ROUNDS, "the threads did query topics"


def test_clients_from_before_a_broker_restart_keep_working(tmp_path: Path):
    broker = Broker(tmp_path)
    broker.start()
    try:
        admin = broker_admin(broker.address, log_level=0)
        admin.create_topics([NewTopic("penstock.t", 1, 1)])["penstock.t"].result(20)
        with closing(KafkaClients(broker.address)) as clients:
            clients.group_reader("penstock.g").commit(offsets=[TopicPartition("penstock.t", 0, 0)], asynchronous=False)
            clients.store("w", "penstock.t", [(b"k", b"1")], timeout_s=20)
            assert clients.ends([("penstock.t", 0)]) == {("penstock.t", 0): 1}
            before = clients.admin(), clients.group_reader("penstock.g")
            broker.kill()
            with pytest.raises(KafkaException):
                clients.ends([("penstock.t", 0)])
            broker.start()
            assert answered(lambda: clients.ends([("penstock.t", 0)])) == {("penstock.t", 0): 1}
            assert answered(lambda: clients.committed("penstock.g", [("penstock.t", 0)])) == {("penstock.t", 0): 0}
            clients.store("w", "penstock.t", [(b"k", b"2")], timeout_s=20)
            assert clients.ends([("penstock.t", 0)]) == {("penstock.t", 0): 2}
            assert (clients.admin(), clients.group_reader("penstock.g")) == before
    finally:
        broker.kill()


def answered(ask: Callable[[], object]) -> object:
    """Repeat the call until there is an answer, and return the answer."""
    patience = Patience(30)
    while True:
        try:
            return ask()
        except KafkaException:
            assert not patience.is_over, "no answer after the restart"
            time.sleep(0.05)
