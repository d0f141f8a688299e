"""What did not go out, for pages and API: dead letters, what is held, and the moves that bring messages back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db.models import QuerySet

from mgmt.models import DeadLetter, Destination, HeldMessage, Listed, Move, Pipe
from mgmt.queries.places import Waiting, waiting

_L = TypeVar("_L", bound=Listed)


@dataclass(frozen=True)
class Standing:
    """Whether a destination is sent anything now, and what waits for it."""

    destination: Destination
    pipe_paused: bool
    held: int
    held_since: datetime | None
    dead: Sequence[Waiting]
    moves: Sequence[Move]

    @property
    def holds(self) -> bool:
        """Whether its messages are held."""
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
    """A pipe's listed dead letters, newest first; None and "" let everything pass, `destination=""` finds those
    that died before one was chosen."""
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
    """A pipe's listed held messages that are not on their way, newest first; what is left empty lets all pass."""
    rows = HeldMessage.objects.filter(pipe_id=pipe.id, move=None)
    return _fitting(rows, destination=destination, message_id=message_id, key=key, at__gte=since, at__lt=until)


def _fitting(rows: QuerySet[_L], **exact: object) -> QuerySet[_L]:
    """Rows that fit what is not empty, newest first."""
    return rows.filter(**{name: value for name, value in exact.items() if value}).order_by("-pk")


def moves_of(*, pipe: Pipe, destination: str = "") -> QuerySet[Move]:
    """A pipe's moves, newest first, without the places they carry."""
    rows = pipe.moves.select_related("by").defer("taken", "reached")
    return (rows.filter(destination=destination) if destination else rows).order_by("-id")


def standings(*, pipe: Pipe) -> list[Standing]:
    """All destinations of a pipe, by name, with three queries whatever their number."""
    found = waiting(pipe_ids=[pipe.id])
    under_way = list(moves_of(pipe=pipe).filter(finished_at=None))
    return [_standing(pipe, row, found, under_way) for row in pipe.destinations.order_by("name")]


def standing_of(*, destination: Destination) -> Standing:
    """One destination."""
    found = waiting(pipe_ids=[destination.pipe_id], destination=destination.name)
    under_way = moves_of(pipe=destination.pipe, destination=destination.name).filter(finished_at=None)
    return _standing(destination.pipe, destination, found, list(under_way))


def _standing(pipe: Pipe, row: Destination, found: Sequence[Waiting], under_way: Sequence[Move]) -> Standing:
    mine = [one for one in found if one.destination == row.name]
    held = [one for one in mine if one.kind == "held"]
    return Standing(
        destination=row,
        pipe_paused=pipe.state == Pipe.State.PAUSED,
        held=sum(one.count for one in held),
        held_since=min((one.oldest for one in held), default=None),
        dead=[one for one in mine if one.kind == "dead"],
        moves=[move for move in under_way if move.destination == row.name],
    )
