"""Errors in Kafka's responses about partitions, for the planes that ask for offsets."""

from collections.abc import Iterable
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition

# A request with outdated metadata fails with one of these; the client then drops the topic's metadata and refetches it.
STALE_METADATA: Final = frozenset(
    {KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.NOT_LEADER_FOR_PARTITION}
)

# The client's user lacks an ACL of the topic or group.
NOT_AUTHORIZED: Final = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED})


def raise_first_error(found: Iterable[TopicPartition]) -> None:
    """Raise KafkaException for the first partition with an error: its offset is none."""
    if error := next((place.error for place in found if place.error), None):
        raise KafkaException(error)
