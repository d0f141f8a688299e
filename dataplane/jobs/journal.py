"""How far a query has read, kept where a lost disk cannot take it: as committed offsets of a group that nobody joins.

The provisioner commits the first ones when it makes the topic, so a place without any was never set up.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from confluent_kafka import Consumer, TopicPartition
from msgspec import Struct

from dataplane.tables.records import TopicRecord

WAIT_S: Final = 10.0
READ: Final = "read"  # metadata of what a query committed; first offsets have none


class Journalled(Struct, frozen=True):
    """What the journal says of one topic: the next offset of each partition, and whether the query ever read."""

    offsets: dict[int, int]
    has_read: bool

    def starting(self, topic: str) -> str:
        """The offsets as Spark's `startingOffsets`."""
        return msgspec.json.encode({topic: {str(p): offset for p, offset in self.offsets.items()}}).decode()


class Journal:
    """The journal of one query. Raises KafkaException while the broker is away."""

    def __init__(self, kafka: str, group: str, topic: TopicRecord) -> None:
        self._topic = topic
        self._consumer = Consumer(
            {"bootstrap.servers": kafka, "group.id": group, "enable.auto.commit": False, "log_level": 3}
        )

    def read(self) -> Journalled | None:
        """What is written; None if a partition has nothing: then nobody can say where to begin."""
        asked = [TopicPartition(self._topic.name, number) for number in range(self._topic.partitions)]
        known = self._consumer.committed(asked, timeout=WAIT_S)
        if any(place.offset < 0 for place in known):
            return None
        offsets = {place.partition: place.offset for place in known}
        return Journalled(offsets, any(place.metadata == READ for place in known))

    def write(self, offsets: Mapping[int, int]) -> None:
        """Everything below these offsets was read and dealt with."""
        places = [TopicPartition(self._topic.name, p, offset, READ) for p, offset in offsets.items()]
        self._consumer.commit(offsets=places, asynchronous=False)

    def close(self) -> None:
        """Let go of the broker."""
        self._consumer.close()
