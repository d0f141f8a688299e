"""Autoscaler's tick against real Kafka and Postgres: offsets become samples, and a busy group gets lanes."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import TopicPartition

from controlplane.autoscaler.offsets import OffsetReader
from controlplane.autoscaler.tasks import Autoscaler, ScaleLimits
from controlplane.compute.memory import MemoryCompute
from controlplane.control_topic import ControlTopic
from controlplane.kafka import consumer, producer
from controlplane.provisioner.act import Effects, ensure_cell_topics
from controlplane.settings import control_settings
from controlplane.topics import TopicCreator
from dataplane.names import PURPOSES, cell_topic, lane_group
from mgmt.models import Cell, ControlAction, Heartbeat, ScaleGroup, ScaleSample
from tests.support.kafka import broker_admin

pytestmark = pytest.mark.django_db(transaction=True)
MOST = 4


@pytest.fixture
def cell(kafka: str) -> Iterator[str]:
    """A cell with real topics, which are deleted after the test."""
    name = f"t{uuid.uuid4().hex[:8]}"
    Cell.objects.create(id=name)
    hands = Effects(control_settings(), TopicCreator(kafka), ControlTopic(kafka), MemoryCompute(), {})
    ensure_cell_topics(hands, cell=name)
    yield name
    admin = broker_admin(kafka)
    for future in admin.delete_topics([cell_topic(name, purpose, 1) for purpose in PURPOSES]).values():
        future.exception()


def send(kafka: str, cell: str, count: int) -> None:
    writer = producer(kafka)
    for number in range(count):
        writer.produce(cell_topic(cell, "ingest", 1), b"x", partition=number % 4)
    assert writer.flush(20) == 0


def settle(kafka: str, cell: str, each: int) -> None:
    reader = consumer(kafka, lane_group(cell, "process"))
    topic = cell_topic(cell, "ingest", 1)
    reader.commit(offsets=[TopicPartition(topic, number, each) for number in range(4)], asynchronous=False)
    reader.close()


def beat(cell: str, at: datetime, cpu_s: float) -> None:
    fields = {"kind": "process", "epoch": 1, "incarnation": "x", "state": "running", "table_offset": 1, "at": at}
    body = {"pid": 7, "cpu_s": cpu_s}
    Heartbeat.objects.update_or_create(cell=cell, writer="process-0", defaults=fields | {"body": body})


def test_busy_group_with_a_backlog_gets_lanes(kafka: str, cell: str):
    scaler = Autoscaler(OffsetReader(kafka), ScaleLimits(MOST))
    now = datetime.now(UTC)
    for turn in range(2):
        send(kafka, cell, 8_000)
        settle(kafka, cell, 1_000 * turn)
        beat(cell, now + timedelta(seconds=5 * turn), 4.9 * turn)
        said = scaler.tick(now + timedelta(seconds=5 * turn))
    assert said == "process 1 -> 3"
    assert Cell.objects.get(id=cell).lanes["process"] == 3
    assert ControlAction.objects.get().action == "scale-out"
    newest = ScaleSample.objects.filter(kind="process").latest("at")
    assert (newest.came, newest.settled) == (16_000, 4_000)
    seen = ScaleGroup.objects.get(kind="process").seen
    assert (seen["came"], seen["settled"], seen["backlog"]) == (1_600, 800, 12_000)


def test_tick_without_a_broker_reports_waiting_for_kafka(cell: str):
    assert Autoscaler(OffsetReader("127.0.0.1:1"), ScaleLimits(MOST)).tick(datetime.now(UTC)) == "waiting for Kafka"
    assert not ScaleSample.objects.exists()
