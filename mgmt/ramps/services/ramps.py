"""Services of ramps: raise a revision's share by steps, hold it, or roll it back. The Provisioner publishes rows."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.db.models import QuerySet

from dataplane.names import ALL_KEYS_PERCENT
from mgmt.audit.services import record
from mgmt.cells.services.control import note
from mgmt.deliveries.services.destinations import reactivate_destination
from mgmt.errors import RampCompleteError
from mgmt.models import ControlAction, Pipe, PipeRevision, Ramp, RampStep, User
from mgmt.pipes.services.publishing import republish_pipe
from mgmt.pipes.services.revisions import activate_removed, adopt_live_spec, take_over

log = structlog.get_logger(__name__)
State, Outcome = PipeRevision.State, Ramp.Outcome


@transaction.atomic
def begin_ramp(*, revision: PipeRevision, share: int, now: datetime) -> bool:
    """Begin the ramp of a revision at its first share (requested -> ramping).

    Without a live revision, or with share 0, the revision takes all keys at once.
    Older revisions of the pipe that ramp end as overtaken. Returns False if the revision is not `requested` any more.
    """
    asked = PipeRevision.objects.filter(id=revision.id, state=State.REQUESTED)
    if not asked.update(state=State.RAMPING, state_reason=""):
        return False
    _overtake(revision, now)
    activate_removed(revision.pipe_id, revision.spec["destinations"])  # another one may have become live since
    stable = PipeRevision.objects.filter(pipe_id=revision.pipe_id, state=State.LIVE).first()
    if stable is not None and share:
        ramp = Ramp.objects.create(revision=revision, stable=stable, share=share, began_at=now)
        _open_step(ramp, share, now)
    republish_pipe(pipe_id=revision.pipe_id)
    log.info("ramp started", pipe=revision.pipe_id, revision=revision.number, share=share or ALL_KEYS_PERCENT)
    return True


@transaction.atomic
def raise_share(*, ramp: Ramp, share: int, figures: Mapping[str, Any], now: datetime) -> bool:
    """Begin the next step and store the `figures` of the step before. Returns False if the ramp has changed."""
    moved = Ramp.objects.filter(revision=ramp.revision_id, share__lt=share, ended_at=None, held_at=None)
    if not moved.update(share=share):
        return False
    _close_step(ramp, figures, now)
    _open_step(ramp, share, now)
    republish_pipe(pipe_id=ramp.revision.pipe_id)
    log.info("ramp step", pipe=ramp.revision.pipe_id, revision=ramp.revision.number, share=share)
    return True


@transaction.atomic
def finish_ramp(*, revision: PipeRevision, figures: Mapping[str, Any], now: datetime) -> bool:
    """Make the ramping revision live and retire the stable one. Returns False if it is not ramping, or is held."""
    ramp = Ramp.objects.filter(revision=revision).first()
    if ramp is not None:
        mine = Ramp.objects.filter(revision=revision, ended_at=None, held_at=None)
        if not mine.update(ended_at=now, outcome=Outcome.LIVE):
            return False
        _close_step(ramp, figures, now)
    return adopt_live_spec(revision=revision, now=now)


@transaction.atomic
def roll_back_ramp(
    *, ramp: Ramp, reason: str, now: datetime, by: User | None = None, figures: Mapping[str, Any] | None = None
) -> None:
    """Return all keys to the stable revision, which from now on also runs messages stamped with the other one.

    A person may do this at any time, in any state of the cell: it changes one row, and the next tick publishes it.
    Raises RampCompleteError.
    """
    words = f"rolled back at {ramp.share} % of the keys by {by.username}{': ' if reason else ''}" if by else ""
    _end(ramp, Outcome.ROLLED_BACK, reason=words + reason, now=now, by=by, figures=figures or {})
    if by is not None:
        _note(ramp, "roll-back", by, now, reason)
    _record(ramp, "ramp.rolled_back", by, reason=reason)


@transaction.atomic
def hold_ramp(*, ramp: Ramp, by: User, now: datetime) -> bool:
    """Hold the ramp at its share; it is still rolled back if it fails. Returns False if it was held already.

    Raises RampCompleteError.
    """
    held = _under_way(ramp).filter(held_at=None).update(held_at=now, held_by=by)
    ramp.refresh_from_db()
    _refuse_complete(ramp)
    if held:
        _note(ramp, "hold-ramp", by, now)
        _record(ramp, "ramp.held", by)
    return held == 1


@transaction.atomic
def resume_ramp(*, ramp: Ramp, by: User, now: datetime) -> bool:
    """Continue a held ramp. Returns False if it was not held. Raises RampCompleteError."""
    resumed = _under_way(ramp).exclude(held_at=None).update(held_at=None, held_by=None)
    ramp.refresh_from_db()
    _refuse_complete(ramp)
    if resumed:
        _note(ramp, "resume-ramp", by, now)
        _record(ramp, "ramp.resumed", by)
    return resumed == 1


def _end(
    ramp: Ramp,
    outcome: Ramp.Outcome,
    *,
    reason: str,
    now: datetime,
    by: User | None = None,
    figures: Mapping[str, Any] | None = None,
) -> None:
    ended = _under_way(ramp).update(ended_at=now, ended_by=by, outcome=outcome, reason=reason[:300])
    ramp.refresh_from_db()
    if not ended:
        raise _complete_error(ramp)
    PipeRevision.objects.filter(id=ramp.revision_id).update(state=State.FAILED, state_reason=reason[:300])
    _close_step(ramp, figures or {}, now)
    if ramp.share == ALL_KEYS_PERCENT:
        take_over(ramp.revision.pipe_id, ramp.stable.spec["destinations"])
    reactivate_destination(pipes=Pipe.objects.filter(id=ramp.revision.pipe_id), since=ramp.began_at)
    republish_pipe(pipe_id=ramp.revision.pipe_id)
    log.warning(
        "ramp ended", pipe=ramp.revision.pipe_id, revision=ramp.revision.number, outcome=outcome, share=ramp.share
    )


def _overtake(revision: PipeRevision, now: datetime) -> None:
    reason = f"superseded by revision {revision.number} before it was live"
    older = PipeRevision.objects.filter(pipe_id=revision.pipe_id, state=State.RAMPING, number__lt=revision.number)
    for row in older.select_related("ramp"):
        ramp = Ramp.objects.filter(revision=row, ended_at=None).first()
        if ramp is not None:
            _end(ramp, Outcome.OVERTAKEN, reason=reason, now=now)
    older.update(state=State.FAILED, state_reason=reason)


def _open_step(ramp: Ramp, share: int, now: datetime) -> None:
    """Open a step. At the last one, destinations adopt the revision's addresses, to test these before it is live."""
    RampStep.objects.create(ramp=ramp, share=share, began_at=now)
    if share == ALL_KEYS_PERCENT:
        take_over(ramp.revision.pipe_id, ramp.revision.spec["destinations"], remove=False)


