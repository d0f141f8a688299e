"""Selections of held or dead messages: their offsets in Kafka, and their counts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models import QuerySet, Sum
from pyroaring import BitMap64

from dataplane.names import ALL_KEYS_PERCENT, PartitionKey, transmit_node
from mgmt.models import DeadLetter, HeldMessage, ListedMessage, OffsetSet
from mgmt.ramps.admission_schedule import filed_under

MINUTE_S: Final = 60
HOUR_S: Final = 3_600
MOST_PER_REDRIVE: Final = 200_000  # two bytes each at worst: the record of a redrive must fit the control topic
LISTS: Final[Mapping[str, type[ListedMessage]]] = {OffsetSet.Kind.DEAD: DeadLetter, OffsetSet.Kind.HELD: HeldMessage}


@dataclass(frozen=True)
class MessageSelection:
    """Selection among one destination's messages; an empty field matches all.

    Without a destination: dead letters that ended in the pipe's steps, or messages held before them.

    Times are those of becoming held or dead, in whole minutes: `since` <= time < `until`. Keys and ids are known for
    listed messages only (mgmt.models.ListedMessage). `admitted`: of the messages that wait for their pipe's admission,
    those that this percentage of the keys admits.
    """

    destination: str
    kind: str = OffsetSet.Kind.DEAD
    cause: str = ""
    since: datetime | None = None
    until: datetime | None = None
    key: str = ""
    ids: tuple[str, ...] = ()
    admitted: int = ALL_KEYS_PERCENT

    def to_builtins(self) -> dict[str, Any]:
        """Return the selection as a row stores it, without empty fields."""
        times = {name: at.isoformat() for name, at in (("since", self.since), ("until", self.until)) if at}
        plain = {"destination": self.destination, "kind": str(self.kind), "cause": self.cause, "key": self.key}
        return {name: value for name, value in (plain | times | {"ids": list(self.ids)}).items() if value}


@dataclass(frozen=True)
class SelectedPart:
    """Selected offsets of one stored set."""

    row: OffsetSet
    offsets: BitMap64


@dataclass(frozen=True)
class RedrivePreview:
    """Messages that match a selection now. A redrive takes the oldest `most`; `unready` cannot be redriven."""

    count: int
    causes: Mapping[str, int]
    oldest: datetime | None
    newest: datetime | None
    unready: int = 0
    most: int = MOST_PER_REDRIVE


@dataclass(frozen=True)
class WaitingMessages:
    """A destination's held or dead messages of one cause that no redrive has taken."""

    pipe_id: str
    destination: str
    kind: str
    cause: str
    count: int
    oldest: datetime


def preview(*, pipe_id: str, chosen: MessageSelection) -> RedrivePreview:
    """Return the counts of a selection, and the minutes of its oldest and newest message."""
    causes: dict[str, int] = {}
    times: list[datetime] = []
    for part in parts(rows_of(pipe_id, chosen), chosen):
        causes[part.row.cause] = causes.get(part.row.cause, 0) + len(part.offsets)
        times += [time_of(part.row, part.offsets.min()), time_of(part.row, part.offsets.max())]
    dead_early = unready(pipe_id=pipe_id, chosen=chosen) if chosen.kind == OffsetSet.Kind.DEAD else 0
    return RedrivePreview(sum(causes.values()), causes, min(times, default=None), max(times, default=None), dead_early)


def unready(*, pipe_id: str, chosen: MessageSelection) -> int:
    """Count the selected listed dead letters that no redrive can take.

    For a destination, these ended before transmit, so there is no request to send. Without one, these have only a part
    of their event, or an earlier release stored them.
    """
    if chosen.destination:
        found = DeadLetter.objects.filter(pk__in=listed(pipe_id, chosen).values("pk"))
        return found.exclude(node=transmit_node(chosen.destination)).count()
    stored: dict[PartitionKey, BitMap64] = {}
    for part in parts(rows_of(pipe_id, replace(chosen, key="", ids=())), replace(chosen, key="", ids=())):
        place = (part.row.topic, part.row.partition)
        stored[place] = stored.get(place, BitMap64()) | part.offsets
    rows = listed(pipe_id, chosen).order_by().values_list("topic", "partition", "offset")
    return sum(offset not in stored.get((topic, partition), ()) for topic, partition, offset in rows)


def waiting(*, pipe_ids: Iterable[str], destination: str = "") -> list[WaitingMessages]:
    """Return each destination's held and dead messages by cause, oldest first."""
    rows = OffsetSet.objects.filter(pipe_id__any_of=pipe_ids)
    if destination:
        rows = rows.filter(destination=destination)
    keys = ("pipe_id", "destination", "kind", "cause")
    sums = {tuple(row[:4]): row[4] for row in rows.values_list(*keys).annotate(n=Sum("count"))}
    found = [
        WaitingMessages(
            pipe_id=row.pipe_id,
            destination=row.destination,
            kind=row.kind,
            cause=row.cause,
            count=sums.get((row.pipe_id, row.destination, row.kind, row.cause), row.count),
            oldest=time_of(row, first_of(row)),
        )
        for row in rows.order_by(*keys, "hour").distinct(*keys)
    ]
    return sorted(found, key=lambda one: one.oldest)


