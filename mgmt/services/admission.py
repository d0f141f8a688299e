"""Letting a pipe in by shares of its keys. The provisioner publishes what rows say; lanes keep each key's order."""

from datetime import datetime

import structlog
from django.db import transaction
from django.db.models import QuerySet

from dataplane.names import ENTRANCE
from mgmt.models import Admission, DeadLetter, Move, User
from mgmt.services.alerts import Failure, note_failures
from mgmt.services.control import note
from mgmt.services.errors import AdmissionIsOver
from mgmt.services.moves import abort_move
from mgmt.services.publishing import republish_pipe
from mgmt.services.samples import sample_of

log = structlog.get_logger(__name__)
CAUSE = "admission"


def begin_step(*, pipe_id: str, now: datetime) -> bool:
    """Traffic has come: the share's time counts from now. False if it does already."""
    return under_way(pipe_id).filter(step_at=None).update(step_at=now) == 1


@transaction.atomic
def admit_share(*, pipe_id: str, of_share: int, share: int, now: datetime) -> bool:
    """Let more in; what was held of it follows by itself. False if the row has moved meanwhile."""
    if not under_way(pipe_id).filter(share=of_share, held_at=None).update(share=share, step_at=now, reason=""):
        return False
    republish_pipe(pipe_id=pipe_id)
    log.info("admitted", pipe=pipe_id, share=share)
    return True


@transaction.atomic
def take_share_back(*, pipe_id: str, of_share: int, share: int, reason: str, now: datetime) -> bool:
    """Let less in, and go no further until a person resumes it. False if the row has moved meanwhile.

    What is on its way comes still; what a release under way has not reached goes back to where it was, and an alert
    tells people.
    """
    words = f"{reason}; {share} % are let in now, the rest is held"
    changed = {"share": share, "held_at": now, "held_by": None, "reason": words[:300]}
    if not under_way(pipe_id).filter(share=of_share, held_at=None).update(**changed):
        return False
    for move in Move.objects.filter(pipe=pipe_id, destination="", state=Move.State.RUNNING):
        abort_move(move=move)
    republish_pipe(pipe_id=pipe_id)
    sample = sample_of(DeadLetter(node=ENTRANCE, cause=CAUSE, detail=words[:300]), None)
    note_failures(failures=[Failure(pipe_id, "", CAUSE, 0, now, sample, suspended=True)], now=now)
    log.warning("taken back", pipe=pipe_id, share=share, reason=reason)
    return True


@transaction.atomic
def end_admission(*, pipe_id: str, now: datetime) -> bool:
    """Everything is let in. False if the row has moved meanwhile."""
    if not under_way(pipe_id).filter(held_at=None).update(ended_at=now, reason=""):
        return False
    republish_pipe(pipe_id=pipe_id)
    return True


@transaction.atomic
def hold_admission(*, admission: Admission, by: User, now: datetime) -> bool:
    """Let it go no further. False if it was held already. Raises AdmissionIsOver."""
    held = under_way(admission.pipe_id).filter(held_at=None).update(held_at=now, held_by=by)
    return _steered(admission, "hold-admission", held, by, now)


@transaction.atomic
def resume_admission(*, admission: Admission, by: User, now: datetime) -> bool:
    """Let it go on from the share at which it is. False if it was not held. Raises AdmissionIsOver."""
    held = under_way(admission.pipe_id).exclude(held_at=None)
    resumed = held.update(held_at=None, held_by=None, reason="", step_at=now)
    return _steered(admission, "resume-admission", resumed, by, now)


def say_of_admission(*, pipe_id: str, reason: str) -> None:
    """What it waits for."""
    under_way(pipe_id).update(reason=reason[:300])


def under_way(pipe_id: str) -> QuerySet[Admission]:
    """The pipe's, if it is not over."""
    return Admission.objects.filter(pipe=pipe_id, ended_at=None)


def _steered(admission: Admission, action: str, changed: int, by: User, now: datetime) -> bool:
    admission.refresh_from_db()
    if admission.ended_at is not None:
        raise AdmissionIsOver(f"All of {admission.pipe.name} is let in already.")
    if changed:
        pipe = admission.pipe
        note("provision", action, outcome="done", at=now, cell=pipe.cell_id, pipe=pipe.id, author=by)
    return changed == 1
