"""Progress of a query, stored as committed offsets of a group without members, so that it survives a lost disk.

The provisioner commits the first offsets when it creates the topic: a partition without any was never set up.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from confluent_kafka import TopicPartition
from msgspec import Struct

from dataplane.kafka_clients import make_offset_client
from dataplane.tables.records import TopicRecord

WAIT_S: Final = 10.0
READ: Final = "read"  # metadata of a query's commits; the provisioner's first offsets have none


class JournalledTopic(Struct, frozen=True):
    """Journal of one topic: the next offset of each partition, and whether the query has ever read."""

    offsets: dict[int, int]
    has_read: bool

    def starting(self, topic: str) -> str:
        """Return the offsets in the format of Spark's `startingOffsets`."""
        return msgspec.json.encode({topic: {str(p): offset for p, offset in self.offsets.items()}}).decode()


class QueryJournal:
    """Journal of one query. `read` and `write` raise KafkaException while the broker is unavailable."""

    def __init__(self, kafka: str, group: str, topic: TopicRecord) -> None:
        self._topic = topic
        self._consumer = make_offset_client(kafka, group)

    def read(self) -> JournalledTopic | None:
        """Return the committed offsets; None if a partition has none, because then the starting offset is unknown."""
        partitions = [TopicPartition(self._topic.name, number) for number in range(self._topic.partitions)]
        known = self._consumer.committed(partitions, timeout=WAIT_S)
        if any(entry.offset < 0 for entry in known):
            return None
        offsets = {entry.partition: entry.offset for entry in known}
        return JournalledTopic(offsets, any(entry.metadata == READ for entry in known))

    def write(self, offsets: Mapping[int, int]) -> None:
        """Commit these offsets (by partition): everything below them was read and processed."""
        entries = [TopicPartition(self._topic.name, p, offset, READ) for p, offset in offsets.items()]
        self._consumer.commit(offsets=entries, asynchronous=False)

    def close(self) -> None:
        """Close the Kafka client."""
        self._consumer.close()
