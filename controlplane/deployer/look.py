"""Reads the open rollout, and the cell whose turn it is, into a Snapshot."""

from datetime import datetime, timedelta
from math import inf
from typing import Final

import msgspec

from controlplane.deployer.decide import step_to_take
from controlplane.deployer.snapshot import CellSight, Health, Policy, RolloutView, Snapshot, StepView
from controlplane.expected_lanes import expected_lanes
from controlplane.interlocks import why_not
from controlplane.leases import cell_states
from mgmt.models import Cell, Heartbeat, Lease, Rollout, RolloutStep

FRESH_S: Final = 5.0
DRIVER: Final = "driver"


def take_snapshot(rollout: Rollout, now: datetime, policy: Policy) -> Snapshot:
    """What there is at about `now`, after `remember`. Of the cells only that of the step to take is looked at."""
    rows = {row.id: row for row in rollout.steps.select_related("cell")}
    view = RolloutView(rollout.id, rollout.release_id, rollout.state, [_step(row) for row in rows.values()])
    step = step_to_take(view)
    cells = {step.cell: _sight(rows[step.id], now)} if step else {}
    heard = Heartbeat.objects.filter(at__gte=now - timedelta(seconds=policy.silent_s)).exists()
    return Snapshot(view, cells, now, policy, blind=not heard)


def lease_of(step: RolloutStep) -> Lease | None:
    """The lease under which the step changes its cell, if it is still the step's own."""
    return Lease.objects.filter(cell=step.cell_id, token=step.token, holder="deploy").first()


def pids(cell: Cell) -> dict[str, int]:
    """The process of each lane that has reported from the application that was asked for last."""
    beats, must_report = Heartbeat.objects.filter(cell=cell.id, epoch=cell.epoch), wanted(cell)
    return {beat.writer: beat.body["pid"] for beat in beats if beat.writer in must_report}


def wanted(cell: Cell) -> list[str]:
    """Who must report: the driver, and the lanes that the cell is to have and its release knows. Nobody if it sleeps.

    One that fell asleep after it was given the new release gets back what it had as well: it wakes with that.
    """
    if cell.is_asleep:
        return []
    driver = Heartbeat.objects.filter(cell=cell.id, epoch=cell.epoch, writer=DRIVER).first()
    return [DRIVER, *expected_lanes(cell.lanes, driver.body if driver else None)]


def _step(row: RolloutStep) -> StepView:
    return StepView(
        id=row.id,
        number=row.number,
        cell=row.cell_id,
        state=row.state,
        why=row.why,
        touched_at=row.touched_at,
        up_at=row.up_at,
        before=msgspec.convert(row.before, Health),
    )


def _sight(step: RolloutStep, now: datetime) -> CellSight:
    refusal, occupied = _interlocks(step, now)
    silent = _silences(step.cell, now)
    quietest = max(silent, key=silent.__getitem__, default="")
    silent_s = silent.get(quietest, 0.0)
    return CellSight(
        refusal=refusal,
        occupied=occupied,
        missing=quietest if silent_s > FRESH_S else "",
        silent_s=silent_s,
        deaths=max((len(known) - 1 for known in step.lanes.values()), default=0),
        found=msgspec.convert(step.found, Health),
    )


def _interlocks(step: RolloutStep, now: datetime) -> tuple[str, str]:
    """Why the step's cell may not be given a release now, and why not even its old one, in words."""
    if lease_of(step) is not None:
        return "", ""
    if step.cell.is_asleep:
        return f"cell {step.cell_id} sleeps, and is woken for this first", ""
    state = cell_states(now, [step.cell_id])[step.cell_id]
    refusal, occupied = why_not("deploy", state), why_not("deploy", state, protective=True)
    return refusal.why if refusal else "", occupied.why if occupied else ""


def _silences(cell: Cell, now: datetime) -> dict[str, float]:
    """For how many seconds each of whom must report has not: for ever, if it never ran in this application."""
    running = Heartbeat.objects.filter(cell=cell.id, epoch=cell.epoch, state="running")
    heard = {beat.writer: (now - beat.at).total_seconds() for beat in running}
    return {writer: heard.get(writer, inf) for writer in wanted(cell)}
