"""Look-up tables on a host, with a real broker: changes are visible soon, and no process death loses a row."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controlplane.settings import control_settings
from controlplane.topics import TopicCreator, cluster_plans
from dataplane.names import LOOKUP_TOPIC
from dataplane.runtime.lookup_replicator import ELECT_S, LookupReplicator
from dataplane.tables.lookup_store import LookupStore
from dataplane.tables.lookups import encode_row, row_key
from localbox.testing_kafka import role_env
from tests.support.broker import Broker
from tests.support.kafka import admin_producer, broker_admin
from tests.support.librdkafka import clients_made
from tests.support.patience import Patience

ROOT = Path(__file__).parents[2]
TABLE = "tab_rig"
SEEN_S = 5.0


class Host:
    """A folder of look-up tables, and the processes that use it."""

    def __init__(self, kafka: str, folder: Path) -> None:
        self.kafka, self.folder = kafka, folder
        self.store = LookupStore(folder)
        self.log = folder / "processes.log"
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.support.lookup_process", self.kafka, str(self.folder)]
        path = os.pathsep.join([str(ROOT), str(ROOT / "platform")])
        env = os.environ | {"PYTHONPATH": path} | role_env("cells")
        with self.log.open("ab") as log:
            process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=log)
        self._processes.append(process)
        return process

    def elections(self) -> list[int]:
        """Return the offset from which each elected replicator continued, in order."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [int(line.rsplit(" ", 1)[1]) for line in lines if "replicating look-up tables" in line]

    def row(self, key: str = "k") -> object:
        pinned = self.store.pin()
        try:
            return pinned.row(TABLE, key)
        finally:
            pinned.close()

    def close(self) -> None:
        for process in self._processes:
            kill(process)
        self.store.close()


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(10)


def wait_until(is_so: Callable[[], bool], limit_s: float, what: str) -> None:
    patience = Patience(limit_s)
    while not is_so():
        assert not patience.is_over, f"{what}: not within {limit_s} s"
        time.sleep(0.02)


def make_topic(kafka: str) -> None:
    plans = cluster_plans(control_settings().topics)
    TopicCreator(kafka).ensure(plan for plan in plans if plan.name == LOOKUP_TOPIC)


def put(kafka: str, version: int, key: str = "k") -> None:
    producer = admin_producer({"bootstrap.servers": kafka, "acks": "all"})
    producer.produce(LOOKUP_TOPIC, encode_row(version, b'{"v":%d}' % version), row_key(TABLE, key))
    assert producer.flush(20) == 0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path / "broker")
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def host(broker: Broker, tmp_path: Path) -> Iterator[Host]:
    make_topic(broker.address)
    host = Host(broker.address, tmp_path / "lookups")
    yield host
    host.close()


def test_rows_are_visible_soon_and_survive_deaths_of_replicators_brokers_and_their_topic(broker: Broker, host: Host):
    first = host.start()
    wait_until(lambda: host.elections() == [0], 20, "a keeper")
    put(broker.address, 1, "sent once")
    put(broker.address, 1)
    wait_until(lambda: host.row() == {"v": 1}, SEEN_S, "a new row")

    second = host.start()
    time.sleep(2 * ELECT_S)  # it was not elected
    assert len(host.elections()) == 1
    kill(first)
    put(broker.address, 2)
    wait_until(lambda: host.row() == {"v": 2}, SEEN_S, "a row after the keeper was killed")
    assert host.elections() == [0, 2]  # it continued at the offset of the first one

    broker.kill()
    kill(second)
    third = host.start()
    wait_until(lambda: len(host.elections()) == 3, 20, "a keeper without a broker")
    assert host.row() == {"v": 2}
    assert host.elections() == [0, 2, 3]
    broker.start()
    put(broker.address, 3)
    wait_until(lambda: host.row() == {"v": 3}, 30, "a row after the broker came back")

    admin = broker_admin(broker.address, log_level=0)
    admin.delete_topics([LOOKUP_TOPIC], operation_timeout=10)[LOOKUP_TOPIC].result()
    wait_until(lambda: not TopicCreator(broker.address).find([LOOKUP_TOPIC]), 20, "the topic's end")
    assert host.row() == {"v": 3}
    make_topic(broker.address)
    put(broker.address, 2)
    put(broker.address, 4)
    wait_until(lambda: host.row() == {"v": 4}, 40, "a row of the recreated topic")
    assert host.store.position().offset == 2
    assert host.row("sent once") == {"v": 1}, "nothing has removed it"
    assert third.poll() is None


def test_repeated_topic_id_queries_use_one_client(broker: Broker, tmp_path: Path):
    """Only a garbage collection frees clients, and a lane postpones it."""
    make_topic(broker.address)
    store = LookupStore(tmp_path / "lookups")
    keeper = LookupReplicator(broker.address, store, tmp_path)
    first, before = keeper._topic_id(), clients_made()
    assert {keeper._topic_id() for _ in range(20)} == {first}
    assert clients_made() - before == 1, "only the client that does the counting"
    store.close()
