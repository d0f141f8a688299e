"""Services of the controllers: pauses, and entries of the control audit."""

from datetime import datetime
from typing import Any, Final

import structlog
from django.db import IntegrityError, transaction
from django.db.models import Q

from mgmt.errors import AlreadyPausedError, InvalidValue
from mgmt.models import Cell, ControlAction, Controller, Pause, User

LONGEST: Final = 200
log = structlog.get_logger(__name__)


def pause_controller(
    *, controller: str, cell: Cell | None, reason: str, until: datetime | None, by: User, now: datetime
) -> Pause:
    """Pause the controller on `cell`, or on all cells (None). A change under a lease that it holds is still completed.

    `until`: None for a pause without end. Raises InvalidValue; AlreadyPausedError if a pause of the same controller and
    cell is open.
    """
    reason = reason.strip()
    if controller not in Controller.values:
        raise InvalidValue("controller", f"needs one of {', '.join(Controller.values)}, got {controller!r}")
    if not 1 <= len(reason) <= LONGEST:
        raise InvalidValue("reason", f"needs 1 to {LONGEST} characters; the control audit shows it")
    if until is not None and until <= now:
        raise InvalidValue("until", "needs a time in the future")
    with transaction.atomic():
        over = Pause.objects.filter(controller=controller, cell=cell, ended_at=None, until__lte=now)
        for one in over:
            Pause.objects.filter(id=one.id).update(ended_at=one.until)
        try:
            with transaction.atomic():
                pause = Pause.objects.create(
                    controller=controller, cell=cell, reason=reason, until=until, by=by, since=now
                )
        except IntegrityError as exc:
            raise AlreadyPausedError(
                f"{Controller(controller).label} is already paused there. End that pause first."
            ) from exc
        _note(pause, "pause", by, now, reason)
    log.info("controller paused", controller=controller, cell=pause.cell_id, by=by.username, reason=reason)
    return pause


def resume_controller(*, pause: Pause, by: User, now: datetime) -> bool:
    """End a pause. Returns False if it had ended or expired already."""
    with transaction.atomic():
        still = Pause.objects.filter(Q(until=None) | Q(until__gt=now), id=pause.id, ended_at=None)
        if not still.update(ended_at=now, ended_by=by):
            return False
        _note(pause, "resume", by, now, pause.reason)
    log.info("controller resumed", controller=pause.controller, cell=pause.cell_id, by=by.username)
    return True


def note(
    controller: str,
    action: str,
    *,
    outcome: ControlAction.Outcome,
    at: datetime,
    cell: str | None = None,
    pipe: str | None = None,
    refusal: str = "",
    reason: str = "",
    author: User | None = None,
    detail: dict[str, Any] | None = None,
) -> ControlAction:
    """Add an entry to the control audit: a change that was made or refused. `reason` is cut to 300 characters.

    refusal: type of the reason of a refusal, one of ControlAction.Refusal; "" for all other outcomes
    """
    return ControlAction.objects.create(
        at=at,
        controller=controller,
        cell_id=cell,
        pipe_id=pipe,
        action=action,
        outcome=outcome,
        refusal=refusal,
        reason=reason[:300],
        author=author,
        detail=detail or {},
    )


def _note(pause: Pause, action: str, by: User, now: datetime, reason: str) -> None:
    what = f"{action}-{pause.controller}"
    outcome = ControlAction.Outcome.DONE
    note(ControlAction.PERSON, what, outcome=outcome, at=now, cell=pause.cell_id, reason=reason, author=by)
