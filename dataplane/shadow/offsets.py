"""Offsets of a job: where its deliveries begin on egress, and whether retention has deleted some of them."""

import time
from typing import Any, Final, NamedTuple

from dataplane.names import PartitionKey
from dataplane.replay.offsets import offsets_at, record_at, watermarks
from dataplane.replay.ranges import OffsetRange
from dataplane.tables.records import TopicRecord

MARGIN_MS: Final = 10_000  # clocks of the hosts that store events and deliveries differ
RETAINED_MS: Final = 600_000  # retention deletes no record that is younger


class SentRange(NamedTuple):
    """Beginning of the deliveries of events.

    firsts:      by partition of egress
    complete_ms: deliveries of events stored before this time may have been deleted; 0 if all are retained
    """

    firsts: dict[PartitionKey, int]
    complete_ms: int


class DeletedPart(NamedTuple):
    """Beginnings of ranges that retention has deleted.

    until_ms: events that were stored before this time may be deleted
    """

    ranges: list[OffsetRange]
    until_ms: int


def stored_ms(consumer: Any, ranges: list[OffsetRange]) -> list[int]:
    """Return when the first event of each range was stored, milliseconds since 1970. Raises KafkaException.

    consumer: for assigned partitions
    """
    return [int(record_at(consumer, *one.place, one.first).timestamp()[1]) for one in ranges]


def deleted_part(consumer: Any, ranges: list[OffsetRange]) -> DeletedPart:
    """Return the beginnings of the ranges that retention has deleted. Raises KafkaException."""
    found, rest = [], []
    for one in ranges:
        low, _ = watermarks(consumer, *one.place)
        if low > one.first:
            found.append(one._replace(end=min(low, one.end)))
            rest += [one._replace(first=low)] if low < one.end else []
    times_ms = stored_ms(consumer, rest) or [time.time_ns() // 1_000_000]
    return DeletedPart(found, max(times_ms))


def incomplete_part(
    consumer: Any, ingest: TopicRecord, ranges: list[OffsetRange], complete_ms: int
) -> list[OffsetRange]:
    """Return the beginnings of the ranges that were stored before a time (see `SentRange`). Raises KafkaException."""
    firsts = offsets_at(consumer, ingest, (complete_ms + MARGIN_MS) * 1_000)
    found = []
    for one in ranges:
        offset = firsts[one.place[1]]
        end = one.end if offset < 0 else min(one.end, offset)
        if end > one.first:
            found.append(one._replace(end=end))
    return found


def sent_range(consumer: Any, egress: TopicRecord, stored_ms: int) -> SentRange:
    """Return where the deliveries of events begin that were stored at a time or later. Raises KafkaException.

    consumer: for assigned partitions
    """
    firsts: dict[PartitionKey, int] = {}
    complete_ms = 0
    for number, offset in offsets_at(consumer, egress, (stored_ms - MARGIN_MS) * 1_000).items():
        low, high = watermarks(consumer, egress.name, number)
        first = high if offset < 0 else max(low, offset)
        if first < high:
            firsts[egress.name, number] = first
        if 0 < low == first:
            complete_ms = max(complete_ms, _retained_since_ms(consumer, egress.name, number, low, high))
    return SentRange(firsts, complete_ms if complete_ms > stored_ms else 0)


def _retained_since_ms(consumer: Any, topic: str, number: int, low: int, high: int) -> int:
    """Return the time before which records of a partition may have been deleted."""
    latest_ms = time.time_ns() // 1_000_000 - RETAINED_MS
    if low == high:
        return latest_ms
    return min(latest_ms, int(record_at(consumer, topic, number, low).timestamp()[1]))
