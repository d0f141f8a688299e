"""Services of offset sets: the Observer adds offsets of held and dead messages, a release or redrive takes them.

An aborted release or redrive puts back the offsets that it has not reached.

A set is changed under a lock of its row, because no constraint can guard a bitmap in one column; rows are always locked
in the order of their ids.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from django.db.models import QuerySet
from pyroaring import BitMap64

from dataplane.names import PartitionKey
from dataplane.tables.redrives import decode_offsets, encode_offsets, parse_place
from mgmt.deliveries.queries.message_selection import (
    HOUR_S,
    LISTS,
    MOST_PER_REDRIVE,
    MessageSelection,
    SelectedPart,
    parts,
    rows_of,
)
from mgmt.models import ListedMessage, OffsetSet, Redrive

UPDATES: Final = 2_000


class OffsetSetKey(NamedTuple):
    """Natural key of an OffsetSet row."""

    pipe_id: str
    destination: str
    kind: str
    cause: str
    topic: str
    partition: int
    hour: int


class StoredPosition(NamedTuple):
    """One offset of a set, and the Unix time in seconds at which Kafka stored its record."""

    set_id: OffsetSetKey
    offset: int
    at_s: int


def add_places(found: Iterable[StoredPosition]) -> None:
    """Add offsets to their sets. Call it in the transaction of the reader's position, because `seen` counts each call.

    `remove_places` deletes a row with its last offset. If that happens between finding a row and locking it, the row is
    created again; nobody can remove a row that this transaction created.
    """
    groups: dict[OffsetSetKey, list[StoredPosition]] = {}
    for one in found:
        groups.setdefault(one.set_id, []).append(one)
    empty = {"offsets": BitMap64().serialize(), "count": 0, "seen": 0, "marks": []}
    while groups:
        OffsetSet.objects.bulk_create([OffsetSet(**key._asdict(), **empty) for key in groups], ignore_conflicts=True)
        for row in _locked(groups):
            added = groups.pop(_id_of(row))
            row.seen += len(added)
            row.marks = _marks(row.marks, added)
            _set(row, BitMap64.deserialize(bytes(row.offsets)) | BitMap64([one.offset for one in added]))


def remove_places(pipe_id: str, chosen: MessageSelection, most: int = MOST_PER_REDRIVE) -> list[SelectedPart]:
    """Remove the oldest `most` offsets of a selection from their sets and return them; each offset is taken once."""
    ids = list(rows_of(pipe_id, chosen).values_list("id", flat=True))
    locked = {row.id: row for row in OffsetSet.objects.select_for_update().filter(id__in=ids).order_by("id")}
    taken: list[SelectedPart] = []
    left = most
    for part in parts((locked[row_id] for row_id in ids if row_id in locked), chosen):
        offsets = part.offsets if len(part.offsets) <= left else BitMap64(part.offsets[:left])
        left -= len(offsets)
        taken.append(SelectedPart(part.row, offsets))
        if not left:
            break
    for part in taken:
        _set(part.row, BitMap64.deserialize(bytes(part.row.offsets)) - part.offsets)
    OffsetSet.objects.filter(count=0, id__in=[part.row.id for part in taken]).delete()
    return taken


def cut_places(ends: Mapping[PartitionKey, int]) -> None:
    """Remove the offsets at and after the ends of partitions, whose logs have lost them."""
    topics = {topic for topic, _ in ends}
    for row in OffsetSet.objects.select_for_update().filter(topic__in=topics).order_by("id").iterator():
        offsets, end = BitMap64.deserialize(bytes(row.offsets)), ends.get((row.topic, row.partition))
        if end is None or offsets.max() < end:
            continue
        row.marks = [mark for mark in row.marks if mark[1] < end]
        _set(row, BitMap64([offset for offset in offsets if offset < end]))
    OffsetSet.objects.filter(count=0, topic__in=topics).delete()


def as_taken(taken: Iterable[SelectedPart]) -> list[Any]:
    """Return the JSON form in which Redrive.taken stores the selected parts."""
    return [
        [
            part.row.cause,
            part.row.hour,
            part.row.marks,
            encode_offsets({(part.row.topic, part.row.partition): part.offsets}),
        ]
        for part in taken
    ]


def united(taken: Iterable[Any]) -> dict[PartitionKey, BitMap64]:
    """Return the union of all offsets of Redrive.taken, by partition."""
    places: dict[PartitionKey, BitMap64] = {}
    for *_, offsets in taken:
        for place, more in decode_offsets(offsets).items():
            places[place] = places.get(place, BitMap64()) | more
    return places


def put_back(move: Redrive) -> int:
    """Put back the offsets that an aborted release or redrive has not reached. Returns their number."""
    kind = _kind_of(move)
    reached = {parse_place(text): offset for text, offset in move.reached.items()}
    found = []
    for cause, hour, marks, offsets in move.taken:
        for place, all_of_it in decode_offsets(offsets).items():
            key = OffsetSetKey(move.pipe_id, move.destination, kind, cause, *place, hour)
            rest = (offset for offset in all_of_it if offset >= reached.get(place, 0))
            found += [StoredPosition(key, offset, _at_s(hour, marks, offset)) for offset in rest]
    add_places(found)
    _free_listed(move, reached)
    return len(found)


def claim_listed(move: Redrive, places: Mapping[PartitionKey, BitMap64]) -> None:
    """Set the release or redrive on the listed messages with these offsets."""
    rows = _list_of(move).filter(pipe_id=move.pipe_id, destination=move.destination, move=None)
    none = BitMap64()
    ids = [
        row_id
        for row_id, topic, partition, offset in rows.values_list("pk", "topic", "partition", "offset").iterator()
        if offset in places.get((topic, partition), none)
    ]
    for start in range(0, len(ids), UPDATES):
        _list_of(move).filter(pk__in=ids[start : start + UPDATES]).update(move=move)


def _free_listed(move: Redrive, reached: Mapping[PartitionKey, int]) -> None:
    listed = _list_of(move).filter(move=move)
    for topic, partition in listed.values_list("topic", "partition").distinct():
        rest = listed.filter(topic=topic, partition=partition, offset__gte=reached.get((topic, partition), 0))
        rest.update(move=None)


def _kind_of(move: Redrive) -> str:
    return OffsetSet.Kind.DEAD if move.what == Redrive.What.REDRIVE else OffsetSet.Kind.HELD


def _list_of(move: Redrive) -> QuerySet[ListedMessage]:
    return LISTS[_kind_of(move)]._default_manager.all()


def _locked(groups: Iterable[OffsetSetKey]) -> list[OffsetSet]:
    wanted = set(groups)
    rows = OffsetSet.objects.filter(
        pipe_id__in={key.pipe_id for key in wanted},
        topic__in={key.topic for key in wanted},
        hour__in={key.hour for key in wanted},
    )
    ids = [row.id for row in rows.defer("offsets") if _id_of(row) in wanted]
    return list(OffsetSet.objects.select_for_update().filter(id__in=ids).order_by("id"))


def _id_of(row: OffsetSet) -> OffsetSetKey:
    return OffsetSetKey(*(getattr(row, name) for name in OffsetSetKey._fields))


def _set(row: OffsetSet, offsets: BitMap64) -> None:
    offsets.run_optimize()
    row.offsets, row.count = offsets.serialize(), len(offsets)
    row.save(update_fields=["offsets", "count", "seen", "marks"])


def _marks(known: list[list[int]], added: Iterable[StoredPosition]) -> list[list[int]]:
    firsts: dict[int, int] = dict(known)  # type: ignore[arg-type]  # lists of two, as JSON has no tuples
    for one in added:
        minute = one.at_s % HOUR_S // 60
        firsts[minute] = min(firsts.get(minute, one.offset), one.offset)
    return [[minute, firsts[minute]] for minute in sorted(firsts)]


def _at_s(hour: int, marks: list[list[int]], offset: int) -> int:
    minute = max((minute for minute, first in marks if first <= offset), default=0)
    return hour * HOUR_S + minute * 60
