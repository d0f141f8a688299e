"""Slots number every partition of a lane's topics uniquely, and cost a lane of one topic nothing."""

import pytest
from confluent_kafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from dataplane.runtime.lanes.slots import SLOTS_A_TOPIC, PartitionSlots

TOPICS = ["in", "10s", "1m"]


class Message:
    def __init__(self, topic: str, partition: int) -> None:
        self._place = (topic, partition)

    def topic(self) -> str:
        return self._place[0]

    def partition(self) -> int:
        return self._place[1]


@given(st.sampled_from(TOPICS), st.integers(0, SLOTS_A_TOPIC - 1))
def test_slot_maps_back_to_its_topic_and_partition(topic: str, partition: int):
    slots = PartitionSlots(TOPICS)
    slot = slots.number(TopicPartition(topic, partition))
    assert slots.place(slot) == (topic, partition)
    assert slots.of(Message(topic, partition)) == slot
    assert slots.at(slot, 7) == TopicPartition(topic, partition, 7)


def test_partitions_of_different_topics_never_share_a_slot():
    slots = PartitionSlots(TOPICS)
    assert len({slots.number(TopicPartition(t, p)) for t in TOPICS for p in (0, 1, SLOTS_A_TOPIC - 1)}) == 9


def test_slot_of_a_single_topic_is_the_partition():
    assert PartitionSlots(["in"]).of(Message("whatever", 3)) == 3
    assert PartitionSlots(TOPICS).of(Message("in", 3)) == 3


def test_topic_that_the_lane_does_not_read_has_no_slot():
    with pytest.raises(KeyError):
        PartitionSlots(TOPICS).number(TopicPartition("other", 0))
