"""Copies of events: their envelope and headers, and their records on the egress topic."""

import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec
from confluent_kafka import KafkaException
from msgspec import Struct

from dataplane.causes import Cause
from dataplane.ledger.breakdown import Slice
from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta, encode_meta
from dataplane.ledger.replay_buckets import replay_bucket
from dataplane.ledger.stopwatch import stamp
from dataplane.names import transform_node
from dataplane.plan.through import EndedUnit
from dataplane.process.item import child_headers
from dataplane.record_limits import BODY_BYTES
from dataplane.runtime.producers.tracked_producer import (
    ANY_PARTITION,
    ProduceGroup,
    ProducerFencedError,
    RecordTooLargeError,
    TrackedProducer,
)
from dataplane.tables.records import ReplayRecord, TopicRecord

MOST_UNITS: Final = 10_000  # in flight; of one event there may be more
MOST_BYTES: Final = 16 * 1024 * 1024
GROUP_UNITS: Final = 200  # of events that share a group of records
STAMP_US: Final = 1_000  # copies that depart within this time share a stopwatch
STORED_S: Final = 30.0


class NotStoredError(Exception):
    """Copies are not stored, or that is unknown: the task's range is read again."""


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


class _GroupSize(Struct):
    """Units and bytes of a group of records; the token of the group."""

    units: int = 0
    size_bytes: int = 0


class CopyProducer:
    """Producer of copies to egress, in the partitions that process lanes use. Blocks while much is in flight."""

    def __init__(self, producer: Any, egress: TopicRecord, spread: Collection[str]) -> None:
        """`spread`: sources whose keys are distributed over all partitions."""
        self._tracked = TrackedProducer(producer)
        self._producer, self._egress, self._spread = producer, egress, spread
        self._units = self._bytes = 0  # in flight
        self._group: ProduceGroup | None = None
        self._size = _GroupSize()  # of the open group
        self._stopwatch, self._stamped_us = b"", 0
        self._prefixes: dict[str, bytes] = {}  # of keys, by destination

    def send(self, event: IngestedEvent, units: list[tuple[MessageMeta, bytes]], now_us: int) -> list[EndedUnit]:
        """Produce the units of one event; return those that are too large. `now_us`: time of departure.

        Raises NotStoredError if the broker refuses records, or stores none for STORED_S.
        """
        self._wait_below(MOST_UNITS, MOST_BYTES)
        if now_us - self._stamped_us >= STAMP_US:
            self._stopwatch, self._stamped_us = stamp(Slice.TRANSMIT_QUEUE, now_us, ()), now_us
        refused: list[EndedUnit] = []
        try:
            group, size = self._open_group(), self._size
            for meta, body in units:
                meta.stopwatch = self._stopwatch
                size_bytes = len(body) + meta.original_bytes
                size.size_bytes += size_bytes
                self._bytes += size_bytes
                try:
                    self._produce(group, event, meta, body)
                except RecordTooLargeError:
                    refused.append(EndedUnit(transform_node(meta.destination), "dead", Cause.TOO_LARGE, meta.child))
            size.units += len(units)
            self._units += len(units)
            if size.units >= GROUP_UNITS:
                self._close_group()
        except ProducerFencedError as exc:
            raise NotStoredError(str(exc)) from exc
        return refused

    def flush(self) -> None:
        """Wait until all copies are stored. Raises NotStoredError."""
        self._wait_below(1, 1)

    @property
    def ends(self) -> dict[int, int]:
        """By partition of egress, the offset after the last copy that is known to be stored."""
        return {mark.partition: mark.offset + 1 for mark in self._tracked.marks()}

    def drop(self) -> None:
        """Drop the copies that have not been sent yet, after NotStoredError."""
        self._producer.purge()
        with suppress(KafkaException):
            self._producer.flush(1)

    def _open_group(self) -> ProduceGroup:
        """Return the open group: one for each event would cost more than the records."""
        if self._group is None:
            self._size = _GroupSize()
            self._group = self._tracked.begin_group(self._egress.name, self._size)
        return self._group

    def _close_group(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None

    def _produce(self, group: ProduceGroup, event: IngestedEvent, meta: MessageMeta, body: bytes) -> None:
        if len(body) > BODY_BYTES:
            raise RecordTooLargeError(f"needs at most {BODY_BYTES} bytes after the steps, has {len(body)}")
        is_child = meta.id != event.meta.id
        headers = child_headers(event.headers, meta.child) if is_child else event.headers
        headers = [(META_HEADER, encode_meta(meta)), *headers]
        origin = event.partition % self._egress.partitions
        if event.key is None:
            group.send(body, None, origin, headers)
        else:
            partition = origin if meta.source in self._spread else ANY_PARTITION
            group.send(body, self._prefix(meta.destination) + event.key, partition, headers)

    def _prefix(self, destination: str) -> bytes:
        known = self._prefixes.get(destination)
        if known is None:
            known = self._prefixes[destination] = f"{destination}\0".encode()
        return known

    def _wait_below(self, units: int, size_bytes: int) -> None:
        """Wait until fewer units and bytes are in flight. Raises NotStoredError if none is stored for STORED_S."""
        if self._units < units and self._bytes < size_bytes:
            return
        self._close_group()
        deadline_s = time.monotonic() + STORED_S
        while self._units >= units or self._bytes >= size_bytes:
            try:
                stored = self._tracked.collect(0.05)
            except ProducerFencedError as exc:
                raise NotStoredError(str(exc)) from exc
            for size in stored:
                self._units, self._bytes = self._units - size.units, self._bytes - size.size_bytes
            if stored:
                deadline_s = time.monotonic() + STORED_S
            elif time.monotonic() > deadline_s:
                raise NotStoredError(f"no copy was stored within {STORED_S:g} s")
