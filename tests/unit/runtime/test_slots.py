"""Slots name every partition of every topic of a lane once, and cost a lane of one topic nothing."""

import pytest
from confluent_kafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from dataplane.runtime.slots import SLOTS_A_TOPIC, Slots

TOPICS = ["in", "10s", "1m"]


class Message:
    def __init__(self, topic: str, partition: int) -> None:
        self._place = (topic, partition)

    def topic(self) -> str:
        return self._place[0]

    def partition(self) -> int:
        return self._place[1]


@given(st.sampled_from(TOPICS), st.integers(0, SLOTS_A_TOPIC - 1))
def test_a_slot_leads_back_to_its_topic_and_partition(topic: str, partition: int):
    slots = Slots(TOPICS)
    slot = slots.number(TopicPartition(topic, partition))
    assert slots.place(slot) == (topic, partition)
    assert slots.of(Message(topic, partition)) == slot
    assert slots.at(slot, 7) == TopicPartition(topic, partition, 7)


def test_partitions_of_different_topics_never_share_a_slot():
    slots = Slots(TOPICS)
    assert len({slots.number(TopicPartition(t, p)) for t in TOPICS for p in (0, 1, SLOTS_A_TOPIC - 1)}) == 9


def test_with_one_topic_the_slot_is_the_partition():
    assert Slots(["in"]).of(Message("whatever", 3)) == 3
    assert Slots(TOPICS).of(Message("in", 3)) == 3


def test_a_topic_that_the_lane_does_not_read_has_no_slot():
    with pytest.raises(KeyError):
        Slots(TOPICS).number(TopicPartition("other", 0))
