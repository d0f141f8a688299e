"""Contents of a batch of the lake topic: messages by destination, their rows, facts and lags. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

import msgspec
from msgspec import Struct, field

from dataplane.ledger.facts import Fact, FactBook, FactKey
from dataplane.ledger.meta import MessageMeta, decode_meta
from dataplane.ledger.stopwatch import delivery, spent_until
from dataplane.ledger.units import OFFSET_BITS
from dataplane.names import transmit_node
from dataplane.runtime.telemetry.lags import LagBook

Where = tuple[int, int]  # partition and offset on the lake's topic
Key = tuple[int, int]  # position and child: identity of a row in its table


class LakeHour(NamedTuple):
    """Partition of a table: the hour of ingest, UTC."""

    date: date
    hour: int


class LakeGroup(Struct):
    """Messages of one destination in a batch, by partition and offset; a message that came twice has two entries."""

    pipe: str
    destination: str
    metas: dict[Where, MessageMeta] = field(default_factory=dict)

    def rows(self, known: Iterable[Key] = ()) -> dict[Where, MessageMeta]:
        """Return one entry for each message that is not among `known`, the keys in the table already."""
        seen = set(known)
        rows: dict[Where, MessageMeta] = {}
        for where, meta in self.metas.items():
            if (key := key_of(meta)) not in seen:
                seen.add(key)
                rows[where] = meta
        return rows

    def hours(self) -> set[LakeHour]:
        """Return the table partitions that the rows belong to."""
        return {hour_of(meta.ingest_time_us) for meta in self.metas.values()}

    def ranges(self) -> list[tuple[int, int]]:
        """Return the lowest and highest position per partition of the ingest topic; the ranges are normally narrow."""
        by_partition: dict[int, list[int]] = {}
        for meta in self.metas.values():
            by_partition.setdefault(meta.position >> OFFSET_BITS, []).append(meta.position)
        return sorted((min(positions), max(positions)) for positions in by_partition.values())


def groups_of(records: Iterable[tuple[int, int, bytes]]) -> tuple[list[LakeGroup], list[Where]]:
    """Group records of (partition, offset, meta header) by destination.

    Returns the groups, and the partition and offset of each record whose header cannot be decoded.
    """
    groups: dict[tuple[str, str], LakeGroup] = {}
    unreadable = []
    for partition, offset, header in records:
        try:
            meta = decode_meta(header)
        except (msgspec.DecodeError, TypeError):
            unreadable.append((partition, offset))
            continue
        group = groups.setdefault((meta.pipe, meta.destination), LakeGroup(meta.pipe, meta.destination))
        group.metas[partition, offset] = meta
    return list(groups.values()), unreadable


def key_of(meta: MessageMeta) -> Key:
    """Return the identity of a message's row in its table."""
    return meta.position, meta.child


def hour_of(ingest_time_us: int) -> LakeHour:
    """Return the table partition of an ingest time.

    Ingest time is by our clock, so customers' clocks do not matter, and it is the same for every repeat of a message.
    """
    at = datetime.fromtimestamp(ingest_time_us // 1_000_000, UTC)
    return LakeHour(at.date(), at.hour)


def ends_of(records: Iterable[tuple[int, int, bytes]]) -> dict[int, int]:
    """Return the offset after the last record of each partition."""
    ends: dict[int, int] = {}
    for partition, offset, _ in records:
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    return ends


def file_facts(
    metas: Iterable[MessageMeta], fact: Fact, facts: FactBook, *, detail: Mapping[int, str] | str = ""
) -> None:
    """Add one fact for the messages of one destination; `detail` is the same for all, or a mapping by round."""
    for meta in metas:
        fact_detail = detail if isinstance(detail, str) else detail[meta.attempt]
        key = FactKey(transmit_node(meta.destination), fact, fact_detail, meta.child)
        facts.add(meta.pipe, meta.bucket, key, meta.position)


def note_lags(metas: Sequence[MessageMeta], lags: LagBook, now_us: int) -> None:
    """Record the lags of messages whose rows are written; they arrived at the node when they reached the lake topic.

    Messages that an earlier release produced have no stopwatch and are skipped.
    """
    for meta in metas:
        arrived, spent_us = spent_until(meta, 0), spent_until(meta, now_us)
        if arrived is None or spent_us is None:
            continue
        key, took_us = (meta.pipe, transmit_node(meta.destination), meta.bucket), sum(spent_us) - sum(arrived)
        lags.add_delivered(key, took_us, *delivery(meta, spent_us))
