"""Executes the Deployer's actions. Each is idempotent, safe to run twice at once, and safe to interrupt anywhere.

A cell gets a release in one transaction with its lease: if that is killed before its end, nothing has changed. The
application follows automatically: the Provisioner submits the release of the row, under a new epoch, and the keeper
drains the earlier application.
"""

from datetime import datetime
from typing import Final

import msgspec
import structlog
from django.db import transaction
from django.db.models import F

from controlplane.deployer.decide import (
    AnnotateStep,
    DeployerAction,
    FinishRevert,
    FinishRollout,
    FinishStep,
    ObserveStep,
    ReverseRollout,
    RevertStep,
    StartStep,
)
from controlplane.deployer.health import health_before, health_since, with_responses
from controlplane.deployer.snapshot import CellErrorRate
from controlplane.deployer.snapshot_queries import heartbeats_of, lease_of, pids
from controlplane.interlocks import Refusal, RefusalKind, name_of
from controlplane.leases import LeaseLostError, acquire, fenced, note, release, renew
from dataplane.names import INGEST_GROUP
from mgmt.deliveries.services.destinations import reactivate_destination
from mgmt.models import Cell, ControlAction, Heartbeat, Lease, Pipe, Rollout, RolloutStep
from mgmt.services import roll_back

CONTROLLER: Final = "deploy"
RolloutStepState = RolloutStep.State
log = structlog.get_logger(__name__)


class AssignedReleases(msgspec.Struct, frozen=True):
    """Release of a cell or of ingest's replicas. `canary`: of the first replica, if it has another."""

    release: str
    canary: str | None = None


def act(action: DeployerAction, now: datetime) -> None:
    """Execute one action, or nothing of it if another controller has taken the cell: the next tick decides again."""
    try:
        _act(action, now)
    except LeaseLostError as exc:
        log.info("lease lost", action=type(action).__name__, reason=str(exc))


def _act(action: DeployerAction, now: datetime) -> None:
    match action:
        case StartStep():
            start_step(step=_step(action.step), now=now)
        case ObserveStep():
            _transition(action.step, RolloutStepState.STARTING, RolloutStepState.WATCHING, up_at=now, why="")
        case FinishStep():
            release_cell(step=_step(action.step), state=RolloutStepState.DONE, now=now)
        case ReverseRollout():
            reverse_rollout(step=_step(action.step), why=action.why, now=now)
        case RevertStep():
            revert_step(step=_step(action.step), now=now)
        case FinishRevert():
            finish_revert(step=_step(action.step), now=now)
        case FinishRollout():
            finish_rollout(rollout=action.rollout, state=action.state, now=now)
        case AnnotateStep():
            annotate_step(step=_step(action.step), why=action.why, refusal=action.refusal, now=now)


def remember(step: RolloutStep, now: datetime) -> None:
    """Renew the step's lease, and store its lanes' processes and error rate: no single tick can see all of these."""
    if lease := lease_of(step):
        renew(lease, now)
    lanes = dict(step.lanes)
    for writer, pid in pids(step).items():
        lanes[writer] = sorted({*lanes.get(writer, []), pid})
    found = (
        msgspec.to_builtins(_with_responses(step, health_since(step.cell_id, step.up_at, now))) if step.up_at else {}
    )
    if (lanes, found) != (step.lanes, step.found):
        RolloutStep.objects.filter(id=step.id, token=step.token).update(lanes=lanes, found=found)


def _with_responses(step: RolloutStep, rate: CellErrorRate) -> CellErrorRate:
    """Return ingest's rate with the responses of the replicas that have the step's release; other cells have none."""
    if step.cell_id != INGEST_GROUP:
        return rate
    ours = heartbeats_of(step)
    names = [beat.writer for beat in ours]
    return with_responses(rate, ours, Heartbeat.objects.filter(cell="", kind=INGEST_GROUP).exclude(writer__in=names))


def start_step(*, step: RolloutStep, now: datetime) -> None:
    """Move waiting -> starting: give the cell the new release, under a lease that the step keeps."""
    before = msgspec.to_builtins(_with_responses(step, health_before(step.cell_id, now)))
    release = step.rollout.release_id
    with transaction.atomic():
        what = f"release {release} replaces {step.came_from_id}"
        lease = acquire(step.cell_id, CONTROLLER, what, now, repairs=step.rollout.is_repair)
        if isinstance(lease, Refusal):
            return  # the cell's state has changed since the snapshot: the next tick stores the reason
        fields = {"token": lease.token, "began_at": now, "touched_at": now, "before": before, "why": ""}
        if _transition(step.id, RolloutStepState.WAITING, RolloutStepState.STARTING, **fields):
            _set_release(lease, _new_releases(step), now, "give-release")


