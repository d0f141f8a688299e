"""Read the data plane's reports from the offsets stored in Postgres, without committed offsets of Kafka."""

from collections.abc import Iterable
from typing import Any, Final

import structlog
from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicPartition

from controlplane.kafka import consumer, kafka_clients
from dataplane.names import AUDIT_TOPIC, HEARTBEAT_TOPIC, PartitionKey

LOOK_S: Final = 5.0
AT_ONCE: Final = 500
# Errors that the client retries automatically; the Observer continues to read.
PASSING: Final = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._RESOLVE}
)
log = structlog.get_logger(__name__)


class AuditReader:
    """Consumer with manual assignment that outlives the sessions. `places`: the topic partitions that it reads."""

    def __init__(self, kafka: str) -> None:
        self._clients = kafka_clients(kafka)
        self._consumer = consumer(
            kafka,
            "penstock.observer",
            **{"auto.offset.reset": "error", "fetch.wait.max.ms": 200, "queued.max.messages.kbytes": 16_384},
        )
        self.places: set[PartitionKey] = set()

    def partitions_of(self, topics: Iterable[str]) -> list[PartitionKey]:
        """Return all partitions of the `topics` that exist."""
        known = self._clients.admin().list_topics(timeout=LOOK_S).topics
        return [(topic, number) for topic in topics if topic in known for number in sorted(known[topic].partitions)]

    def bounds(self, place: PartitionKey) -> tuple[int, int]:
        """Return the low and the high watermark of a partition."""
        return self._clients.starts([place], LOOK_S)[place], self._clients.ends([place], LOOK_S)[place]

    def start(self, place: PartitionKey, offset: int) -> None:
        """Start reading a partition at `offset`; the heartbeat topic always at its end."""
        at = OFFSET_END if place[0] == HEARTBEAT_TOPIC else offset
        self._consumer.incremental_assign([TopicPartition(*place, at)])
        self.places.add(place)

    def read(self, wait_s: float) -> list[Any]:
        """Return available records; wait up to `wait_s` for one. Raises KafkaException if the session must end."""
        first = self._consumer.poll(wait_s)
        if first is None:
            return []
        return [message for message in [first, *self._consumer.consume(AT_ONCE, 0)] if _is_record(message)]

    def stop(self) -> None:
        """Stop reading all partitions; records fetched and not returned are dropped."""
        self._consumer.unassign()
        self.places.clear()

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def start_offset(stored: int | None, low: int, high: int, *, repeatable: bool) -> tuple[int, int]:
    """Return the offset to start at, and the number of records deleted before they were read. Pure.

    A stored offset beyond the end means that the broker lost the end of the log, or that the topic was recreated. Only
    topics whose records may be stored twice (`repeatable`) are then read from the beginning: a message that was held
    and released would be released again.

    stored: the stored offset, None if there is none; low, high: watermarks of the partition
    """
    if stored is None:
        return low, 0
    if stored > high:
        return (low, 0) if repeatable else (high, stored - high)
    return max(stored, low), max(0, low - stored)


def lock_name(place: PartitionKey) -> str:
    """Return the name of the lock of the Observer that owns a partition."""
    return f"observer:{place[0]}/{place[1]}"


def topics_to_read(of_cells: Iterable[str]) -> list[str]:
    """Return the topics that an Observer reads."""
    return [AUDIT_TOPIC, HEARTBEAT_TOPIC, *of_cells]


def _is_record(message: Any) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.code() in PASSING:
        log.warning("Kafka is unreachable", error=error.str())
        return False
    raise KafkaException(error)
