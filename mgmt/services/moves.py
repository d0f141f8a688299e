"""Moves: held or dead messages brought back into transmit. The provisioner publishes them, a retrier lane does them."""

from datetime import datetime
from typing import Final

import structlog
from django.db import transaction
from django.db.models import CharField, Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, LPad
from django.utils import timezone

from dataplane.names import WHOLE
from dataplane.tables.moves import MoveProgress
from mgmt.models import Alert, Destination, Move, OffsetSet, Pipe, User
from mgmt.provisioning.admission import release_rate_per_s
from mgmt.queries.pipes import rates_of
from mgmt.queries.places import MOST_PER_MOVE, Chosen, unready
from mgmt.queries.relocations import held_for_order
from mgmt.services.errors import InvalidValue, NothingToMove
from mgmt.services.places import as_taken, claim_listed, put_back, take_places, united

log = structlog.get_logger(__name__)
State, What = Move.State, Move.What

RATE_PER_S: Final = 200.0
MOST_RATE_PER_S: Final = 10_000.0
MOST_IDS: Final = 1_000
UNREADY: Final = (
    "These messages died in a step, before they were ready to be sent: there is nothing to send again. Mend the pipe's "
    "steps and publish them, then send the events once more, with the same ids."
)
_LEFTOVERS_AT_ONCE: Final = 50


@transaction.atomic
def start_move(
    *,
    pipe: Pipe,
    chosen: Chosen,
    rate_per_s: float = RATE_PER_S,
    by: User | None = None,
    alert: Alert | None = None,
    most: int = MOST_PER_MOVE,
    probe: bool = False,
    through: bool = False,
) -> Move:
    """Take what is chosen and bring it back, the oldest first. Done twice, the second finds nothing left.

    `through`: what is released goes out although its destination is held.
    Raises InvalidValue for a choice that cannot be made, NothingToMove.
    """
    _check(pipe, chosen, rate_per_s)
    taken = take_places(pipe.id, chosen, most)
    if not taken:
        raise NothingToMove(_why_nothing(pipe, chosen))
    move = Move.objects.create(
        pipe=pipe,
        destination=chosen.destination,
        what=What.REDRIVE if chosen.kind == OffsetSet.Kind.DEAD else What.RELEASE,
        chosen=chosen.to_builtins(),
        taken=as_taken(taken),
        total=sum(len(part.offsets) for part in taken),
        rate_per_s=rate_per_s,
        alert=alert,
        probe=probe,
        through=through and chosen.kind == OffsetSet.Kind.HELD,
        by=by,
    )
    claim_listed(move, united(move.taken))
    log.info("move made", pipe=pipe.id, destination=move.destination, move=move.id, what=move.what, total=move.total)
    return move


def abort_move(*, move: Move) -> bool:
    """Ask it to end; what it has not reached goes back when it has. False if it was over, or asked already."""
    asked = Move.objects.filter(id=move.id, state=State.RUNNING).update(state=State.ABORTING, version=F("version") + 1)
    move.refresh_from_db()
    return asked == 1


@transaction.atomic
def note_progress(*, progress: MoveProgress, now: datetime) -> None:
    """What a lane says of a move. Safe to hear twice, and after the end."""
    move = Move.objects.select_for_update().filter(id=progress.move, state__in=Move.UNDER_WAY).first()
    if move is None:
        return
    move.moved, move.skipped, move.error = progress.moved, progress.skipped, progress.error[:300]
    move.reached = progress.reached
    if progress.done:
        _finish(move, now)
    move.save()


