"""Committed offsets of a cell's lanes that its topics no longer have, and the repair: an offset at which to continue.

A lane never skips records: it stops reading such a partition. A person decides which records are skipped.
"""

from contextlib import closing
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from controlplane.kafka import REQUEST_S, consumer, kafka_clients
from dataplane.names import INPUTS_OF, LANE_KINDS, PartitionKey, lane_group
from dataplane.tables.redrives import format_place
from mgmt.cells.queries.cells import places_of

_MEMBERS = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS)


class OffsetRefusedError(Exception):
    """The offset is not committed; the text says why."""


class LaneOffset(NamedTuple):
    """Committed offset of a group on one partition. low, high: first offset that is left, and end of the log."""

    group: str
    place: PartitionKey
    committed: int
    low: int
    high: int

    @property
    def is_out_of_range(self) -> bool:
        """True if lanes cannot continue from it."""
        return not self.low <= self.committed <= self.high

    def __str__(self) -> str:
        place = format_place(self.place)
        return f"{place}: {self.group} is at {self.committed}, the topic has {self.low} to {self.high}"


def lane_offsets(kafka: str, cell: str) -> list[LaneOffset]:
    """Return the committed offsets of a cell's lanes; partitions without one are left out. Raises KafkaException."""
    clients, found = kafka_clients(kafka), []
    for kind in LANE_KINDS:
        group, places = lane_group(cell, kind), places_of(cell, *INPUTS_OF[kind])
        committed = {place: at for place, at in clients.committed(group, places).items() if at >= 0}
        lows, highs = clients.starts(committed), clients.ends(committed)
        found += [LaneOffset(group, place, at, lows[place], highs[place]) for place, at in committed.items()]
    return found


def continue_at(kafka: str, cell: str, place: PartitionKey, offset: int) -> LaneOffset:
    """Commit the offset at which lanes continue a partition whose committed offset is out of range; return the old one.

    The note that is committed with the offset stays: it has the keys that are held or run in the slow lane.

    Raises OffsetRefusedError if lanes run or need no repair, or if the topic does not have the offset; KafkaException.
    """
    known = next((one for one in lane_offsets(kafka, cell) if one.place == place), None)
    if known is None:
        raise OffsetRefusedError(f"no lane of {cell} has committed an offset of {format_place(place)}")
    if not known.is_out_of_range:
        raise OffsetRefusedError(f"{known}: the lanes continue from there")
    if not known.low <= offset <= known.high:
        raise OffsetRefusedError(f"the topic has no offset {offset}: use {known.low} to {known.high}")
    with closing(consumer(kafka, known.group)) as client:
        (old,) = client.committed([TopicPartition(*place)], timeout=REQUEST_S)
        try:
            client.commit(offsets=[TopicPartition(*place, offset, old.metadata or "")], asynchronous=False)
        except KafkaException as exc:
            if exc.args[0].code() in _MEMBERS:
                raise OffsetRefusedError(f"lanes of {known.group} run: stop the cell first") from exc
            raise
    return known
