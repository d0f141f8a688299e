"""Consumer of a lane on a real broker: it commits nothing automatically, and stops without an offset."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import NewTopic

from dataplane.runtime.kafka import SESSION_TIMEOUT_MS, lane_consumer, leave_group
from dataplane.runtime.lanes.context import LaneError
from dataplane.runtime.lanes.partitions import AssignedPartitions
from dataplane.runtime.lanes.poison import PoisonTracker
from dataplane.runtime.lanes.rebalance import Rebalance
from dataplane.runtime.lanes.slots import PartitionSlots
from dataplane.tables.optional_files import OptionalFiles
from tests.support.kafka import admin_consumer, admin_producer, broker_admin
from tests.support.patience import Patience

pytestmark = pytest.mark.kafka_role("cells")
EVENTS = 20
SOON_S = SESSION_TIMEOUT_MS / 1_000 / 2


@pytest.fixture
def topic(kafka_servers: str) -> Iterator[str]:
    """A topic of one partition with some records."""
    name, admin = f"penstock.lane-{uuid.uuid4().hex[:8]}", broker_admin(kafka_servers)
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)
    producer = admin_producer({"bootstrap.servers": kafka_servers})
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
    with admin_consumer({"bootstrap.servers": kafka, "group.id": group}) as client:
        client.commit(offsets=[place], asynchronous=False)


def test_lane_that_ends_without_a_checkpoint_has_committed_nothing(kafka_servers: str, topic: str):
    commit(kafka_servers, topic, TopicPartition(topic, 0, 3))
    consumer = lane_consumer(kafka_servers, topic, "lane", lambda *_: None)
    consumer.subscribe([topic])
    assert [message.offset() for message in read(consumer, EVENTS - 3)] == list(range(3, EVENTS))
    consumer.close()
    with admin_consumer({"bootstrap.servers": kafka_servers, "group.id": topic}) as client:
        assert client.committed([TopicPartition(topic, 0)], timeout=10)[0].offset == 3


def test_lane_with_a_lost_offset_stops_and_never_jumps(kafka_servers: str, topic: str):
    consumer = lane_consumer(kafka_servers, topic, "lane", lambda *_: None)
    consumer.subscribe([topic])
    (first,) = read(consumer, 1)
    consumer.close()
    error = first.error()
    assert error is not None, f"it began at {first.offset()} by itself"
    assert error.code() == KafkaError._AUTO_OFFSET_RESET


class Rebalanced(NamedTuple):
    """The parts of a lane that own partitions."""

    partitions: AssignedPartitions
    callbacks: Rebalance


def rebalanced(consumer: Consumer, topic: str, folder: Path) -> Rebalanced:
    """Return partitions that can be assigned, paused and lost, without work in progress."""
    slots, crashes = PartitionSlots([topic]), PoisonTracker(folder, OptionalFiles())
    owned = AssignedPartitions("process-0", slots, consumer, crashes, pat=lambda: None, max_unsettled=100)
    callbacks = Rebalance(
        "process-0",
        slots,
        owned,
        crashes,
        stop_work=lambda _slots: None,
        finish_work=lambda: None,
        forget=lambda _slot: None,
    )
    return Rebalanced(owned, callbacks)


def pause_it(owned: AssignedPartitions) -> None:
    """Pause the partition, as the producer is full for a while."""
    owned.hold_back(all_full=True)


def stop_it(owned: AssignedPartitions) -> None:
    """Stop the partition, as its offset is reported to be out of range."""
    owned.stop(0, KafkaError(KafkaError._AUTO_OFFSET_RESET))


@pytest.mark.parametrize("hold", [pause_it, stop_it])
def test_partition_paused_or_stopped_when_lost_is_read_once_assigned_again(
    kafka_servers: str, topic: str, tmp_path: Path, hold: Callable[[AssignedPartitions], None]
):
    """The client keeps a pause across assignments: after a broker's death the partition would never be read."""
    commit(kafka_servers, topic, TopicPartition(topic, 0, 3))
    with closing(lane_consumer(kafka_servers, topic, "lane", lambda *_: None)) as consumer:
        owned, callbacks = rebalanced(consumer, topic, tmp_path)
        consumer.subscribe([topic], on_assign=callbacks.assigned, on_lost=callbacks.lost)
        read(consumer, EVENTS - 3)
        hold(owned)
        callbacks.lost(consumer, [TopicPartition(topic, 0)])
        callbacks.assigned(consumer, [TopicPartition(topic, 0)])
        owned.hold_back(all_full=False)
        assert [message.offset() for message in read(consumer, 2)] == [3, 4]
        assert not owned.trouble


class Member:
    """Static member of a lane's group that notes what it is assigned."""

    def __init__(self, kafka: str, topic: str, instance: str) -> None:
        self.owned: set[int] = set()
        self.consumer = lane_consumer(kafka, topic, "lane", lambda *_: None, instance=instance)
        self.consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)

    def owns_within(self, seconds: float) -> bool:
        """Poll until the partition is assigned or the time is over."""
        deadline = time.monotonic() + seconds
        while not self.owned and time.monotonic() < deadline:
            self.consumer.poll(0.05)
        return bool(self.owned)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.owned |= {one.partition for one in partitions}
        consumer.incremental_assign(partitions)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.owned -= {one.partition for one in partitions}
        consumer.incremental_unassign(partitions)


def test_lane_that_returns_after_a_crash_gets_its_partitions_back_before_its_session_times_out(
    kafka_servers: str, topic: str, tmp_path: Path
):
    """The first consumer stands for a crashed lane: it is never polled again, and its session stays open."""
    commit(kafka_servers, topic, TopicPartition(topic, 0, 3))
    crashed = Member(kafka_servers, topic, "process-0")
    assert crashed.owns_within(40)
    returned = Member(kafka_servers, topic, "process-0")
    with closing(crashed.consumer), closing(returned.consumer):
        assert returned.owns_within(SOON_S)
        owned, _ = rebalanced(crashed.consumer, topic, tmp_path)
        found = read(crashed.consumer, 1)
        while found[-1].error() is None:  # what it had fetched before
            found += read(crashed.consumer, 1)
        with pytest.raises(LaneError, match="fenced"):
            owned.admit(found)
        leave_group(crashed.consumer)


def test_lane_that_leaves_hands_its_partitions_over_before_its_session_times_out(kafka_servers: str, topic: str):
    commit(kafka_servers, topic, TopicPartition(topic, 0, 3))
    leaving = Member(kafka_servers, topic, "process-0")
    with closing(leaving.consumer):
        assert leaving.owns_within(40)
        other = Member(kafka_servers, topic, "process-1")  # not earlier, or it may get the only partition
        leave_group(leaving.consumer)
    with closing(other.consumer):
        assert other.owns_within(SOON_S)
