"""What the Deployer's actions do. Each may be done again, by two at once, and be cut short anywhere.

A cell is given a release in one transaction with its lease: killed before its end, nothing has happened. The
application follows by itself: the Provisioner submits what the row says, under an epoch of its own, and the keeper
drains the one before.
"""

from datetime import datetime
from typing import Final

import msgspec
import structlog
from django.db import transaction
from django.db.models import F

from controlplane.deployer.decide import Action, Begin, End, Finish, Return, Returned, Say, Turn, Watch
from controlplane.deployer.health import health_before, health_since
from controlplane.deployer.look import lease_of, pids
from controlplane.interlocks import Refusal
from controlplane.leases import LeaseLostError, fenced, give_back, keep, note, take
from mgmt.models import Cell, Lease, Rollout, RolloutStep
from mgmt.services import roll_back
from mgmt.services.destinations import send_again

CONTROLLER: Final = "deploy"
State = RolloutStep.State
log = structlog.get_logger(__name__)


def act(action: Action, now: datetime) -> None:
    """Do one action; nothing of it where somebody has taken the cell meanwhile: the next tick looks anew."""
    try:
        _act(action, now)
    except LeaseLostError as exc:
        log.info("not now", action=type(action).__name__, reason=str(exc))


def _act(action: Action, now: datetime) -> None:
    match action:
        case Begin():
            begin(step=_step(action.step), now=now)
        case Watch():
            _move(action.step, State.STARTING, State.WATCHING, up_at=now, why="")
        case Finish():
            let_go(step=_step(action.step), state=State.DONE, now=now)
        case Turn():
            turn(step=_step(action.step), why=action.why, now=now)
        case Return():
            go_back(step=_step(action.step), now=now)
        case Returned():
            returned(step=_step(action.step), now=now)
        case End():
            end(rollout=action.rollout, state=action.state, now=now)
        case Say():
            say(step=_step(action.step), why=action.why, now=now)


def remember(step: RolloutStep, now: datetime) -> None:
    """Keep the step's lease, and note which processes its lanes had and how they did: what a tick alone cannot see."""
    if lease := lease_of(step):
        keep(lease, now)
    lanes = dict(step.lanes)
    for writer, pid in pids(step.cell).items():
        lanes[writer] = sorted({*lanes.get(writer, []), pid})
    found = msgspec.to_builtins(health_since(step.cell_id, step.up_at, now)) if step.up_at else {}
    if (lanes, found) != (step.lanes, step.found):
        RolloutStep.objects.filter(id=step.id, token=step.token).update(lanes=lanes, found=found)


def begin(*, step: RolloutStep, now: datetime) -> None:
    """waiting -> starting: the cell has the new release, and the lease is ours."""
    before = msgspec.to_builtins(health_before(step.cell_id, now))
    release = step.rollout.release_id
    with transaction.atomic():
        lease = take(step.cell_id, CONTROLLER, f"release {release} takes the place of {step.came_from_id}", now)
        if isinstance(lease, Refusal):
            return  # it changed its mind since it was looked at: the next tick says why
        fresh = {"token": lease.token, "began_at": now, "touched_at": now, "before": before, "why": ""}
        if _move(step.id, State.WAITING, State.STARTING, **fresh):
            _give(lease, release, now, "give-release")


def go_back(*, step: RolloutStep, now: datetime) -> None:
    """-> returning: the cell has what it had, under the lease that we hold or one that heeds only other holders."""
    why = f"back to release {step.came_from_id}"
    with transaction.atomic():
        lease = lease_of(step) or take(step.cell_id, CONTROLLER, why, now, protective=True)
        if isinstance(lease, Refusal):
            return
        fresh = {"token": lease.token, "touched_at": now, "up_at": None, "lanes": {}, "why": ""}
        if _move(step.id, step.state, State.RETURNING, **fresh):
            _give(lease, step.came_from_id, now, "return-release")


def returned(*, step: RolloutStep, now: datetime) -> None:
    """-> returned: the cell does what it did before, and sends again where the new release made destinations stop."""
    with transaction.atomic():
        if not let_go(step=step, state=State.RETURNED, now=now) or not step.began_at:
            return
        again = send_again(pipes=step.cell.pipes.all(), since=step.began_at)
        if again:
            detail = {"resumed": sorted(f"{row.pipe_id} {row.name}" for row in again)}
            note(CONTROLLER, "resume-destinations", outcome="done", at=now, cell=step.cell_id, detail=detail)
            log.info("destinations resumed", cell=step.cell_id, resumed=len(again))


def let_go(*, step: RolloutStep, state: str, now: datetime) -> bool:
    """The step has ended: others may change the cell again. False if it had ended already."""
    with transaction.atomic():
        ended = _move(step.id, step.state, state, ended_at=now, why="")
        if ended and (lease := lease_of(step)):
            give_back(lease)
        return ended


def turn(*, step: RolloutStep, why: str, now: datetime) -> None:
    """The new release is bad on this step's cell: every cell gets back what it had."""
    RolloutStep.objects.filter(id=step.id).update(why=why[:300])
    roll_back(rollout=step.rollout, why=f"cell {step.cell_id}: {why}", author=None, now=now)


def end(*, rollout: int, state: str, now: datetime) -> None:
    """Nothing is left to do."""
    with transaction.atomic():
        ours = Rollout.objects.filter(id=rollout, state__in=Rollout.OPEN)
        if ours.update(state=state, ended_at=now):
            row = Rollout.objects.get(id=rollout)
            note(CONTROLLER, "rollout", outcome=state, at=now, reason=row.why, detail={"release": row.release_id})
            log.info("rollout ended", release=row.release_id, state=state, why=row.why)


def say(*, step: RolloutStep, why: str, now: datetime) -> None:
    """Say what it waits for; that it was refused the cell goes to the audit once."""
    if step.state == State.WAITING and not step.why:
        note(CONTROLLER, "give-release", outcome="refused", at=now, cell=step.cell_id, reason=why)
    RolloutStep.objects.filter(id=step.id, state=step.state).update(why=why[:300])


def _step(id_: int) -> RolloutStep:
    return RolloutStep.objects.select_related("cell", "rollout").get(id=id_)


def _move(step: int, old: str, new: str, **fields: object) -> bool:
    return RolloutStep.objects.filter(id=step, state=old).update(state=new, **fields) == 1


def _give(lease: Lease, release: str, now: datetime, action: str) -> None:
    """The cell's row says what is to run; fenced, like all that a holder writes."""
    with fenced(lease):
        Cell.objects.filter(id=lease.cell_id).update(release=release, epoch=F("epoch") + 1, version=F("version") + 1)
    note(CONTROLLER, action, outcome="done", at=now, cell=lease.cell_id, detail={"release": release})
    log.info("release given", cell=lease.cell_id, release=release, action=action)
