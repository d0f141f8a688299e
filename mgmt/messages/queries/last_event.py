"""A pipe's newest events, read from Kafka at the positions that the ledger gives."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice, zip_longest

from pyroaring import BitMap64

from dataplane.ledger.facts import ACKED, INGEST, Fact
from dataplane.ledger.units import UnitPosition, partition_base, place_of, position_of
from mgmt.cells.queries.cells import topic_at
from mgmt.messages.queries.records import SHOWN_BYTES, RecordUnavailableError, StoredRecord, read_record, read_records
from mgmt.models import FactRow, Pipe


class NoEventError(Exception):
    """The pipe has no event that can be used; the message gives the reason."""


@dataclass(frozen=True)
class PlacedEvent:
    """An accepted event and its position, which addresses its journey."""

    position: int
    record: StoredRecord


def newest_events(pipe: Pipe, most: int, *, most_bytes: int) -> tuple[list[PlacedEvent], int]:
    """Return up to `most` events of the pipe's newest minutes, newest first, and how many the ledger names for it.

    Fewer are returned if some no longer exist or are not read in time. Raises NoEventError if the ledger has none;
    RecordUnavailableError if Kafka is unavailable.
    """
    positions = newest_positions(pipe, most)
    if not positions:
        raise NoEventError("it has had none yet")
    by_generation: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place in map(place_of, positions):
        by_generation[place.generation][place.partition].append(place.offset)
    found = []
    for generation, offsets in by_generation.items():
        topic = topic_at(pipe.id, "ingest", generation)
        if topic is not None:
            records = read_records(topic.name, offsets, pipes=(pipe.id,), most_bytes=most_bytes)
            found += [PlacedEvent(position_of(generation, one.partition, one.offset), one) for one in records]
    return sorted(found, key=lambda one: one.record.meta.ingest_time_us, reverse=True), len(positions)


def newest_positions(pipe: Pipe, most: int) -> list[int]:
    """Return the positions of up to `most` accepted events of the newest minutes, from all partitions in turn."""
    acked = FactRow.objects.filter(pipe_id=pipe.id, node=INGEST, fact=Fact.SENT, detail=ACKED).order_by("-bucket")
    left, oldest = most, None
    for bucket, count in acked.values_list("bucket", "count")[:most]:
        if left <= 0 and bucket != oldest:
            break
        left, oldest = left - count, bucket
    if oldest is None:
        return []
    minutes: dict[int, BitMap64] = defaultdict(BitMap64)
    for bucket, positions in acked.filter(bucket__gte=oldest).values_list("bucket", "positions"):
        minutes[bucket] |= BitMap64.deserialize(bytes(positions))
    return list(islice(chain.from_iterable(_in_turn(some) for some in minutes.values()), most))


def _in_turn(positions: BitMap64) -> Iterator[int]:
    """Yield positions from the newest down, one of each partition in turn: a partition has only some of the keys."""
    partitions, end = [], len(positions)
    while end:
        place = place_of(positions[end - 1])
        base = partition_base(place.generation, place.partition)
        start = positions.rank(base - 1) if base else 0
        partitions.append(range(end - 1, start - 1, -1))
        end = start
    for turn in zip_longest(*partitions):
        yield from (positions[index] for index in turn if index is not None)


def last_event(pipe: Pipe) -> StoredRecord:
    """Return the newest ACKed event that the Observer has recorded.

    Raises NoEventError; RecordUnavailableError if Kafka is unavailable.
    """
    place = last_place(pipe)
    topic = topic_at(pipe.id, "ingest", place.generation)
    if topic is None:
        raise NoEventError("its topic no longer exists")
    record = read_record(topic.name, place.partition, place.offset, pipes=(pipe.id,))
    if record.body_bytes > SHOWN_BYTES:
        raise NoEventError(f"its newest event has more than {SHOWN_BYTES} bytes")
    return record


def last_place(pipe: Pipe) -> UnitPosition:
    """Return the position of an event of the newest bucket. Raises NoEventError."""
    acked = FactRow.objects.filter(pipe_id=pipe.id, node=INGEST, fact=Fact.SENT, detail=ACKED).order_by("-bucket")
    positions = acked.values_list("positions", flat=True).first()
    if positions is None:
        raise NoEventError("it has had none yet")
    return place_of(BitMap64.deserialize(bytes(positions)).max())


__all__ = [
    "NoEventError",
    "PlacedEvent",
    "RecordUnavailableError",
    "last_event",
    "last_place",
    "newest_events",
    "newest_positions",
]
