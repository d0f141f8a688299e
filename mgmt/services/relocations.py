"""Moving a pipe to another cell: asked for by a person, done step by step by the Provisioner."""

from datetime import datetime
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import F

from mgmt.models import (
    Admission,
    Cell,
    ControlAction,
    LaneSignal,
    Move,
    Pipe,
    PipeRevision,
    Relocation,
    Topic,
    User,
)
from mgmt.provisioning.cell_queries import query_in_use
from mgmt.queries.pipes import destinations_in_use, must_keep_order, specs_in_use
from mgmt.services.control import note
from mgmt.services.errors import InvalidValue, NotMovable, RelocationUnderWay
from mgmt.services.publishing import republish_pipe

LONGEST: Final = 200
State = Relocation.State
log = structlog.get_logger(__name__)


@transaction.atomic
def request_relocation(*, pipe: Pipe, target: Cell, reason: str, by: User | None, now: datetime) -> Relocation:
    """Ask that the pipe be moved. Raises InvalidValue, NotMovable, RelocationUnderWay."""
    reason = reason.strip()
    pipe = Pipe.objects.select_for_update(no_key=True).get(id=pipe.id)
    if not 1 <= len(reason) <= LONGEST:
        raise InvalidValue("reason", f"needs 1 to {LONGEST} characters: others will ask why")
    if pipe.cell_id in (None, target.id):
        raise InvalidValue("cell", "needs a cell other than the pipe's, which has been placed")
    if under_way := pipe.relocations.filter(state__in=Relocation.UNDER_WAY).first():
        raise RelocationUnderWay(f"{pipe.name} is being moved to {under_way.target_id} already.")
    if why := why_unfit(pipe, target.id):
        raise NotMovable(f"{pipe.name} cannot be moved: {why}.")
    row = Relocation.objects.create(
        pipe=pipe, source_id=str(pipe.cell_id), target=target, reason=reason, by=by, asked_at=now
    )
    _note(row, ("move-pipe", "asked"), now, reason=reason, by=by)
    return row


@transaction.atomic
def give_up_relocation(*, relocation: Relocation, says: str, now: datetime, by: User | None = None) -> bool:
    """End one that has not been switched; False if it has, or is over."""
    mine = Relocation.objects.filter(id=relocation.id, state=State.REQUESTED)
    if not mine.update(state=State.GIVEN_UP, says=says[:300], finished_at=now):
        return False
    republish_pipe(pipe_id=relocation.pipe_id)  # the target need hold nothing
    _note(relocation, ("move-pipe", "given up"), now, reason=says, by=by)
    return True


@transaction.atomic
def hold_at_target(*, relocation: Relocation, now: datetime) -> bool:
    """Have the target hold what will come to it: the pipe keeps an order, and the source still has earlier messages.

    Nothing comes there before the switch, which waits until all of its lanes know it.
    """
    mine = Relocation.objects.filter(id=relocation.id, state=State.REQUESTED, held_at=None)
    if not mine.update(held_at=now):
        return False
    republish_pipe(pipe_id=relocation.pipe_id)
    return True


@transaction.atomic
def switch_pipe(*, relocation: Relocation, now: datetime) -> bool:
    """requested -> draining: the pipe's record, at its next version, names the target. False if that may not be now."""
    row = Relocation.objects.select_for_update().get(id=relocation.id)
    if row.state != State.REQUESTED or why_busy(row.pipe) or why_unfit(row.pipe, row.target_id):
        return False
    if row.held_at is None and must_keep_order(row.pipe):
        return False
    _place(row)
    Relocation.objects.filter(id=row.id).update(state=State.DRAINING, switched_at=now, says="")
    _note(row, ("switch-pipe", "done"), now, reason=row.reason)
    return True


@transaction.atomic
def turn_back_relocation(*, relocation: Relocation, why: str, now: datetime) -> bool:
    """draining -> turned back: new events go where they went before, and what the target has is drained."""
    mine = Relocation.objects.filter(id=relocation.id, state=State.DRAINING)
    if not mine.update(state=State.TURNED_BACK, says=why[:300], finished_at=now):
        return False
    back = Relocation.objects.create(
        pipe_id=relocation.pipe_id,
        source_id=relocation.target_id,
        target_id=relocation.source_id,
        state=State.DRAINING,
        reason=why[:300],
        asked_at=now,
        switched_at=now,
        back_of=relocation,
    )
    _place(back)
    _note(back, ("switch-pipe", "turned back"), now, reason=why)
    return True


@transaction.atomic
def finish_relocation(*, relocation: Relocation, now: datetime) -> bool:
    """draining -> done: nothing of the pipe is queued on the source any more."""
    mine = Relocation.objects.filter(id=relocation.id, state=State.DRAINING)
    if not mine.update(state=State.DONE, says="", finished_at=now):
        return False
    republish_pipe(pipe_id=relocation.pipe_id)
    _note(relocation, ("move-pipe", "done"), now)
    return True


def why_unfit(pipe: Pipe, target: str = "") -> str:
    """Why the pipe cannot be moved there, or anywhere, as it is; "" if it can."""
    if Cell.objects.filter(id=target, dedicated_to__isnull=False).exclude(dedicated_to=pipe.tenant_id).exists():
        return f"cell {target} is kept for another tenant"
    if query := query_in_use(specs_in_use(pipe), destinations_in_use(pipe)):
        return f"{query}, and what its query knows stays in the cell"
    return _same_generation(str(pipe.cell_id), target)


def why_busy(pipe: Pipe) -> str:
    """What must end first; "" if nothing."""
    if pipe.revisions.filter(state__in=["requested", "ramping"]).exists():
        return "waiting for a revision of the pipe that is not live yet"
    if not pipe.revisions.filter(state=PipeRevision.State.LIVE).exists():
        return "waiting for a live revision of the pipe"
    if pipe.moves.filter(state__in=Move.UNDER_WAY).exists():
        return "waiting for the end of a release or redrive"
    if Admission.objects.filter(pipe=pipe, ended_at=None).exists():
        return "waiting until the pipe is let in with all of its keys: what is held of them is on its cell"
    return ""


def _same_generation(source: str, target: str) -> str:
    """Cells of before generations were counted over all of them give the same position to two messages."""
    of_both = Topic.objects.filter(cell__in=[source, target]).values_list("cell", "generation").distinct()
    generations = [generation for _, generation in of_both]
    if both := {one for one in generations if generations.count(one) > 1}:
        return f"the topics of {source} and {target} share generation {max(both)}, so positions would be given twice"
    return ""


def _place(row: Relocation) -> None:
    Pipe.objects.filter(id=row.pipe_id).update(cell=row.target_id, version=F("version") + 1)
    LaneSignal.objects.filter(pipe_id=row.pipe_id).delete()  # what lanes of one cell say is no news of the other's
    log.info("pipe switched", pipe=row.pipe_id, source=row.source_id, target=row.target_id)


def _note(row: Relocation, what: tuple[str, str], now: datetime, *, reason: str = "", by: User | None = None) -> None:
    """`what`: action and outcome. Once for each of the two cells, so that the page of either has it."""
    controller, (action, outcome) = (ControlAction.PERSON if by else "provision"), what
    said: dict[str, Any] = {"outcome": outcome, "reason": reason, "author": by, "at": now, "pipe": row.pipe_id}
    for cell in (row.source_id, row.target_id):
        note(controller, action, cell=cell, detail={"from": row.source_id, "to": row.target_id}, **said)
