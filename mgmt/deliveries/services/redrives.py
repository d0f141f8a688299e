"""Services of releases and redrives, which return held or dead messages to transmit.

The Provisioner publishes each as a control record, and a retrier lane carries it out.
"""

from datetime import datetime
from typing import Final

import structlog
from django.db import transaction
from django.db.models import CharField, Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, LPad
from django.utils import timezone

from dataplane.names import ALL_KEYS_PERCENT
from dataplane.tables.redrives import RedriveProgress
from mgmt.audit.services import record
from mgmt.cells.queries.pipe_migrations import held_for_order
from mgmt.deliveries.queries.message_selection import MOST_PER_REDRIVE, MessageSelection, unready
from mgmt.deliveries.services.offset_sets import as_taken, claim_listed, put_back, remove_places, united
from mgmt.errors import InvalidValue, NothingToRedriveError, PipePausedError
from mgmt.models import Alert, Destination, OffsetSet, Pipe, Redrive, User
from mgmt.pipes.queries.pipes import rates_of
from mgmt.ramps.admission_schedule import release_rate_per_s

log = structlog.get_logger(__name__)
State, What = Redrive.State, Redrive.What

RATE_PER_S: Final = 200.0
MOST_RATE_PER_S: Final = 10_000.0
MOST_IDS: Final = 1_000
UNREADY: Final = (
    "These messages failed in a step, before a request was built, so they cannot be redriven. Fix the pipe's steps, "
    "publish a revision, then send the events again with the same ids."
)
PARTS: Final = (
    "Only a part of these events is stored, so they cannot be run again. Correct the pipe's steps and publish them, "
    "then post the events again with the same ids."
)
_LEFTOVERS_AT_ONCE: Final = 50


