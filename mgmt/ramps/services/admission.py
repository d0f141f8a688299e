"""Services of a pipe's admission. The Provisioner publishes the rows; lanes keep the order of each key."""

from datetime import datetime

import structlog
from django.db import transaction
from django.db.models import QuerySet

from dataplane.causes import Cause
from dataplane.names import ENTRANCE
from mgmt.alerts.failure_sample import sample_of
from mgmt.alerts.services.alerts import FailureGroup, note_failures
from mgmt.audit.services import record
from mgmt.cells.services.control import note
from mgmt.deliveries.services.redrives import cancel_redrive
from mgmt.errors import AdmissionCompleteError
from mgmt.models import Admission, ControlAction, DeadLetter, Redrive, User
from mgmt.pipes.services.publishing import republish_pipe

log = structlog.get_logger(__name__)


def begin_step(*, pipe_id: str, now: datetime) -> bool:
    """Start the clock of the current step, as traffic has arrived. Returns False if it was started before."""
    return under_way(pipe_id).filter(step_at=None).update(step_at=now) == 1


@transaction.atomic
def raise_admission(*, pipe_id: str, of_share: int, share: int, now: datetime) -> bool:
    """Raise the admitted share; its held messages are released automatically. Returns False if the row has changed."""
    if not under_way(pipe_id).filter(share=of_share, held_at=None).update(share=share, step_at=now, reason=""):
        return False
    republish_pipe(pipe_id=pipe_id)
    log.info("admission raised", pipe=pipe_id, share=share)
    return True


@transaction.atomic
def lower_admission(*, pipe_id: str, of_share: int, share: int, reason: str, now: datetime) -> bool:
    """Lower the admitted share and hold it there until a person resumes it. Returns False if the row has changed.

    Messages that are already in the pipe's steps are still delivered. Messages that a running release has not reached
    are put back on hold. An alert is opened.
    """
    words = f"{reason}; {share} % of the keys are admitted now, the rest is held"
    changed = {"share": share, "held_at": now, "held_by": None, "reason": words[:300]}
    if not under_way(pipe_id).filter(share=of_share, held_at=None).update(**changed):
        return False
    for move in Redrive.objects.filter(pipe=pipe_id, destination="", state=Redrive.State.RUNNING):
        cancel_redrive(move=move)
    republish_pipe(pipe_id=pipe_id)
    sample = sample_of(DeadLetter(node=ENTRANCE, cause=Cause.ADMISSION, detail=words[:300]), None)
    note_failures(failures=[FailureGroup(pipe_id, "", Cause.ADMISSION, 0, now, sample, suspended=True)], now=now)
    log.warning("admission lowered", pipe=pipe_id, share=share, reason=reason)
    return True


@transaction.atomic
def end_admission(*, pipe_id: str, now: datetime) -> bool:
    """End the admission: the pipe admits all keys. Returns False if the row has changed."""
    if not under_way(pipe_id).filter(held_at=None).update(ended_at=now, reason=""):
        return False
    republish_pipe(pipe_id=pipe_id)
    return True


@transaction.atomic
def hold_admission(*, admission: Admission, by: User, now: datetime) -> bool:
    """Hold the admission at its share. Returns False if it was held already. Raises AdmissionCompleteError."""
    held = under_way(admission.pipe_id).filter(held_at=None).update(held_at=now, held_by=by)
    return _steered(admission, "hold-admission", held, by, now)


@transaction.atomic
def resume_admission(*, admission: Admission, by: User, now: datetime) -> bool:
    """Continue a held admission from its share. Returns False if it was not held. Raises AdmissionCompleteError."""
    held = under_way(admission.pipe_id).exclude(held_at=None)
    resumed = held.update(held_at=None, held_by=None, reason="", step_at=now)
    return _steered(admission, "resume-admission", resumed, by, now)


def annotate_admission(*, pipe_id: str, reason: str) -> None:
    """Store what the admission waits for."""
    under_way(pipe_id).update(reason=reason[:300])


def under_way(pipe_id: str) -> QuerySet[Admission]:
    """Return the pipe's admission as a query set; empty if it has ended."""
    return Admission.objects.filter(pipe=pipe_id, ended_at=None)


def _steered(admission: Admission, action: str, changed: int, by: User, now: datetime) -> bool:
    admission.refresh_from_db()
    if admission.ended_at is not None:
        raise AdmissionCompleteError(f"{admission.pipe.name} admits all of its keys already.")
    if changed:
        pipe = admission.pipe
        outcome = ControlAction.Outcome.DONE
        held = "admission.held" if action == "hold-admission" else "admission.resumed"
        record(pipe=pipe, by=by, action=held, after={"share": admission.share})
        note("provision", action, outcome=outcome, at=now, cell=pipe.cell_id, pipe=pipe.id, author=by)
    return changed == 1
