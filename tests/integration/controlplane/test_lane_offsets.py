"""Offsets of lanes that a real broker no longer has: listed, and repaired only where that loses nothing more."""

import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewTopic
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from dataplane.names import cell_topic, lane_group
from dataplane.runtime.kafka import lane_consumer
from mgmt.models import Cell, Topic
from tests.support.kafka import admin_consumer, admin_producer, broker_admin
from tests.support.patience import step_until

pytestmark = pytest.mark.django_db
EVENTS, DELETED = 20, 12
NOTE = "keys that are held"  # what a process lane commits with its offset


@pytest.fixture
def cell(kafka: str, settings: LazySettings) -> Iterator[Cell]:
    """A cell with an ingest topic of two partitions, each with some records; the first of partition 0 are deleted."""
    cell = Cell.objects.create(id=f"c{uuid.uuid4().hex[:8]}")
    name, admin = cell_topic(cell.id, "ingest", 1), broker_admin(kafka)
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(20)
    Topic.objects.create(cell=cell, purpose="ingest", generation=1, name=name, topic_id="t", partitions=2)
    producer = admin_producer({"bootstrap.servers": kafka})
    for number in range(2 * EVENTS):
        producer.produce(name, b"%d" % number, partition=number % 2)
    assert producer.flush(20) == 0
    for partition in range(2):
        commit(kafka, cell, partition, 5)
    place = TopicPartition(name, 0, DELETED)
    admin.delete_records([place])[place].result(20)
    settings.PENSTOCK_KAFKA = kafka
    yield cell
    admin.delete_topics([name])[name].result(20)


def group(kafka: str, cell: Cell) -> Consumer:
    return admin_consumer({"bootstrap.servers": kafka, "group.id": lane_group(cell.id, "process")})


def commit(kafka: str, cell: Cell, partition: int, offset: int) -> None:
    with closing(group(kafka, cell)) as client:
        place = TopicPartition(cell_topic(cell.id, "ingest", 1), partition, offset, NOTE)
        client.commit(offsets=[place], asynchronous=False)


def committed(kafka: str, cell: Cell, partition: int) -> int:
    with closing(group(kafka, cell)) as client:
        (found,) = client.committed([TopicPartition(cell_topic(cell.id, "ingest", 1), partition)], timeout=20)
        assert found.metadata == NOTE
        return int(found.offset)


def run(capsys: pytest.CaptureFixture[str], cell: Cell, *words: str) -> str:
    call_command("lane_offsets", cell.id, *words)
    return capsys.readouterr().out.strip()


def test_only_partitions_with_a_lost_offset_are_listed_and_a_commit_repairs_them(
    kafka: str, cell: Cell, capsys: pytest.CaptureFixture[str]
):
    topic = cell_topic(cell.id, "ingest", 1)
    lost = f"{topic}/0: penstock.{cell.id}.process is at 5, the topic has {DELETED} to {EVENTS}"
    assert run(capsys, cell) == lost
    done = run(capsys, cell, "--partition", f"{topic}/0", "--offset", str(DELETED))
    assert done == f"penstock.{cell.id}.process continues {topic}/0 at {DELETED} instead of 5"
    assert committed(kafka, cell, 0) == DELETED
    assert run(capsys, cell).startswith(f"lanes of {cell.id} can continue all partitions")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(["--partition", "{topic}/1", "--offset", "9"], "the lanes continue from there", id="in range"),
        pytest.param(["--partition", "{topic}/0", "--offset", "11"], "use 12 to 20", id="deleted offset"),
        pytest.param(["--partition", "{topic}/0", "--offset", "21"], "use 12 to 20", id="offset of the future"),
        pytest.param(["--partition", "{topic}/7", "--offset", "12"], "no lane", id="no such partition"),
        pytest.param(["--partition", "{topic}", "--offset", "12"], "names no partition", id="no partition"),
        pytest.param(["--partition", "{topic}/0"], "belong together", id="no offset"),
    ],
)
def test_offset_that_would_lose_or_repeat_records_is_refused(kafka: str, cell: Cell, words: list[str], why: str):
    topic = cell_topic(cell.id, "ingest", 1)
    with pytest.raises(CommandError, match=why):
        call_command("lane_offsets", cell.id, *(word.format(topic=topic) for word in words))
    assert [committed(kafka, cell, partition) for partition in range(2)] == [5, 5]


def test_nothing_is_committed_while_lanes_run(kafka: str, cell: Cell):
    topic = cell_topic(cell.id, "ingest", 1)
    lane = lane_consumer(kafka, lane_group(cell.id, "process"), "process-0", lambda *_: None)
    with closing(lane):
        lane.subscribe([topic])
        step_until(lane.assignment, lambda: lane.poll(0.2), 40)
        with pytest.raises(CommandError, match="stop the cell first"):
            call_command("lane_offsets", cell.id, "--partition", f"{topic}/0", "--offset", str(DELETED))
    assert committed(kafka, cell, 0) == 5


def test_unknown_cell_is_refused(kafka: str):
    with pytest.raises(CommandError, match="no cell is named nowhere"):
        call_command("lane_offsets", "nowhere")
