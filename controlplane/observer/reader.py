"""Reads what the data plane tells of itself from where the rows say; Kafka's own commits are not used."""

from collections.abc import Iterable
from typing import Any, Final

import structlog
from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicPartition

from controlplane.kafka import consumer, kafka_clients
from controlplane.observer.merge import Place
from dataplane.names import AUDIT_TOPIC, HEARTBEAT_TOPIC

LOOK_S: Final = 5.0
AT_ONCE: Final = 500
# What the client retries by itself; the Observer reads on.
PASSING: Final = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._RESOLVE}
)
log = structlog.get_logger(__name__)


class Reader:
    """One consumer, assigned by hand, that outlives the sessions in which it reads. `places`: what it reads."""

    def __init__(self, kafka: str) -> None:
        self._clients = kafka_clients(kafka)
        self._consumer = consumer(
            kafka,
            "penstock.observer",
            **{"auto.offset.reset": "error", "fetch.wait.max.ms": 200, "queued.max.messages.kbytes": 16_384},
        )
        self.places: set[Place] = set()

    def partitions_of(self, topics: Iterable[str]) -> list[Place]:
        """Return all partitions of those of `topics` that exist."""
        known = self._clients.admin().list_topics(timeout=LOOK_S).topics
        return [(topic, number) for topic in topics if topic in known for number in sorted(known[topic].partitions)]

    def bounds(self, place: Place) -> tuple[int, int]:
        """Return the first offset a partition still has, and the next it will give."""
        return self._clients.starts([place], LOOK_S)[place], self._clients.ends([place], LOOK_S)[place]

    def start(self, place: Place, offset: int) -> None:
        """Begin to read a partition; heartbeats always from now on."""
        at = OFFSET_END if place[0] == HEARTBEAT_TOPIC else offset
        self._consumer.incremental_assign([TopicPartition(*place, at)])
        self.places.add(place)

    def read(self, wait_s: float) -> list[Any]:
        """Return the records there are, waiting for the first. Raises KafkaException if the session must end."""
        first = self._consumer.poll(wait_s)
        if first is None:
            return []
        return [message for message in [first, *self._consumer.consume(AT_ONCE, 0)] if _is_record(message)]

    def stop(self) -> None:
        """Stop reading all partitions; what was fetched and not returned is dropped."""
        self._consumer.unassign()
        self.places.clear()

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def start_offset(stored: int | None, low: int, high: int, *, repeatable: bool) -> tuple[int, int]:
    """Return where to begin, and how many records are missing: gone before they were read. Pure.

    A stored offset beyond the end means that the broker lost the log's end, or that the topic was made anew. Only what
    may be taken in twice (`repeatable`) is read from the beginning: a message that was held and released would be
    released again.
    """
    if stored is None:
        return low, 0
    if stored > high:
        return (low, 0) if repeatable else (high, stored - high)
    return max(stored, low), max(0, low - stored)


def topics_to_read(of_cells: Iterable[str]) -> list[str]:
    """The topics an Observer looks for."""
    return [AUDIT_TOPIC, HEARTBEAT_TOPIC, *of_cells]


def _is_record(message: Any) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.code() in PASSING:
        log.warning("kafka is away", error=error.str())
        return False
    raise KafkaException(error)