def release_leftovers(*, cell: str | None = None) -> int:
    """Release what active destinations of running pipes, and these pipes' entrances, still have held; how many moves.

    Whoever resumes a destination need do nothing more: this finds what was held, and what lanes that heard of it later
    held after it. One release at a time for each destination keeps their order.
    """
    moves = 0
    held = OffsetSet.Kind.HELD
    whose = [(row.pipe, Chosen(row.name, held), RATE_PER_S) for row in _leftovers(cell)[:_LEFTOVERS_AT_ONCE]]
    for pipe in _held_before_steps(cell)[:_LEFTOVERS_AT_ONCE]:
        way = getattr(pipe, "admission", None)
        comes_per_s = way.expected_per_s if way else rates_of([pipe.id], timezone.now())[pipe.id]
        rate = min(MOST_RATE_PER_S, max(RATE_PER_S, release_rate_per_s(comes_per_s)))
        whose.append((pipe, Chosen("", held, admitted=way.share if way else WHOLE), rate))
    for pipe, chosen, rate in whose:
        try:
            start_move(pipe=pipe, chosen=chosen, rate_per_s=rate)
        except NothingToMove:
            continue  # somebody else took it in between
        moves += 1
    return moves


def _leftovers(cell: str | None) -> QuerySet[Destination]:
    # A removed one's messages go out as well: transmit cancels them there, and they are accounted for.
    rows = Destination.objects.filter(
        _left_over(pipe_id=OuterRef("pipe_id"), destination=OuterRef("name")),
        state__in=[Destination.State.ACTIVE, Destination.State.REMOVED],
    ).exclude(pipe__state=Pipe.State.PAUSED)
    return (rows.filter(pipe__cell_id=cell) if cell else rows).select_related("pipe").order_by("id")


def _held_before_steps(cell: str | None) -> QuerySet[Pipe]:
    """Pipes with something held before their steps that they let in."""
    let_in = LPad(Cast(Coalesce(OuterRef("admission__share"), WHOLE), CharField()), 3, Value("0"))
    rows = Pipe.objects.filter(_left_over(pipe_id=OuterRef("id"), destination=Value(""), cause__lte=let_in))
    rows = rows.exclude(state=Pipe.State.PAUSED).exclude(id__in=held_for_order().values("pipe"))
    rows = rows.select_related("admission")
    return (rows.filter(cell_id=cell) if cell else rows).order_by("id")


def _left_over(*, cause__lte: Combinable | None = None, **where: OuterRef | Value) -> Q:
    """Something is held there, and no release is under way."""
    held = OffsetSet.objects.filter(**where, kind=OffsetSet.Kind.HELD, count__gt=0)
    if cause__lte is not None:
        held = held.filter(cause__lte=cause__lte)
    busy = Move.objects.filter(**where, what=What.RELEASE, state__in=Move.UNDER_WAY, probe=False)
    return Q(Exists(held)) & ~Q(Exists(busy))


def _finish(move: Move, now: datetime) -> None:
    aborted = move.state == State.ABORTING or bool(move.error)  # a lane that refuses it has moved nothing more
    move.state = State.ABORTED if aborted else State.DONE
    move.finished_at = now
    move.version += 1  # published once more, without its places
    back = put_back(move) if aborted else 0
    log.info("move over", move=move.id, state=move.state, moved=move.moved, skipped=move.skipped, put_back=back)


def _why_nothing(pipe: Pipe, chosen: Chosen) -> str:
    if chosen.kind == OffsetSet.Kind.DEAD and unready(pipe_id=pipe.id, chosen=chosen):
        return UNREADY
    return f"{chosen.destination} has no such message, or it is on its way already."


def _check(pipe: Pipe, chosen: Chosen, rate_per_s: float) -> None:
    if not 0 < rate_per_s <= MOST_RATE_PER_S:
        raise InvalidValue("rate_per_s", f"needs more than 0 and at most {MOST_RATE_PER_S:.0f}")
    if len(chosen.ids) > MOST_IDS:
        raise InvalidValue("ids", f"needs at most {MOST_IDS} ids, got {len(chosen.ids)}")
    if chosen.kind == OffsetSet.Kind.HELD and chosen.ids and _keeps_order(pipe, chosen.destination):
        raise InvalidValue("ids", f"{chosen.destination} keeps the order of each key: choose a key, or a time")
    if chosen.since and chosen.until and chosen.since >= chosen.until:
        raise InvalidValue("until", "needs a time after `since`")


def _keeps_order(pipe: Pipe, destination: str) -> bool:
    return Destination.objects.filter(pipe=pipe, name=destination, config__ordered=True).exists()
