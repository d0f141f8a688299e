"""Slots: one integer for each topic partition that a lane reads. Pure.

Ack windows, commits, pauses and the work's own state are keyed by slot. A slot of a lane's first topic equals the
partition's number, so that a lane with one topic has no overhead.
"""

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any, Final

from confluent_kafka import TopicPartition

SLOTS_A_TOPIC: Final = 1 << 16  # a position has 14 bits for the partition (dataplane.ledger.units)


class PartitionSlots:
    """Mapping between (topic, partition) and slot, for the topics of one lane, in their order."""

    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = list(topics)
        self._bases = {topic: number * SLOTS_A_TOPIC for number, topic in enumerate(topics)}
        self.of: Callable[[Any], int] = methodcaller("partition") if len(topics) == 1 else self._of

    def _of(self, message: Any) -> int:
        """Return the slot that a message was read from."""
        return self._bases[message.topic()] + int(message.partition())

    def number(self, place: TopicPartition) -> int:
        """Return the slot of a topic partition. Raises KeyError if the lane does not read that topic."""
        return self._bases[place.topic] + int(place.partition)

    def place(self, slot: int) -> tuple[str, int]:
        """Return topic and partition of a slot."""
        topic, partition = divmod(slot, SLOTS_A_TOPIC)
        return self.topics[topic], partition

    def at(self, slot: int, *offset_and_note: Any) -> TopicPartition:
        """Return a slot as the client's TopicPartition, with an offset and commit metadata if they are given."""
        return TopicPartition(*self.place(slot), *offset_and_note)