def _close_step(ramp: Ramp, figures: Mapping[str, Any], now: datetime) -> None:
    RampStep.objects.filter(ramp=ramp, ended_at=None).update(ended_at=now, figures=dict(figures))


def _under_way(ramp: Ramp) -> QuerySet[Ramp]:
    return Ramp.objects.filter(revision=ramp.revision_id, ended_at=None)


def _refuse_complete(ramp: Ramp) -> None:
    if ramp.ended_at is not None:
        raise _complete_error(ramp)


def _complete_error(ramp: Ramp) -> RampCompleteError:
    return RampCompleteError(f"The ramp of revision {ramp.revision.number} has ended: {ramp.outcome}.")


def _record(ramp: Ramp, action: str, by: User | None, **more: str) -> None:
    after = {"share": ramp.share, **more}
    record(pipe=ramp.revision.pipe, by=by, action=action, target=ramp.revision, after=after)


def _note(ramp: Ramp, action: str, by: User, now: datetime, reason: str = "") -> None:
    pipe = ramp.revision.pipe
    detail = {"revision": ramp.revision.number, "share": ramp.share}
    note(
        ControlAction.PERSON,
        action,
        outcome=ControlAction.Outcome.DONE,
        at=now,
        cell=pipe.cell_id,
        pipe=pipe.id,
        reason=reason,
        author=by,
        detail=detail,
    )
