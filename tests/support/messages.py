"""Readers of a cell's dead and held topics from their beginnings."""

from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

from dataplane.ledger.deadletter import dead_letter_reason
from dataplane.ledger.meta import Headers, MessageMeta, read_meta
from dataplane.ledger.units import format_position
from dataplane.names import PartitionKey, Purpose
from tests.support.data_plane import DataPlane


class DeadLetter(NamedTuple):
    """One record of the dead topic."""

    position: str
    node: str
    cause: str
    detail: str
    body: bytes


class Stored(NamedTuple):
    """One record, with its partition and offset. `at_ms`: its time."""

    place: PartitionKey
    offset: int
    meta: MessageMeta
    headers: Headers
    body: bytes
    at_ms: int


def dead_letters(plane: DataPlane, pipe: str) -> list[DeadLetter]:
    """Return all dead letters of one pipe."""
    found = []
    for record in stored(plane, "dead", pipe):
        death = dead_letter_reason(record.headers)
        about = (death.node, death.cause, death.detail)
        found.append(DeadLetter(format_position(record.meta.position), *about, record.body))
    return found


def stored(plane: DataPlane, purpose: Purpose, pipe: str) -> Iterator[Stored]:
    """Yield all records of one pipe on a topic."""
    topic = plane.cluster.topics[purpose]
    consumer = Consumer(
        {
            "bootstrap.servers": plane.broker.address,
            "group.id": f"rig-{purpose}",
            "enable.auto.commit": False,
            "log_level": 3,
        }
    )
    for partition in range(topic.partitions):
        end = consumer.get_watermark_offsets(TopicPartition(topic.name, partition), timeout=10)[1]
        consumer.assign([TopicPartition(topic.name, partition, 0)])
        offset = 0
        while offset < end:
            message = consumer.poll(5)
            assert message is not None
            assert message.error() is None
            offset = message.offset() + 1
            headers = message.headers() or []
            meta = read_meta(headers)
            if meta.pipe == pipe:
                at_ms = message.timestamp()[1]
                yield Stored((topic.name, partition), offset - 1, meta, headers, message.value(), at_ms)
    consumer.close()