@transaction.atomic
def start_redrive(
    *,
    pipe: Pipe,
    chosen: MessageSelection,
    rate_per_s: float = RATE_PER_S,
    by: User | None = None,
    alert: Alert | None = None,
    most: int = MOST_PER_REDRIVE,
    probe: bool = False,
    through: bool = False,
) -> Redrive:
    """Start to return the selected messages to transmit, oldest first. A repeated call finds no messages left.

    `rate_per_s`: messages per second. `most`: messages to take at most. `probe`: it tests the destination of `alert`.
    `through`: released messages are sent although their destination is held. Without a destination, dead letters that
    ended in the pipe's steps run again through its live revision.
    Raises InvalidValue for a selection that is not permitted, PipePausedError, NothingToRedriveError.
    """
    _check(pipe, chosen, rate_per_s)
    taken = remove_places(pipe.id, chosen, most)
    if not taken:
        raise NothingToRedriveError(_why_nothing(pipe, chosen))
    move = Redrive.objects.create(
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
    if by is not None and not probe:  # the entry of a probe is that of its alert
        started = {"rate_per_s": rate_per_s} | ({"cause": chosen.cause} if chosen.cause else {})
        record(pipe=pipe, by=by, action=f"{move.what}.started", target=move, after=started)
    log.info(
        "redrive started", pipe=pipe.id, destination=move.destination, move=move.id, what=move.what, total=move.total
    )
    return move


@transaction.atomic
def cancel_redrive(*, move: Redrive, by: User | None = None) -> bool:
    """Request an abort; messages not reached by then are put back at its end. Returns False if it was not running."""
    asked = Redrive.objects.filter(id=move.id, state=State.RUNNING).update(
        state=State.ABORTING, version=F("version") + 1
    )
    move.refresh_from_db()
    if asked and by is not None:
        record(pipe=move.pipe, by=by, action=f"{move.what}.aborted", target=move)
    return asked == 1


@transaction.atomic
def note_progress(*, progress: RedriveProgress, now: datetime) -> None:
    """Store a lane's progress report. Safe to repeat, also after the end."""
    move = Redrive.objects.select_for_update().filter(id=progress.move, state__in=Redrive.UNDER_WAY).first()
    if move is None:
        return
    move.moved, move.skipped, move.error = progress.moved, progress.skipped, progress.error[:300]
    move.reached = progress.reached
    if progress.done:
        _finish(move, now)
    move.save()


def release_leftovers() -> int:
    """Release held messages of active destinations, and those held before the steps of running pipes.

    A resume therefore needs no release of its own: this finds the messages held before it, and those that lanes held
    afterwards because they learned of the resume later. One release at a time per destination keeps the order. Returns
    the number of releases started.
    """
    moves = 0
    held = OffsetSet.Kind.HELD
    wanted = [(row.pipe, MessageSelection(row.name, held), RATE_PER_S) for row in _leftovers()[:_LEFTOVERS_AT_ONCE]]
    for pipe in _held_before_steps()[:_LEFTOVERS_AT_ONCE]:
        admission = getattr(pipe, "admission", None)
        incoming_per_s = admission.expected_per_s if admission else rates_of([pipe.id], timezone.now())[pipe.id]
        rate = min(MOST_RATE_PER_S, max(RATE_PER_S, release_rate_per_s(incoming_per_s)))
        wanted.append(
            (pipe, MessageSelection("", held, admitted=admission.share if admission else ALL_KEYS_PERCENT), rate)
        )
    for pipe, chosen, rate in wanted:
        try:
            start_redrive(pipe=pipe, chosen=chosen, rate_per_s=rate)
        except NothingToRedriveError:
            continue  # a concurrent release took the messages
        moves += 1
    return moves


def _leftovers() -> QuerySet[Destination]:
    # Messages of a removed destination are released as well: transmit cancels them, so the ledger accounts for them.
    rows = Destination.objects.filter(
        _left_over(pipe_id=OuterRef("pipe_id"), destination=OuterRef("name")),
        state__in=[Destination.State.ACTIVE, Destination.State.REMOVED],
    ).exclude(pipe__state=Pipe.State.PAUSED)
    return rows.select_related("pipe").order_by("id")


def _held_before_steps() -> QuerySet[Pipe]:
    """Return pipes with messages that are held before their steps although their keys are admitted."""
    admitted = LPad(Cast(Coalesce(OuterRef("admission__share"), ALL_KEYS_PERCENT), CharField()), 3, Value("0"))
    rows = Pipe.objects.filter(_left_over(pipe_id=OuterRef("id"), destination=Value(""), cause__lte=admitted))
    rows = rows.exclude(state=Pipe.State.PAUSED).exclude(id__in=held_for_order().values("pipe"))
    return rows.select_related("admission").order_by("id")


def _left_over(*, cause__lte: Combinable | None = None, **where: OuterRef | Value) -> Q:
    """Return the condition that messages are held and no release is in progress."""
    held = OffsetSet.objects.filter(**where, kind=OffsetSet.Kind.HELD, count__gt=0)
    if cause__lte is not None:
        held = held.filter(cause__lte=cause__lte)
    busy = Redrive.objects.filter(**where, what=What.RELEASE, state__in=Redrive.UNDER_WAY, probe=False)
    return Q(Exists(held)) & ~Q(Exists(busy))


def _finish(move: Redrive, now: datetime) -> None:
    aborted = move.state == State.ABORTING or bool(move.error)  # a lane that reports an error has stopped
    move.state = State.ABORTED if aborted else State.DONE
    move.finished_at = now
    move.version += 1  # published once more, without its offsets
    back = put_back(move) if aborted else 0
    log.info("redrive ended", move=move.id, state=move.state, moved=move.moved, skipped=move.skipped, put_back=back)


def _why_nothing(pipe: Pipe, chosen: MessageSelection) -> str:
    if chosen.kind == OffsetSet.Kind.DEAD and unready(pipe_id=pipe.id, chosen=chosen):
        return UNREADY if chosen.destination else PARTS
    where = chosen.destination or "The pipe"  # messages that ended in the steps have no destination
    return f"{where} has no such message, or it is already being sent. Preview your selection."


def _check(pipe: Pipe, chosen: MessageSelection, rate_per_s: float) -> None:
    if chosen.kind == OffsetSet.Kind.DEAD and not chosen.destination and pipe.state == Pipe.State.PAUSED:
        raise PipePausedError(f"{pipe.name} is paused and would hold these events. Resume it first.")
    if not 0 < rate_per_s <= MOST_RATE_PER_S:
        raise InvalidValue("rate_per_s", f"needs more than 0 and at most {MOST_RATE_PER_S:.0f}")
    if len(chosen.ids) > MOST_IDS:
        raise InvalidValue("ids", f"needs at most {MOST_IDS} ids, got {len(chosen.ids)}")
    if chosen.kind == OffsetSet.Kind.HELD and chosen.ids and _keeps_order(pipe, chosen.destination):
        raise InvalidValue(
            "ids", f"{chosen.destination} keeps the order of each key: select by key or by time, not by id"
        )
    if chosen.since and chosen.until and chosen.since >= chosen.until:
        raise InvalidValue("until", "needs a time after `since`")


def _keeps_order(pipe: Pipe, destination: str) -> bool:
    return Destination.objects.filter(pipe=pipe, name=destination, config__ordered=True).exists()
