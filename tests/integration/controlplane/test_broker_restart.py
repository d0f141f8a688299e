"""Clients of a broker that is killed and restarted resume automatically."""

import time
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import override_settings

from controlplane.control_topic import ControlTopic, ControlTopicError
from controlplane.kafka import producer
from controlplane.observer.main import ObserverSession
from controlplane.observer.metrics import ObserverMetrics
from controlplane.observer.reader import AuditReader
from controlplane.settings import control_settings
from controlplane.topics import TopicCreator, cluster_plans
from dataplane.ledger.heartbeat import HeartbeatRecord, encode_heartbeat
from dataplane.names import HEARTBEAT_TOPIC
from dataplane.tables.records import ApiKeyRecord
from localbox.testing import Box, box_of
from mgmt.models import Heartbeat as HeartbeatRow
from tests.support.patience import Patience


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with box_of("kafka") as box:
        yield box


@pytest.fixture
def broker(box: Box) -> Iterator[str]:
    """A broker for this module only, because the tests kill it."""
    with override_settings(PENSTOCK_KAFKA=box.env["PENSTOCK_KAFKA"]):
        TopicCreator(box.env["PENSTOCK_KAFKA"]).ensure(cluster_plans(control_settings().topics))
        yield box.env["PENSTOCK_KAFKA"]


def restart(box: Box) -> None:
    killed = box.kill("kafka")
    box.wait_ready("kafka", not_pid=killed)


def test_publisher_reads_and_writes_after_a_broker_restart(box: Box, broker: str):
    topic = ControlTopic(broker)
    topic.publish([ApiKeyRecord("before", 1, "p1", "shop")])
    topic.refresh()
    restart(box)
    read_again(topic)
    topic.publish([ApiKeyRecord("after", 1, "p1", "shop")])
    read_again(topic)
    assert {"key/before", "key/after"} <= set(topic.published)


def read_again(topic: ControlTopic, limit_s: float = 60) -> None:
    patience = Patience(limit_s)
    while True:
        try:
            return topic.refresh()
        except ControlTopicError:
            assert not patience.is_over, "the control topic is not readable after the restart"
            time.sleep(0.2)


@pytest.mark.django_db(transaction=True)
def test_observer_continues_in_the_same_session_after_a_broker_restart(box: Box, broker: str):
    reader = AuditReader(broker)
    session = ObserverSession(control_settings(), ObserverMetrics(), reader)
    try:
        session.step()
        restart(box)
        writer = producer(broker)
        patience = Patience(60)
        while not HeartbeatRow.objects.exists():
            assert not patience.is_over, "no heartbeat is read after the restart"
            now_us = time.time_ns() // 1000
            beat = HeartbeatRecord("c1", "process-0", "process", 1, "a", now_us, "running", 1, 1, "host", 0.0, 1)
            writer.produce(HEARTBEAT_TOPIC, encode_heartbeat(beat))
            writer.flush(10)
            session.step()
    finally:
        session.close()
        reader.close()
        connection.close()
