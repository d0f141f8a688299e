"""Reading of a job's events, and of what the pipe has sent of them, in bounded memory: records are passed on at once.

The ingest side reads a number of records that the job fixes. The egress side passes on only units of these events, and
skips all other records; see `SentCutoff` for how far it reads.
"""

import time
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

import msgspec
from confluent_kafka import KafkaException, Message

from dataplane.ledger.meta import MessageMeta, encode_meta, read_meta
from dataplane.ledger.units import place_of, position_of
from dataplane.replay.offsets import watermarks
from dataplane.replay.range_reader import RangeReader
from dataplane.replay.ranges import OffsetRange
from dataplane.replay.selection import is_original
from dataplane.shadow.job import JobPart, PartRead, ShadowJob, range_of_partition

READ_EVENTS_S: Final = 40.0  # within which a part's events are read; less than the longest job, with READ_SENT_S
READ_SENT_S: Final = 40.0  # within which its deliveries are read; what is not read by then counts as not sent
TAIL_MS: Final = 10_000  # process has passed an event when it sends events that were stored so much later
LARGEST_BYTES: Final = 64 * 1024 * 1024  # of the bodies that a part passes on; twice as much as a job is to have
LARGEST_EVENTS: Final = 20_000  # that a part passes on
LATE_MS: Final = 300_000  # after this time one partition of ingest that is behind does not matter any more


class IngestedUnit(NamedTuple):
    """Event to be compared. `meta`: the encoded envelope, with position and time of storage."""

    kind: Literal["event"]
    meta: bytes
    body: bytes


class SentUnit(NamedTuple):
    """Unit that the pipe has sent."""

    kind: Literal["sent"]
    child: int
    destination: str
    body: bytes


Passed = IngestedUnit | SentUnit | PartRead


def read_part(job: ShadowJob, part: JobPart, consumer: Any) -> Iterator[tuple[int, Passed]]:
    """Yield the part's records with their positions, and last the result with a key below 0, which no position has.

    consumer: for assigned partitions, with offset reset `error`
    """
    result = PartRead()
    try:
        began_s = time.monotonic()
        for one in part.ranges:
            yield from _read_events(job, one, consumer, result, began_s + READ_EVENTS_S)
        sent_from_s = time.monotonic()
        result.events_s = sent_from_s - began_s
        deadline_s = sent_from_s + READ_SENT_S
        for place, first in part.sent_from.items():
            if not result.error and not result.is_large and time.monotonic() < deadline_s:
                yield from _read_sent(
                    job, OffsetRange(place, first, watermarks(consumer, *place)[1]), consumer, result, deadline_s
                )
        result.sent_s = time.monotonic() - sent_from_s
        result.is_cut = time.monotonic() >= deadline_s
    except KafkaException as exc:
        result.error = str(exc)
    yield -1 - part.number, result


def _read_events(
    job: ShadowJob, range_: OffsetRange, consumer: Any, result: PartRead, deadline_s: float
) -> Iterator[tuple[int, IngestedUnit]]:
    reader = RangeReader(consumer, range_)
    for message in reader.messages(deadline_s):
        if result.is_large:
            return
        meta = _meta_of(message)
        if meta is None:
            continue
        if reader.take_gap():
            result.expired_until_us = max(result.expired_until_us, meta.ingest_time_us)
        result.until_us[range_.place] = max(result.until_us.get(range_.place, 0), meta.ingest_time_us)
        if not is_original(meta, job.record.pipe, job.record.since_us, job.until_us):
            continue
        position = position_of(job.generation, range_.place[1], int(message.offset() or 0))
        meta = msgspec.structs.replace(meta, position=position, stored_ms=message.timestamp()[1])
        body = message.value() or b""
        result.events += 1
        _note_size(job, result, body)
        yield position, IngestedUnit("event", encode_meta(meta), body)
    result.read += reader.read
    if reader.next < range_.end:
        result.error = result.error or reader.error or f"{range_.place} was not read within {READ_EVENTS_S:g} s"


def _read_sent(
    job: ShadowJob, range_: OffsetRange, consumer: Any, result: PartRead, deadline_s: float
) -> Iterator[tuple[int, SentUnit]]:
    """Yield the units of the job's events on one partition of egress. Copies of replays are left out."""
    reader, cutoff, ranges = RangeReader(consumer, range_), SentCutoff(job.last_ms), range_of_partition(job.ranges)
    for message in reader.messages(deadline_s):
        meta = _meta_of(message)
        if meta is None or meta.replay:
            continue
        unit = place_of(meta.position)
        asked = ranges.get(unit.partition)
        is_of_job = asked is not None and asked.first <= unit.offset < asked.end
        if is_of_job and unit.generation == job.generation and meta.pipe == job.record.pipe:
            body = message.value() or b""
            _note_size(job, result, body)
            yield meta.position, SentUnit("sent", meta.child, meta.destination, body)
        if result.is_large:
            return
        if cutoff.is_past(unit.partition, meta.stored_ms, message.timestamp()[1]):
            break
    if reader.take_gap():
        result.error = f"retention has deleted records of {range_.place} meanwhile"
    elif reader.error:
        result.error = result.error or reader.error


class SentCutoff:
    """Decides when one partition of egress need not be read further. Pure.

    Process lanes send the events of a partition in the order in which they were stored, unless a step or a person holds
    them. So all units of a job have passed when records appear whose events were stored TAIL_MS after the job's last,
    from each partition of ingest that has records here. A partition without later events is waited for until LATE_MS.
    """

    def __init__(self, last_ms: int) -> None:
        self._last_ms = last_ms
        self._behind: set[int] = set()
        self._past: set[int] = set()

    def is_past(self, partition: int, stored_ms: int, sent_ms: int) -> bool:
        """Return True after a record that shows that no more units of the job are to be expected.

        partition, stored_ms: of the record's event on the ingest topic
        sent_ms: when the record itself was stored
        """
        if stored_ms > self._last_ms + TAIL_MS:
            self._past.add(partition)
            self._behind.discard(partition)
        elif partition not in self._past:
            self._behind.add(partition)
        return bool(self._past) and (not self._behind or sent_ms > self._last_ms + LATE_MS)


def _note_size(job: ShadowJob, result: PartRead, body: bytes) -> None:
    result.size_bytes += len(body)
    is_too_large = result.size_bytes > LARGEST_BYTES or result.events > LARGEST_EVENTS
    result.is_large = is_too_large and job.may_be_smaller


def _meta_of(message: Message) -> MessageMeta | None:
    try:
        return read_meta(message.headers() or [])
    except (KeyError, msgspec.DecodeError):
        return None
