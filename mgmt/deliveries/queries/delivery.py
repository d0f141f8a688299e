"""Undelivered messages for pages and API: dead letters, held messages, and redrives."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from django.db.models import Count, Min, Q, QuerySet
from pyroaring import BitMap64

from dataplane.ledger.facts import PROCESS, Fact
from dataplane.names import PROCESS_NODES, transmit_node
from mgmt.deliveries.queries.message_selection import WaitingMessages, waiting
from mgmt.models import (
    DeadLetter,
    Destination,
    DestinationHealth,
    FactRow,
    HeldMessage,
    ListedMessage,
    OffsetSet,
    Pipe,
    Redrive,
)

_L = TypeVar("_L", bound=ListedMessage)
_STATES_NODES: Final = (
    Q(node__startswith=transmit_node(""), fact=Fact.DELIVERED)
    | Q(node=PROCESS, fact=Fact.SENT)
    | Q(node__in=PROCESS_NODES, fact=Fact.FILTERED)
)


@dataclass(frozen=True)
class DeliveryState:
    """Delivery state of a destination, with its held messages, dead letters and redrives in progress."""

    destination: Destination
    pipe_paused: bool
    held: int
    held_since: datetime | None
    dead: Sequence[WaitingMessages]
    moves: Sequence[Redrive]
    health: DestinationHealth | None = None

    @property
    def holds(self) -> bool:
        """True if the destination's messages are held."""
        return self.pipe_paused or self.destination.state in (Destination.State.PAUSED, Destination.State.SUSPENDED)


def dead_letters(
    *,
    pipe: Pipe,
    destination: str | None = None,
    cause: str = "",
    message_id: str = "",
    key: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
) -> QuerySet[DeadLetter]:
    """Return a pipe's listed dead letters, newest first.

    None and "" match all, except `destination=""`, which finds dead letters of messages that ended before the route.
    Times: `since` <= time < `until`.
    """
    rows = DeadLetter.objects.filter(pipe_id=pipe.id).select_related("move")
    if destination is not None:
        rows = rows.filter(destination=destination)
    return _fitting(rows, cause=cause, message_id=message_id, key=key, at__gte=since, at__lt=until)


def held_messages(
    *,
    pipe: Pipe,
    destination: str = "",
    message_id: str = "",
    key: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
) -> QuerySet[HeldMessage]:
    """Return a pipe's listed held messages that no redrive has taken, newest first; an empty filter matches all."""
    rows = HeldMessage.objects.filter(pipe_id=pipe.id, move=None)
    return _fitting(rows, destination=destination, message_id=message_id, key=key, at__gte=since, at__lt=until)


def without_redrive(*, pipe: Pipe, redrivable: Sequence[WaitingMessages]) -> list[WaitingMessages]:
    """Return the listed dead letters, by destination and cause, that no redrive can take.

    They ended in the steps of a destination, hold only a part of their event, or come from an earlier release.
    `redrivable`: the pipe's dead letters that a redrive can take.
    """
    known = {one.cause: one.count for one in redrivable if not one.destination}
    rows = DeadLetter.objects.filter(pipe_id=pipe.id, move=None).exclude(node__startswith=transmit_node(""))
    groups = rows.order_by().values_list("destination", "cause").annotate(n=Count("id"), first=Min("at"))
    found = [
        (where, cause, count - (0 if where else known.get(cause, 0)), oldest) for where, cause, count, oldest in groups
    ]
    return [
        WaitingMessages(pipe.id, where, OffsetSet.Kind.DEAD, cause, count, oldest)
        for where, cause, count, oldest in found
        if count > 0
    ]


def states_after_redrive(letters: Iterable[DeadLetter]) -> dict[int, str]:
    """Return what became of redriven dead letters, by row id: "delivered", "passed the steps" or "filtered"."""
    rows = [row for row in letters if row.move_id]
    if not rows:
        return {}
    facts = FactRow.objects.filter(
        _STATES_NODES, pipe_id__in={row.pipe_id for row in rows}, bucket__in={row.bucket for row in rows}
    )
    sets: dict[tuple[str, int, int, str, str], BitMap64] = {}
    for pipe_id, bucket, child, node, fact, positions in facts.values_list(
        "pipe_id", "bucket", "child", "node", "fact", "positions"
    ):
        key = (pipe_id, bucket, child, node, fact)
        sets[key] = sets.get(key, BitMap64()) | BitMap64.deserialize(bytes(positions))
    return {row.id: state for row in rows if (state := _state_after_redrive(row, sets))}


def _state_after_redrive(row: DeadLetter, sets: Mapping[tuple[str, int, int, str, str], BitMap64]) -> str:
    def has(node: str, fact: Fact) -> bool:
        return row.position in sets.get((row.pipe_id, row.bucket, row.child, node, fact), ())

    if row.destination:
        return "delivered" if has(transmit_node(row.destination), Fact.DELIVERED) else ""
    if has(PROCESS, Fact.SENT):
        return "passed the steps"
    return "filtered" if any(has(node, Fact.FILTERED) for node in PROCESS_NODES) else ""


def _fitting(rows: QuerySet[_L], **exact: object) -> QuerySet[_L]:
    """Filter by the values that are not empty, newest first."""
    return rows.filter(**{name: value for name, value in exact.items() if value}).order_by("-pk")


def redrives_of(*, pipe: Pipe, destination: str = "") -> QuerySet[Redrive]:
    """Return a pipe's redrives, newest first, without their sets of offsets."""
    rows = pipe.moves.select_related("by").defer("taken", "reached")
    return (rows.filter(destination=destination) if destination else rows).order_by("-id")


def delivery_states(*, pipe: Pipe) -> list[DeliveryState]:
    """Return the states of all destinations of a pipe, by name; three queries for any number of them."""
    found = waiting(pipe_ids=[pipe.id])
    in_progress = list(redrives_of(pipe=pipe).filter(finished_at=None))
    rows = pipe.destinations.select_related("health").order_by("name")
    return [_delivery_state(pipe, row, found, in_progress) for row in rows]


def delivery_state(*, destination: Destination) -> DeliveryState:
    """Return the state of one destination."""
    found = waiting(pipe_ids=[destination.pipe_id], destination=destination.name)
    in_progress = redrives_of(pipe=destination.pipe, destination=destination.name).filter(finished_at=None)
    return _delivery_state(destination.pipe, destination, found, list(in_progress))


def _delivery_state(
    pipe: Pipe, row: Destination, found: Sequence[WaitingMessages], in_progress: Sequence[Redrive]
) -> DeliveryState:
    own = [one for one in found if one.destination == row.name]
    held = [one for one in own if one.kind == "held"]
    return DeliveryState(
        destination=row,
        pipe_paused=pipe.state == Pipe.State.PAUSED,
        held=sum(one.count for one in held),
        held_since=min((one.oldest for one in held), default=None),
        dead=[one for one in own if one.kind == "dead"],
        moves=[move for move in in_progress if move.destination == row.name],
        health=row.health if hasattr(row, "health") else None,
    )