def held_before_steps(*, pipe_id: str) -> WaitingMessages | None:
    """Return a pipe's messages that are held before its steps, for no destination; None if there are none."""
    found = [one for one in waiting_by_cause(pipe_id=pipe_id) if not one.destination and one.kind == "held"]
    return found[0] if found else None


def waiting_by_cause(*, pipe_id: str) -> list[WaitingMessages]:
    """Return a pipe's dead messages by destination and cause, and its held ones by destination; oldest first.

    Held messages have no cause: their sets are filed by the share of the keys for which they wait.
    """
    found = waiting(pipe_ids=[pipe_id])
    together = {one.destination: one for one in reversed(found) if one.kind == OffsetSet.Kind.HELD}
    sums = {name: sum(one.count for one in found if (one.destination, one.kind) == (name, "held")) for name in together}
    held = [replace(one, cause="", count=sums[name]) for name, one in together.items()]
    return sorted([*held, *(one for one in found if one.kind != "held")], key=lambda one: one.oldest)


def rows_of(pipe_id: str, chosen: MessageSelection) -> QuerySet[OffsetSet]:
    """Return the sets that may contain selected offsets, in the order in which a redrive takes them."""
    rows = OffsetSet.objects.filter(pipe_id=pipe_id, destination=chosen.destination, kind=chosen.kind)
    if chosen.cause:
        rows = rows.filter(cause=chosen.cause)
    if chosen.admitted < ALL_KEYS_PERCENT:
        rows = rows.filter(cause__lte=filed_under(chosen.admitted))
    if chosen.since:
        rows = rows.filter(hour__gte=int(chosen.since.timestamp()) // HOUR_S)
    if chosen.until:
        rows = rows.filter(hour__lte=int(chosen.until.timestamp()) // HOUR_S)
    return rows.order_by("hour", "topic", "partition", "id")


def parts(rows: Iterable[OffsetSet], chosen: MessageSelection) -> Iterable[SelectedPart]:
    """Yield the selected offsets of each set; sets without any are omitted."""
    listed: Mapping[PartitionKey, BitMap64] | None = None
    for row in rows:
        offsets = within(row, chosen.since, chosen.until)
        if chosen.key or chosen.ids:
            listed = _listed(row.pipe_id, chosen) if listed is None else listed
            offsets &= listed.get((row.topic, row.partition), BitMap64())
        if offsets:
            yield SelectedPart(row, offsets)


def within(row: OffsetSet, since: datetime | None, until: datetime | None) -> BitMap64:
    """Return the set's offsets of the minutes from `since` (included) to `until` (excluded)."""
    offsets = BitMap64.deserialize(bytes(row.offsets))
    if until is not None:
        offsets = _below(offsets, _first_at(row, until))
    return offsets if since is None else offsets - _below(offsets, _first_at(row, since))


def time_of(row: OffsetSet, offset: int) -> datetime:
    """Return the minute in which the message at `offset` became held or dead."""
    minute = max((minute for minute, first in row.marks if first <= offset), default=0)
    return datetime.fromtimestamp(row.hour * HOUR_S + minute * MINUTE_S, UTC)


def first_of(row: OffsetSet) -> int:
    """Return the lowest offset in a set."""
    return int(BitMap64.deserialize(bytes(row.offsets)).min())


def _first_at(row: OffsetSet, at: datetime) -> int | None:
    """Return the first offset stored at that minute or later; None if the set has none."""
    minute = (int(at.timestamp()) - row.hour * HOUR_S) // MINUTE_S
    return min((first for known, first in row.marks if known >= minute), default=None)


def _below(offsets: BitMap64, limit: int | None) -> BitMap64:
    if limit is None:
        return offsets
    lower = BitMap64()
    lower.add_range(0, limit)
    return offsets & lower


def listed(pipe_id: str, chosen: MessageSelection) -> QuerySet[ListedMessage]:
    """Return the selected listed messages that no redrive has taken, oldest first."""
    rows = LISTS[chosen.kind]._default_manager.filter(pipe_id=pipe_id, destination=chosen.destination, move=None)
    if chosen.cause and "cause" not in LISTS[chosen.kind].HEAP:
        return rows.none()
    exact = {"cause": chosen.cause, "key": chosen.key, "at__gte": chosen.since, "at__lt": chosen.until}
    rows = rows.filter(**{name: value for name, value in exact.items() if value})
    if chosen.ids:
        rows = rows.filter(message_id__in=chosen.ids)
    return rows.order_by("pk")


def _listed(pipe_id: str, chosen: MessageSelection) -> Mapping[PartitionKey, BitMap64]:
    """Return the offsets of the listed messages by partition; `within` applies the times, by whole minutes."""
    found: dict[PartitionKey, BitMap64] = {}
    rows = listed(pipe_id, replace(chosen, since=None, until=None)).order_by()
    for topic, partition, offset in rows.values_list("topic", "partition", "offset"):
        found.setdefault((topic, partition), BitMap64()).add(offset)
    return found
