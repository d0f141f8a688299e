"""Copies of events: their envelope and headers, and their records on egress or on the topics that are destinations."""

import time
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec
from confluent_kafka import KafkaException
from msgspec import Struct, field

from dataplane.causes import Cause
from dataplane.ledger.breakdown import Slice
from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta, encode_meta
from dataplane.ledger.replay_buckets import replay_bucket
from dataplane.ledger.stopwatch import stamp
from dataplane.names import transform_node
from dataplane.plan.stage import StageError
from dataplane.plan.through import EndedUnit
from dataplane.process.item import child_headers
from dataplane.record_limits import BODY_BYTES
from dataplane.replay.topic_copies import CopyParts, TopicCopies, WrittenCopy
from dataplane.runtime.clock import SteadyClock
from dataplane.runtime.producers.tracked_producer import (
    ANY_PARTITION,
    ProducerFencedError,
    RecordTooLargeError,
    TrackedProducer,
)
from dataplane.tables.records import ReplayRecord, TopicRecord

MOST_UNITS: Final = 10_000  # in flight; of one event there may be more
MOST_BYTES: Final = 16 * 1024 * 1024
GROUP_UNITS: Final = 200  # of events that share a group of records
GROUP_US: Final = 5_000  # age at which a group is closed, so that the time at which it is stored is known
STAMP_US: Final = 1_000  # copies that depart within this time share a stopwatch
STORED_S: Final = 30.0


class NotStoredError(Exception):
    """Copies are not stored, or that is unknown: the task's range is read again.

    topics: destinations' topics that cause it; empty if the cause is another one
    """

    def __init__(self, reason: str, topics: Iterable[str] = ()) -> None:
        super().__init__(reason)
        self.topics = frozenset(topics)


class IngestedEvent(NamedTuple):
    """Event as it is on the ingest topic. `headers`: without the envelope."""

    partition: int
    key: bytes | None
    headers: Headers
    meta: MessageMeta


def copy_meta(record: ReplayRecord, meta: MessageMeta, position: int, stored_ms: int) -> MessageMeta:
    """Return the envelope with which a copy of an ingested event enters the plan."""
    return msgspec.structs.replace(
        meta,
        replay=record.replay,
        bucket=replay_bucket(record.bucket, position),
        revision=record.revision,
        position=position,
        stored_ms=stored_ms,
    )


class _Group(Struct, eq=False):
    """Group of records of one topic, which are stored together; the token of its ProduceGroup.

    delivered: copies that are delivered when the group is stored
    """

    topic: str
    units: int = 0
    size_bytes: int = 0
    delivered: list[WrittenCopy] = field(default_factory=list)
    records: Any = None  # the ProduceGroup


