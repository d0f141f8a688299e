"""Pausing the controllers, and the audit of what was done to cells and pipes."""

from datetime import datetime
from typing import Any, Final

import structlog
from django.db import IntegrityError, transaction
from django.db.models import Q

from mgmt.models import Cell, ControlAction, Controller, Pause, User
from mgmt.services.errors import InvalidValue, PausedAlready

LONGEST: Final = 200
log = structlog.get_logger(__name__)


def pause_controller(
    *, controller: str, cell: Cell | None, reason: str, until: datetime | None, by: User, now: datetime
) -> Pause:
    """Keep the controller from changing `cell`, or any cell, from now on; what it holds a lease for it ends first.

    Raises InvalidValue, and PausedAlready if somebody else's pause of the same is open.
    """
    reason = reason.strip()
    if controller not in Controller.values:
        raise InvalidValue("controller", f"needs one of {', '.join(Controller.values)}, got {controller!r}")
    if not 1 <= len(reason) <= LONGEST:
        raise InvalidValue("reason", f"needs 1 to {LONGEST} characters: others will ask why")
    if until is not None and until <= now:
        raise InvalidValue("until", "needs a time to come")
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
            raise PausedAlready(
                f"{Controller(controller).label} is paused there already. End that pause first."
            ) from exc
        _note(pause, "pause", by, now, reason)
    log.info("controller paused", controller=controller, cell=pause.cell_id, by=by.username, reason=reason)
    return pause


def end_pause(*, pause: Pause, by: User, now: datetime) -> bool:
    """Let the controller go on. False if the pause was over already."""
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
    outcome: str,
    at: datetime,
    cell: str | None = None,
    pipe: str | None = None,
    reason: str = "",
    author: User | None = None,
    detail: dict[str, Any] | None = None,
) -> ControlAction:
    """Write the audit's row of one thing that was done or refused."""
    return ControlAction.objects.create(
        at=at,
        controller=controller,
        cell_id=cell,
        pipe_id=pipe,
        action=action,
        outcome=outcome,
        reason=reason[:300],
        author=author,
        detail=detail or {},
    )


def _note(pause: Pause, action: str, by: User, now: datetime, reason: str) -> None:
    what = f"{action}-{pause.controller}"
    note(ControlAction.PERSON, what, outcome="done", at=now, cell=pause.cell_id, reason=reason, author=by)
