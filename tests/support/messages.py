"""Readers of a cell's dead and held topics from their beginnings."""

from collections.abc import Iterator
from typing import NamedTuple

from dataplane.ledger.deadletter import dead_letter_reason
from dataplane.ledger.meta import Headers, MessageMeta, read_meta
from dataplane.ledger.units import format_position
from dataplane.names import PartitionKey, Purpose
from tests.support.data_plane import DataPlane
from tests.support.topic_reader import read_topic


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
    for message in read_topic(plane.broker.address, topic.name, topic.partitions):
        headers = message.headers() or []
        meta = read_meta(headers)
        if meta.pipe == pipe:
            place, at_ms = (topic.name, message.partition()), message.timestamp()[1]
            yield Stored(place, message.offset(), meta, headers, message.value(), at_ms)