class CopyProducer:
    """Producer of copies. Blocks while much is in flight.

    Copies for topics are delivered when they are stored. All others are produced to egress, in the partitions that
    process lanes use.
    """

    def __init__(
        self, producer: Any, egress: TopicRecord, spread: Collection[str], topics: TopicCopies, clock: SteadyClock
    ) -> None:
        """`spread`: sources whose keys are distributed over all partitions."""
        self._tracked = TrackedProducer(producer)
        self._producer, self._egress, self._spread = producer, egress, spread
        self._topics, self._clock = topics, clock
        self._units = self._bytes = 0  # in flight
        self._groups: dict[str, _Group] = {}  # open ones, by topic
        self._opened_us = 0  # when the first of them was opened, or an earlier one; Unix time in microseconds
        self._unstored: Counter[str] = Counter()  # groups with records that are not stored, by topic
        self._stopwatch, self._stamped_us = b"", 0
        self._prefixes: dict[str, bytes] = {}  # of keys, by destination

    def send(self, event: IngestedEvent, units: list[tuple[MessageMeta, bytes]]) -> list[EndedUnit]:
        """Produce the units of one event; return those that are too large, or that their topic's schema does not fit.

        Raises NotStoredError if the broker refuses records, or stores none for STORED_S.
        """
        self._wait_below(MOST_UNITS, MOST_BYTES)
        now_us = self._clock.now_us()
        if now_us - self._stamped_us >= STAMP_US:
            self._stopwatch, self._stamped_us = stamp(Slice.TRANSMIT_QUEUE, now_us, ()), now_us
        refused: list[EndedUnit] = []
        try:
            for meta, body in units:
                meta.stopwatch = self._stopwatch
                try:
                    self._produce(event, meta, body, now_us)
                except RecordTooLargeError:
                    refused.append(EndedUnit(transform_node(meta.destination), "dead", Cause.TOO_LARGE, meta.child))
                except StageError as exc:
                    refused.append(EndedUnit(transform_node(meta.destination), "dead", exc.cause, meta.child))
            if self._groups and now_us - self._opened_us > GROUP_US:
                self._close_groups()
                self._collect(0.0)
        except ProducerFencedError as exc:
            raise self._refused(exc) from exc
        return refused

    def wait(self, seconds: float) -> None:
        """Wait, and settle the copies that are stored meanwhile. Raises NotStoredError."""
        until_s = time.monotonic() + seconds
        if seconds * 1_000_000 > GROUP_US:
            self._close_groups()
            while self._units and (left_s := until_s - time.monotonic()) > 0:
                self._collect(left_s)
        time.sleep(max(0.0, until_s - time.monotonic()))

    def flush(self) -> None:
        """Wait until all copies are stored. Raises NotStoredError."""
        self._wait_below(1, 1)

    @property
    def ends(self) -> dict[int, int]:
        """By partition of egress, the offset after the last copy that is known to be stored."""
        return {one.partition: one.offset + 1 for one in self._tracked.marks() if one.topic == self._egress.name}

    def drop(self) -> None:
        """Drop the copies that have not been sent yet, after NotStoredError."""
        self._producer.purge()
        with suppress(KafkaException):
            self._producer.flush(1)

    def _produce(self, event: IngestedEvent, meta: MessageMeta, body: bytes, now_us: int) -> None:
        if len(body) > BODY_BYTES:
            raise RecordTooLargeError(f"needs at most {BODY_BYTES} bytes after the steps, has {len(body)}")
        is_child = meta.id != event.meta.id
        carried = child_headers(event.headers, meta.child) if is_child else event.headers
        key = None if event.key is None else self._prefix(meta.destination) + event.key
        if meta.destination in self._topics:
            record = self._topics.record(CopyParts(meta, carried, key, body))
            group = self._open_group(record.topic, now_us)
            group.records.send(record.value, record.key, ANY_PARTITION, record.headers)
            group.delivered.append(WrittenCopy(meta, now_us, len(body)))
        else:
            origin = event.partition % self._egress.partitions
            partition = origin if key is None or meta.source in self._spread else ANY_PARTITION
            group = self._open_group(self._egress.name, now_us)
            group.records.send(body, key, partition, [(META_HEADER, encode_meta(meta)), *carried])
        size_bytes = len(body) + meta.original_bytes
        group.units, group.size_bytes = group.units + 1, group.size_bytes + size_bytes
        self._units, self._bytes = self._units + 1, self._bytes + size_bytes
        if group.units >= GROUP_UNITS:
            self._groups.pop(group.topic).records.close()
            self._collect(0.0)  # the time at which a group is stored is that of its report

    def _open_group(self, topic: str, now_us: int) -> _Group:
        """Return the open group of a topic: one for each event would cost more than the records."""
        group = self._groups.get(topic)
        if group is None:
            if not self._groups:
                self._opened_us = now_us
            group = self._groups[topic] = _Group(topic)
            self._unstored[topic] += 1
            group.records = self._tracked.begin_group(topic, group)
        return group

    def _close_groups(self) -> None:
        for group in self._groups.values():
            group.records.close()
        self._groups.clear()

    def _prefix(self, destination: str) -> bytes:
        known = self._prefixes.get(destination)
        if known is None:
            known = self._prefixes[destination] = f"{destination}\0".encode()
        return known

    def _wait_below(self, units: int, size_bytes: int) -> None:
        """Wait until fewer units and bytes are in flight. Raises NotStoredError if none is stored for STORED_S."""
        if self._units < units and self._bytes < size_bytes:
            return
        self._close_groups()
        deadline_s = time.monotonic() + STORED_S
        while self._units >= units or self._bytes >= size_bytes:
            if self._collect(0.05):
                deadline_s = time.monotonic() + STORED_S
            elif time.monotonic() > deadline_s:
                raise self._not_stored(f"no copy was stored within {STORED_S:g} s", +self._unstored)

    def _refused(self, error: ProducerFencedError) -> NotStoredError:
        topic = self._tracked.refused_topic
        return self._not_stored(str(error), [topic] if topic else [])

    def _not_stored(self, reason: str, topics: Collection[str]) -> NotStoredError:
        """Return the error. If egress does not store records either, no destination's topic is the cause."""
        return NotStoredError(reason, () if self._egress.name in topics else topics)

    def _collect(self, wait_s: float) -> bool:
        """Settle the groups that have been stored; return True if there was one. Raises NotStoredError."""
        try:
            stored = self._tracked.collect(wait_s)
        except ProducerFencedError as exc:
            raise self._refused(exc) from exc
        for group in stored:
            self._units, self._bytes = self._units - group.units, self._bytes - group.size_bytes
            self._unstored[group.topic] -= 1
            if group.delivered:
                self._topics.note_stored(group.delivered, self._clock.now_us())
        return bool(stored)
