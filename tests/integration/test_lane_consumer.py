"""Consumer of a lane on a real broker: it commits nothing automatically, and stops without an offset."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dataplane.runtime.kafka import lane_consumer
from dataplane.runtime.lanes.lane import Lane, LaneIdentity
from dataplane.runtime.lanes.poison import PoisonTracker
from dataplane.runtime.lanes.slots import PartitionSlots
from dataplane.tables.optional_files import OptionalFiles
from tests.support.patience import Patience

EVENTS = 20


@pytest.fixture
def topic(kafka_servers: str) -> Iterator[str]:
    """A topic of one partition with some records."""
    name, admin = f"lane-{uuid.uuid4().hex[:8]}", AdminClient({"bootstrap.servers": kafka_servers})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)
    producer = Producer({"bootstrap.servers": kafka_servers})
    for number in range(EVENTS):
        producer.produce(name, b"%d" % number)
    assert producer.flush(20) == 0
    yield name
    admin.delete_topics([name])[name].result(20)


def read(consumer: Consumer, count: int) -> list[Message]:
    """Return this many records or errors."""
    found: list[Message] = []
    patience = Patience(40)
    while len(found) < count:
        assert not patience.is_over, f"{len(found)} of {count} came"
        if (message := consumer.poll(1)) is not None:
            found.append(message)
    return found


def commit(kafka: str, group: str, place: TopicPartition) -> None:
    """Commit an offset as the Provisioner does for a new topic."""
    with Consumer({"bootstrap.servers": kafka, "group.id": group}) as client:
        client.commit(offsets=[place], asynchronous=False)


def test_lane_that_ends_without_a_checkpoint_has_committed_nothing(kafka_servers: str, topic: str):
    commit(kafka_servers, topic, TopicPartition(topic, 0, 3))
    consumer = lane_consumer(kafka_servers, topic, "lane", lambda *_: None)
    consumer.subscribe([topic])
    assert [message.offset() for message in read(consumer, EVENTS - 3)] == list(range(3, EVENTS))
    consumer.close()
    with Consumer({"bootstrap.servers": kafka_servers, "group.id": topic}) as client:
        assert client.committed([TopicPartition(topic, 0)], timeout=10)[0].offset == 3


def test_lane_with_a_lost_offset_stops_and_never_jumps(kafka_servers: str, topic: str):
    consumer = lane_consumer(kafka_servers, topic, "lane", lambda *_: None)
    consumer.subscribe([topic])
    (first,) = read(consumer, 1)
    consumer.close()
    error = first.error()
    assert error is not None, f"it began at {first.offset()} by itself"
    assert error.code() == KafkaError._AUTO_OFFSET_RESET


class Held:
    """A lane's work, checkpoint and producer, reduced to what pausing and losing a partition needs."""

    is_full = True
    late_s = 0.0

    def forget(self, _slots: Any) -> None: ...

    def on_revoked(self, _slots: Any) -> None: ...


def lane_of(consumer: Consumer, topic: str, folder: Path) -> Lane:
    """Return a lane that can be assigned partitions, pause them and lose them."""
    lane = Lane.__new__(Lane)
    lane.identity = LaneIdentity("c1", "process", 0, 1, "here")
    lane.slots, lane.windows, lane._consumer = PartitionSlots([topic]), {}, consumer
    lane._ours, lane._paused, lane._stopped, lane._most, lane._is_closing = set(), set(), {}, (100, 100), False
    lane.producer = lane._work = lane._checkpointer = cast(Any, Held())
    lane._crashes = PoisonTracker(folder, OptionalFiles())
    return lane


def pause_it(lane: Lane) -> None:
    """Pause the partition, as the producer is full for a while."""
    lane._hold_back()
    lane.producer = cast(Any, SimpleNamespace(is_full=False))


def stop_it(lane: Lane) -> None:
    """Stop the partition, as its offset is reported to be out of range."""
    lane.producer = cast(Any, SimpleNamespace(is_full=False))
    lane._stop_partition(0, KafkaError(KafkaError._AUTO_OFFSET_RESET))


@pytest.mark.parametrize("hold", [pause_it, stop_it])
def test_partition_paused_or_stopped_when_lost_is_read_once_assigned_again(
    kafka_servers: str, topic: str, tmp_path: Path, hold: Callable[[Lane], None]
):
    """The client keeps a pause across assignments: after a broker's death the partition would never be read."""
    commit(kafka_servers, topic, TopicPartition(topic, 0, 3))
    with closing(lane_consumer(kafka_servers, topic, "lane", lambda *_: None)) as consumer:
        lane = lane_of(consumer, topic, tmp_path)
        consumer.subscribe([topic], on_assign=lane._assigned, on_lost=lane._lost)
        read(consumer, EVENTS - 3)
        hold(lane)
        lane._lost(consumer, [TopicPartition(topic, 0)])
        lane._assigned(consumer, [TopicPartition(topic, 0)])
        lane._hold_back()
        assert [message.offset() for message in read(consumer, 2)] == [3, 4]
        assert not lane._stopped