def revert_step(*, step: RolloutStep, now: datetime) -> None:
    """Move to returning: give the cell its earlier release, under the step's lease or a protective one."""
    why = f"return to release {step.came_from_id}"
    with transaction.atomic():
        lease = lease_of(step) or acquire(step.cell_id, CONTROLLER, why, now, protective=True)
        if isinstance(lease, Refusal):
            return
        fields = {"token": lease.token, "touched_at": now, "up_at": None, "lanes": {}, "why": ""}
        if _transition(step.id, step.state, RolloutStepState.RETURNING, **fields):
            _set_release(lease, _former_releases(step), now, "return-release")


def finish_revert(*, step: RolloutStep, now: datetime) -> None:
    """Move to returned, and reactivate the cell's destinations that stopped while it had the new release."""
    with transaction.atomic():
        if not release_cell(step=step, state=RolloutStepState.RETURNED, now=now) or not step.began_at:
            return
        pipes = Pipe.objects.all() if step.cell_id == INGEST_GROUP else step.cell.pipes.all()
        resumed = reactivate_destination(pipes=pipes, since=step.began_at)
        if resumed:
            detail = {"resumed": sorted(f"{row.pipe_id} {row.name}" for row in resumed)}
            note(
                CONTROLLER,
                "resume-destinations",
                outcome=ControlAction.Outcome.DONE,
                at=now,
                cell=step.cell_id,
                detail=detail,
            )
            log.info("destinations resumed", cell=step.cell_id, resumed=len(resumed))


def release_cell(*, step: RolloutStep, state: str, now: datetime) -> bool:
    """End the step and release its lease, so that others may change the cell. Return False if it had ended already."""
    with transaction.atomic():
        ended = _transition(step.id, step.state, state, ended_at=now, why="")
        if ended and (lease := lease_of(step)):
            release(lease)
        return ended


def reverse_rollout(*, step: RolloutStep, why: str, now: datetime) -> None:
    """Turn the rollout back because the release is bad on this step's cell: every cell gets its earlier release."""
    RolloutStep.objects.filter(id=step.id).update(why=why[:300])
    roll_back(rollout=step.rollout, why=f"{name_of(step.cell_id)}: {why}", author=None, now=now)


def finish_rollout(*, rollout: int, state: str, now: datetime) -> None:
    """End the rollout in `state`, unless it has ended already."""
    with transaction.atomic():
        open_rollout = Rollout.objects.filter(id=rollout, state__in=Rollout.OPEN)
        if open_rollout.update(state=state, ended_at=now):
            row = Rollout.objects.get(id=rollout)
            outcome = ControlAction.Outcome(state)
            note(CONTROLLER, "rollout", outcome=outcome, at=now, reason=row.why, detail={"release": row.release_id})
            log.info("rollout ended", release=row.release_id, state=state, why=row.why)


def annotate_step(*, step: RolloutStep, why: str, refusal: RefusalKind | None, now: datetime) -> None:
    """Store what the step waits for; a refusal for another type of reason than before is recorded in the audit."""
    if refusal and not _is_recorded(step, refusal):
        outcome = ControlAction.Outcome.REFUSED
        note(CONTROLLER, "give-release", outcome=outcome, at=now, cell=step.cell_id, refusal=refusal, reason=why)
    RolloutStep.objects.filter(id=step.id, state=step.state).update(why=why[:300])


def _is_recorded(step: RolloutStep, refusal: RefusalKind) -> bool:
    """Return True if the newest entry about the step's cell is this refusal, whose words may change at each tick."""
    entries = ControlAction.objects.filter(controller=CONTROLLER, cell=step.cell_id, at__gte=step.rollout.created_at)
    newest = entries.order_by("-id").first()
    return newest is not None and newest.refusal == refusal


def _step(id_: int) -> RolloutStep:
    return RolloutStep.objects.select_related("cell", "rollout").get(id=id_)


def _transition(step: int, old: str, new: str, **fields: object) -> bool:
    return RolloutStep.objects.filter(id=step, state=old).update(state=new, **fields) == 1


def _new_releases(step: RolloutStep) -> AssignedReleases:
    """Return the releases that the step gives its cell."""
    new, old = step.rollout.release_id, step.came_from_id
    return AssignedReleases(old, canary=new) if step.is_canary else AssignedReleases(new)


def _former_releases(step: RolloutStep) -> AssignedReleases:
    """Return the releases before the rollout, of all replicas: the supervisor replaces them one by one."""
    return AssignedReleases(step.came_from_id)


def _set_release(lease: Lease, releases: AssignedReleases, now: datetime, action: str) -> None:
    """Write the releases to the cell's row, fenced like all writes of a lease's holder."""
    with fenced(lease):
        Cell.with_ingest.filter(id=lease.cell_id).update(
            release=releases.release, canary=releases.canary, epoch=F("epoch") + 1, version=F("version") + 1
        )
    detail = {"release": releases.canary or releases.release} | ({"replicas": "first"} if releases.canary else {})
    note(CONTROLLER, action, outcome=ControlAction.Outcome.DONE, at=now, cell=lease.cell_id, detail=detail)
    log.info("release given", cell=lease.cell_id, action=action, **detail)
