"""What a batch of the lake's topic holds: messages by destination, their rows, and what is to be told of them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct, field

from dataplane.ledger.facts import Fact, FactBook, FactKey
from dataplane.ledger.meta import Meta, decode_meta
from dataplane.ledger.stopwatch import delivery, spent_until
from dataplane.ledger.units import OFFSET_BITS
from dataplane.names import transmit_node
from dataplane.runtime.lags import LagBook

Where = tuple[int, int]  # partition and offset on the lake's topic
Key = tuple[int, int]  # position and child: what makes a row of a table the same row

# The columns of a table, as Spark's DDL; a body that is no text stands in `body_bytes`, and `body` is null.
COLUMNS: Final = (
    "id string, position long, child int, pipe string, revision int, source string, event_time timestamp, "
    "ingest_time timestamp, body string, body_bytes binary, date date, hour int"
)


class Hour(NamedTuple):
    """A partition of a table: the hour of ingest, UTC."""

    date: date
    hour: int


class Lot(Struct):
    """The messages of one destination in a batch, by where they lie; a message that came twice lies in two places."""

    pipe: str
    destination: str
    metas: dict[Where, Meta] = field(default_factory=dict)

    def rows(self, known: Iterable[Key] = ()) -> dict[Where, Meta]:
        """One place for each message that the table does not hold yet."""
        seen = set(known)
        rows: dict[Where, Meta] = {}
        for where, meta in self.metas.items():
            if (key := key_of(meta)) not in seen:
                seen.add(key)
                rows[where] = meta
        return rows

    def hours(self) -> set[Hour]:
        """The partitions that its rows belong to."""
        return {hour_of(meta.ingest_time_us) for meta in self.metas.values()}

    def ranges(self) -> list[tuple[int, int]]:
        """The lowest and the highest position in each partition of the ingest topic: narrow in normal times."""
        by_partition: dict[int, list[int]] = {}
        for meta in self.metas.values():
            by_partition.setdefault(meta.position >> OFFSET_BITS, []).append(meta.position)
        return sorted((min(positions), max(positions)) for positions in by_partition.values())


def lots_of(records: Iterable[tuple[int, int, bytes]]) -> tuple[list[Lot], list[Where]]:
    """(partition, offset, our header) of every record, by destination; and the places of what is none of ours."""
    lots: dict[tuple[str, str], Lot] = {}
    strange = []
    for partition, offset, header in records:
        try:
            meta = decode_meta(header)
        except (msgspec.DecodeError, TypeError):
            strange.append((partition, offset))
            continue
        lot = lots.setdefault((meta.pipe, meta.destination), Lot(meta.pipe, meta.destination))
        lot.metas[partition, offset] = meta
    return list(lots.values()), strange


def key_of(meta: Meta) -> Key:
    """What tells a row from all others of its table."""
    return meta.position, meta.child


def hour_of(ingest_time_us: int) -> Hour:
    """By our clock, which no customer's clock can move; and the same for every repeat of a message."""
    at = datetime.fromtimestamp(ingest_time_us // 1_000_000, UTC)
    return Hour(at.date(), at.hour)


def ends_of(records: Iterable[tuple[int, int, bytes]]) -> dict[int, int]:
    """The offset after the last record of each partition."""
    ends: dict[int, int] = {}
    for partition, offset, _ in records:
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    return ends


def file_lot(metas: Iterable[Meta], fact: Fact, facts: FactBook, *, detail: Mapping[int, str] | str = "") -> None:
    """File one fact of messages of one destination; `detail` is one for all, or by round."""
    for meta in metas:
        told = detail if isinstance(detail, str) else detail[meta.attempt]
        key = FactKey(transmit_node(meta.destination), fact, told, meta.child)
        facts.add(meta.pipe, meta.bucket, key, meta.position)


def note_lags(metas: Sequence[Meta], lags: LagBook, now_us: int) -> None:
    """Book the timing of messages whose rows are written: they arrived at the node when they came on the lake's topic.

    Of those that an earlier release put there nothing is known.
    """
    for meta in metas:
        arrived, spent_us = spent_until(meta, 0), spent_until(meta, now_us)
        if arrived is None or spent_us is None:
            continue
        key, took_us = (meta.pipe, transmit_node(meta.destination), meta.bucket), sum(spent_us) - sum(arrived)
        lags.add_delivered(key, took_us, *delivery(meta, spent_us))
