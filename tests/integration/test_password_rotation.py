"""A role's password is replaced while its clients run, by the steps of docs/managed-kafka.md."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaError, Producer

from controlplane.kafka_access.acls import role_acls, role_user
from controlplane.kafka_access.apply import KafkaAccess
from dataplane.kafka_clients import make_admin_client
from dataplane.runtime.kafka import lane_producer
from dataplane.spec.kafka_security import VARIABLE
from localbox.services.kafka_tls import ADMIN, KafkaTls, write_private
from tests.support.broker import Broker
from tests.support.patience import Patience
from tests.support.secured import SignedIn

TOPIC: Final = "penstock.c1.egress.g1"
USER: Final = role_user("cells")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path / "broker", {"PENSTOCK_KAFKA_TLS": "true"})
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture
def tls(broker: Broker) -> KafkaTls:
    assert broker.tls is not None
    return broker.tls


@pytest.fixture
def access(broker: Broker, tls: KafkaTls) -> KafkaAccess:
    """ACLs of the role, and a topic."""
    admin = make_admin_client({"bootstrap.servers": broker.address, "log_level": 0}, tls.settings_of(ADMIN))
    access = KafkaAccess(admin)
    access.set_acls(USER, role_acls("cells"))
    SignedIn(broker.address, tls.settings_of(ADMIN)).make_topic(TOPIC)
    return access


@pytest.fixture
def settings_file(tls: KafkaTls, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tls.settings_file(USER)))
    return tls.settings_file(USER)


def store(producer: Producer, limit_s: float = 30.0) -> bool:
    """Return True once a record is stored."""
    stored: list[KafkaError | None] = []
    producer.produce(TOPIC, b"x", on_delivery=lambda error, _: stored.append(error))
    patience = Patience(limit_s)
    while not stored and not patience.is_over:
        producer.poll(0.1)
    return stored == [None]


def restart(broker: Broker) -> None:
    """End every connection."""
    broker.stop()
    broker.start()


def test_running_client_is_signed_in_until_it_reconnects_and_new_clients_read_the_file(
    broker: Broker, tls: KafkaTls, access: KafkaAccess, settings_file: Path
):
    running = lane_producer(broker.address, "running")
    assert store(running)
    access.set_password(USER, "second password")
    assert store(running), "the connection stays signed in"
    assert "Authentication failed" in SignedIn(broker.address, tls.settings_of(USER)).refused()
    write_private(settings_file, json.dumps(tls.settings_of(USER) | {"sasl.password": "second password"}))
    assert store(lane_producer(broker.address, "restarted")), "new clients read the file"
    restart(broker)
    assert not store(running, limit_s=5), "it has the old password until its process is restarted"
    assert store(lane_producer(broker.address, "restarted once more"))


def test_second_user_of_a_role_leaves_no_gap(broker: Broker, tls: KafkaTls, access: KafkaAccess, settings_file: Path):
    running = lane_producer(broker.address, "running")
    access.set_role_acls("-2")
    second = {"sasl.username": role_user("cells", "-2"), "sasl.password": "of the second"}
    access.set_password(second["sasl.username"], second["sasl.password"])
    write_private(settings_file, json.dumps(tls.settings_of(USER) | second))
    restart(broker)
    assert store(running), "the first user is still there"
    assert store(lane_producer(broker.address, "restarted"))
    access.remove(USER)
    assert store(lane_producer(broker.address, "restarted once more"))
    assert "Authentication failed" in SignedIn(broker.address, tls.settings_of(USER)).refused()
