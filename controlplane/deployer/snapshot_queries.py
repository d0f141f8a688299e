"""Reads the open rollout, and the cell of its next step, into a DeployerSnapshot."""

from datetime import datetime, timedelta
from math import inf
from typing import Final

import msgspec

from controlplane.deployer.decide import step_to_take
from controlplane.deployer.snapshot import (
    LONG_AGO,
    CellErrorRate,
    CellStatus,
    DeployerSnapshot,
    RolloutPolicy,
    RolloutStepView,
    RolloutView,
)
from controlplane.ingest_replicas import desired_replicas
from controlplane.interlocks import Refusal, refusal_of
from controlplane.leases import cell_states
from dataplane.names import INGEST_GROUP, replica_name
from mgmt.cells.expected_lanes import expected_lanes
from mgmt.models import Cell, Heartbeat, Lease, Rollout, RolloutStep

FRESH_S: Final = 5.0
DRIVER: Final = "driver"


def take_snapshot(
    rollout: Rollout, now: datetime, policy: RolloutPolicy, since: datetime = LONG_AGO
) -> DeployerSnapshot:
    """Read the snapshot at about `now`, after `remember`. Of the cells it has only that of the step to take."""
    rows = {row.id: row for row in rollout.steps.select_related("cell")}
    view = RolloutView(rollout.id, rollout.release_id, rollout.state, [_step(row) for row in rows.values()])
    step = step_to_take(view)
    cells = {step.cell: _status(rows[step.id], now, since)} if step else {}
    has_heartbeat = Heartbeat.objects.filter(at__gte=now - timedelta(seconds=policy.silent_s)).exists()
    return DeployerSnapshot(view, cells, now, policy, since, blind=not has_heartbeat)


def lease_of(step: RolloutStep) -> Lease | None:
    """Return the lease under which the step changes its cell, or None if the step does not hold it any more."""
    return Lease.objects.filter(cell=step.cell_id, token=step.token, holder="deploy").first()


def pids(step: RolloutStep) -> dict[str, int]:
    """Return the pid of each expected writer that has reported from the release that the step's cell has now."""
    return {beat.writer: beat.body["pid"] for beat in heartbeats_of(step)}


def heartbeats_of(step: RolloutStep) -> list[Heartbeat]:
    """Return the heartbeats of the expected writers from the release that the step's cell has now."""
    cell, must_report = step.cell, wanted(step.cell, is_canary=step.is_canary)
    if cell.id == INGEST_GROUP:
        beats = Heartbeat.objects.filter(cell="", writer__in=must_report)
        return [beat for beat in beats if beat.body.get("release") == must_report[beat.writer]]
    return list(Heartbeat.objects.filter(cell=cell.id, epoch=cell.epoch, writer__in=must_report))


def wanted(cell: Cell, *, is_canary: bool = False) -> dict[str, str]:
    """Return the writers that must report, each with its release.

    Of a cell: the driver and the desired lanes that the cell's release has, but none while it sleeps. A cell that fell
    asleep after it got the new release is rolled back, too: it wakes with its earlier release. Of ingest: all replicas,
    or only the first one in the step of the canary.
    """
    if cell.id == INGEST_GROUP:
        desired = desired_replicas(cell)
        count = 1 if is_canary else desired.count
        return {replica_name(number): desired.release_of(number) for number in range(1, count + 1)}
    return dict.fromkeys(_lanes(cell), str(cell.release_id))


def _lanes(cell: Cell) -> list[str]:
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


def _status(step: RolloutStep, now: datetime, since: datetime) -> CellStatus:
    refusal, occupied = _interlocks(step, now)
    silences = _silences(step, now)
    quietest = max(silences, key=silences.__getitem__, default="")
    silent_s = silences.get(quietest, 0.0)
    return CellStatus(
        refusal=refusal.why if refusal else "",
        refusal_kind=refusal.kind if refusal else None,
        occupied=occupied,
        missing=quietest if silent_s > FRESH_S else "",
        silent_s=silent_s,
        lane_restarts=max((len(known) for known in step.lanes.values()), default=1) - 1 - _restarted(step, since),
        in_series=len(silences) if step.cell_id == INGEST_GROUP else 1,
        found=msgspec.convert(step.found, CellErrorRate),
    )


def _restarted(step: RolloutStep, since: datetime) -> bool:
    """Return True if the control plane, and perhaps the whole box, has restarted since the step began."""
    return step.touched_at is not None and step.touched_at < since


def _interlocks(step: RolloutStep, now: datetime) -> tuple[Refusal | None, str]:
    """Return why the step's cell may not get a release now, and why not even its earlier one; None and "" if it may."""
    if lease_of(step) is not None:
        return None, ""
    if step.cell.is_asleep:
        return Refusal("cell-asleep", f"cell {step.cell_id} is asleep and is woken first", "when it is awake"), ""
    state = cell_states(now, [step.cell_id])[step.cell_id]
    refusal = refusal_of("deploy", state, repairs=step.rollout.is_repair) or _missing_replica(step, now)
    occupied = refusal_of("deploy", state, protective=True)
    return refusal, occupied.why if occupied else ""


def _missing_replica(step: RolloutStep, now: datetime) -> Refusal | None:
    """Return why ingest is not stable, on which the Observer gives no verdict; None if it is, or for a repair."""
    if step.cell_id != INGEST_GROUP or step.rollout.is_repair:
        return None
    fresh = Heartbeat.objects.filter(cell="", state="running", at__gte=now - timedelta(seconds=FRESH_S))
    running = set(fresh.values_list("writer", flat=True))
    missing = next((writer for writer in wanted(step.cell) if writer not in running), "")
    return Refusal("cell-unstable", f"{missing} does not run", "when it runs") if missing else None


def _silences(step: RolloutStep, now: datetime) -> dict[str, float]:
    """Return seconds since the last heartbeat of each expected writer: infinite if it never ran in this application."""
    running = [beat for beat in heartbeats_of(step) if beat.state == "running"]
    silences = {beat.writer: (now - beat.at).total_seconds() for beat in running}
    return {writer: silences.get(writer, inf) for writer in wanted(step.cell, is_canary=step.is_canary)}
