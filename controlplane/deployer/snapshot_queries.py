"""Reads the open rollout, and the cell of its next step, into a DeployerSnapshot."""

from datetime import datetime, timedelta
from math import inf
from typing import Final

import msgspec

from controlplane.deployer.decide import step_to_take
from controlplane.deployer.snapshot import (
    CellErrorRate,
    CellStatus,
    DeployerSnapshot,
    RolloutPolicy,
    RolloutStepView,
    RolloutView,
)
from controlplane.interlocks import Refusal, refusal_of
from controlplane.leases import cell_states
from mgmt.cells.expected_lanes import expected_lanes
from mgmt.models import Cell, Heartbeat, Lease, Rollout, RolloutStep

FRESH_S: Final = 5.0
DRIVER: Final = "driver"


def take_snapshot(rollout: Rollout, now: datetime, policy: RolloutPolicy) -> DeployerSnapshot:
    """Read the snapshot at about `now`, after `remember`. Of the cells it has only that of the step to take."""
    rows = {row.id: row for row in rollout.steps.select_related("cell")}
    view = RolloutView(rollout.id, rollout.release_id, rollout.state, [_step(row) for row in rows.values()])
    step = step_to_take(view)
    cells = {step.cell: _status(rows[step.id], now)} if step else {}
    has_heartbeat = Heartbeat.objects.filter(at__gte=now - timedelta(seconds=policy.silent_s)).exists()
    return DeployerSnapshot(view, cells, now, policy, blind=not has_heartbeat)


def lease_of(step: RolloutStep) -> Lease | None:
    """Return the lease under which the step changes its cell, or None if the step does not hold it any more."""
    return Lease.objects.filter(cell=step.cell_id, token=step.token, holder="deploy").first()


def pids(cell: Cell) -> dict[str, int]:
    """Return the pid of each expected writer that has reported from the cell's present application."""
    beats, must_report = Heartbeat.objects.filter(cell=cell.id, epoch=cell.epoch), wanted(cell)
    return {beat.writer: beat.body["pid"] for beat in beats if beat.writer in must_report}


def wanted(cell: Cell) -> list[str]:
    """Return the writers that must report: the driver and the desired lanes that the cell's release has.

    No writer of a sleeping cell must. A cell that fell asleep after it got the new release is rolled back, too: it
    wakes with its earlier release.
    """
    if cell.is_asleep:
        return []
    driver = Heartbeat.objects.filter(cell=cell.id, epoch=cell.epoch, writer=DRIVER).first()
    return [DRIVER, *expected_lanes(cell.lanes, driver.body if driver else None)]


def _step(row: RolloutStep) -> RolloutStepView:
    return RolloutStepView(
        id=row.id,
        number=row.number,
        cell=row.cell_id,
        state=row.state,
        why=row.why,
        touched_at=row.touched_at,
        up_at=row.up_at,
        before=msgspec.convert(row.before, CellErrorRate),
    )


def _status(step: RolloutStep, now: datetime) -> CellStatus:
    refusal, occupied = _interlocks(step, now)
    silences = _silences(step.cell, now)
    quietest = max(silences, key=silences.__getitem__, default="")
    silent_s = silences.get(quietest, 0.0)
    return CellStatus(
        refusal=refusal.why if refusal else "",
        refusal_kind=refusal.kind if refusal else None,
        occupied=occupied,
        missing=quietest if silent_s > FRESH_S else "",
        silent_s=silent_s,
        lane_restarts=max((len(known) - 1 for known in step.lanes.values()), default=0),
        found=msgspec.convert(step.found, CellErrorRate),
    )


def _interlocks(step: RolloutStep, now: datetime) -> tuple[Refusal | None, str]:
    """Return why the step's cell may not get a release now, and why not even its earlier one; None and "" if it may."""
    if lease_of(step) is not None:
        return None, ""
    if step.cell.is_asleep:
        return Refusal("cell-asleep", f"cell {step.cell_id} is asleep and is woken first", "when it is awake"), ""
    state = cell_states(now, [step.cell_id])[step.cell_id]
    refusal = refusal_of("deploy", state, repairs=step.rollout.is_repair)
    occupied = refusal_of("deploy", state, protective=True)
    return refusal, occupied.why if occupied else ""


def _silences(cell: Cell, now: datetime) -> dict[str, float]:
    """Return seconds since the last heartbeat of each expected writer: infinite if it never ran in this application."""
    running = Heartbeat.objects.filter(cell=cell.id, epoch=cell.epoch, state="running")
    silences = {beat.writer: (now - beat.at).total_seconds() for beat in running}
    return {writer: silences.get(writer, inf) for writer in wanted(cell)}
