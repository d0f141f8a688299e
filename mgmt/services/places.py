"""Places of held and dead messages: added by the Observer, taken by moves, put back by what a move did not reach.

A set is changed under a lock of its row, for a bitmap in one column cannot be guarded by a constraint; rows are always
locked in the order of their ids.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from django.db.models import QuerySet
from pyroaring import BitMap64

from dataplane.tables.moves import decode_offsets, encode_offsets, parse_place
from mgmt.models import Listed, Move, OffsetSet
from mgmt.queries.places import HOUR_S, LISTS, MOST_PER_MOVE, Chosen, Part, Place, parts, rows_of

UPDATES: Final = 2_000


class SetId(NamedTuple):
    """The row that places belong to."""

    pipe_id: str
    destination: str
    kind: str
    cause: str
    topic: str
    partition: int
    hour: int


class Found(NamedTuple):
    """One place, and the second (Unix time) in which Kafka stored it."""

    set_id: SetId
    offset: int
    at_s: int


def add_places(found: Iterable[Found]) -> None:
    """Add places to their sets. To be called in the transaction that moves the reader's offset: `seen` counts calls.

    Whoever takes the last of a set removes its row. Where that is between finding the row and locking it, it is made
    anew: our own row nobody removes.
    """
    groups: dict[SetId, list[Found]] = {}
    for one in found:
        groups.setdefault(one.set_id, []).append(one)
    empty = {"offsets": BitMap64().serialize(), "count": 0, "seen": 0, "marks": []}
    while groups:
        OffsetSet.objects.bulk_create([OffsetSet(**key._asdict(), **empty) for key in groups], ignore_conflicts=True)
        for row in _locked(groups):
            news = groups.pop(_id_of(row))
            row.seen += len(news)
            row.marks = _marks(row.marks, news)
            _set(row, BitMap64.deserialize(bytes(row.offsets)) | BitMap64([one.offset for one in news]))


def take_places(pipe_id: str, chosen: Chosen, most: int = MOST_PER_MOVE) -> list[Part]:
    """Take the oldest of what is chosen out of its sets, so that nobody else takes it."""
    ids = list(rows_of(pipe_id, chosen).values_list("id", flat=True))
    locked = {row.id: row for row in OffsetSet.objects.select_for_update().filter(id__in=ids).order_by("id")}
    taken: list[Part] = []
    room = most
    for part in parts((locked[row_id] for row_id in ids if row_id in locked), chosen):
        offsets = part.offsets if len(part.offsets) <= room else BitMap64(part.offsets[:room])
        room -= len(offsets)
        taken.append(Part(part.row, offsets))
        if not room:
            break
    for part in taken:
        _set(part.row, BitMap64.deserialize(bytes(part.row.offsets)) - part.offsets)
    OffsetSet.objects.filter(count=0, id__in=[part.row.id for part in taken]).delete()
    return taken


def as_taken(taken: Iterable[Part]) -> list[Any]:
    """Parts as a move's row keeps them."""
    return [
        [
            part.row.cause,
            part.row.hour,
            part.row.marks,
            encode_offsets({(part.row.topic, part.row.partition): part.offsets}),
        ]
        for part in taken
    ]


def united(taken: Iterable[Any]) -> dict[Place, BitMap64]:
    """All places of a move's row."""
    places: dict[Place, BitMap64] = {}
    for *_, offsets in taken:
        for place, more in decode_offsets(offsets).items():
            places[place] = places.get(place, BitMap64()) | more
    return places


def put_back(move: Move) -> int:
    """Give back what an aborted move has not reached; how many that were."""
    kind = _kind_of(move)
    reached = {parse_place(text): offset for text, offset in move.reached.items()}
    found = []
    for cause, hour, marks, offsets in move.taken:
        for place, all_of_it in decode_offsets(offsets).items():
            key = SetId(move.pipe_id, move.destination, kind, cause, *place, hour)
            rest = (offset for offset in all_of_it if offset >= reached.get(place, 0))
            found += [Found(key, offset, _at_s(hour, marks, offset)) for offset in rest]
    add_places(found)
    _free_listed(move, reached)
    return len(found)


def claim_listed(move: Move, places: Mapping[Place, BitMap64]) -> None:
    """Note on the listed messages what brings them back."""
    rows = _list_of(move).filter(pipe_id=move.pipe_id, destination=move.destination, move=None)
    none = BitMap64()
    ids = [
        row_id
        for row_id, topic, partition, offset in rows.values_list("pk", "topic", "partition", "offset").iterator()
        if offset in places.get((topic, partition), none)
    ]
    for start in range(0, len(ids), UPDATES):
        _list_of(move).filter(pk__in=ids[start : start + UPDATES]).update(move=move)


def _free_listed(move: Move, reached: Mapping[Place, int]) -> None:
    listed = _list_of(move).filter(move=move)
    for topic, partition in listed.values_list("topic", "partition").distinct():
        rest = listed.filter(topic=topic, partition=partition, offset__gte=reached.get((topic, partition), 0))
        rest.update(move=None)


def _kind_of(move: Move) -> str:
    return OffsetSet.Kind.DEAD if move.what == Move.What.REDRIVE else OffsetSet.Kind.HELD


def _list_of(move: Move) -> QuerySet[Listed]:
    return LISTS[_kind_of(move)]._default_manager.all()


def _locked(groups: Iterable[SetId]) -> list[OffsetSet]:
    wanted = set(groups)
    rows = OffsetSet.objects.filter(
        pipe_id__in={key.pipe_id for key in wanted},
        topic__in={key.topic for key in wanted},
        hour__in={key.hour for key in wanted},
    )
    ids = [row.id for row in rows.defer("offsets") if _id_of(row) in wanted]
    return list(OffsetSet.objects.select_for_update().filter(id__in=ids).order_by("id"))


def _id_of(row: OffsetSet) -> SetId:
    return SetId(*(getattr(row, name) for name in SetId._fields))


def _set(row: OffsetSet, offsets: BitMap64) -> None:
    offsets.run_optimize()
    row.offsets, row.count = offsets.serialize(), len(offsets)
    row.save(update_fields=["offsets", "count", "seen", "marks"])


def _marks(known: list[list[int]], news: Iterable[Found]) -> list[list[int]]:
    firsts: dict[int, int] = dict(known)  # type: ignore[arg-type]  # lists of two, as JSON has no tuples
    for one in news:
        minute = one.at_s % HOUR_S // 60
        firsts[minute] = min(firsts.get(minute, one.offset), one.offset)
    return [[minute, firsts[minute]] for minute in sorted(firsts)]


def _at_s(hour: int, marks: list[list[int]], offset: int) -> int:
    minute = max((minute for minute, first in marks if first <= offset), default=0)
    return hour * HOUR_S + minute * 60
