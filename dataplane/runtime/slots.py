"""Slots: one integer for each topic partition that a lane reads. Pure.

Windows, commits, pauses and a work's books are filed under slots. A slot of a lane's first topic is the partition's
own number, so a lane of one topic pays nothing for the others.
"""

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any, Final

from confluent_kafka import TopicPartition

SLOTS_A_TOPIC: Final = 1 << 16  # a position has 14 bits for the partition (dataplane.ledger.units)


class Slots:
    """Between (topic, partition) and slot, for the topics of one lane, in their order."""

    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = list(topics)
        self._bases = {topic: number * SLOTS_A_TOPIC for number, topic in enumerate(topics)}
        self.of: Callable[[Any], int] = methodcaller("partition") if len(topics) == 1 else self._of

    def _of(self, message: Any) -> int:
        """The slot that a message came from."""
        return self._bases[message.topic()] + int(message.partition())

    def number(self, place: TopicPartition) -> int:
        """The slot of a topic partition. Raises KeyError if the lane does not read that topic."""
        return self._bases[place.topic] + int(place.partition)

    def place(self, slot: int) -> tuple[str, int]:
        """Topic and partition of a slot."""
        topic, partition = divmod(slot, SLOTS_A_TOPIC)
        return self.topics[topic], partition

    def at(self, slot: int, *offset_and_note: Any) -> TopicPartition:
        """The client's own name of a slot; at an offset, with what is committed beside it, if they are given."""
        return TopicPartition(*self.place(slot), *offset_and_note)
