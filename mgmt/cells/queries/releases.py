"""Releases and their rollouts, for staff."""

from collections.abc import Sequence
from typing import Final

from django.db.models import Prefetch
from msgspec import Struct

from dataplane.names import INGEST_GROUP
from mgmt.cells.models.releases import first_replica_of
from mgmt.models import Cell, Release, Rollout, RolloutStep

NEWEST: Final = 20
_COLOURS: Final = {
    "running": "wait",
    "rolling back": "bad",
    "done": "fine",
    "rolled back": "bad",
    "waiting": "off",
    "starting": "wait",
    "watching": "wait",
    "returning": "bad",
    "returned": "off",
}


class ReleaseSummary(Struct, frozen=True):
    """Release with the cells, and ingest, whose rows name it; `elsewhere`: some have another release."""

    row: Release
    cells: Sequence[str]
    elsewhere: bool


class RolloutStepSummary(Struct, frozen=True):
    """Step with the measures that its gate compares, before and after the start of its lanes."""

    row: RolloutStep
    colour: str
    gates: Sequence["GateMeasure"]


class GateMeasure(Struct, frozen=True):
    """Measure before and after: a share (0 to 1), or a lag in microseconds; None if nothing was measured."""

    name: str
    before: float | None
    found: float | None


class RolloutSummary(Struct, frozen=True):
    """Rollout with its steps in order."""

    row: Rollout
    colour: str
    steps: Sequence[RolloutStepSummary]


def release_lines() -> list[ReleaseSummary]:
    """Return the NEWEST releases, newest first; two queries."""
    rows = Cell.with_ingest.exclude(release=None).order_by("id").values_list("id", "release_id", "canary_id")
    has = {cell: release for cell, release, _ in rows}
    canaries = {canary: first_replica_of(cell) for cell, _, canary in rows if canary}
    lines = []
    for row in Release.objects.order_by("-registered_at", "id")[:NEWEST]:
        cells = [cell for cell, release in has.items() if release == row.id]
        cells += [canaries[row.id]] if row.id in canaries else []
        elsewhere = any(release != row.id for cell, release in has.items() if row.for_ingest or cell != INGEST_GROUP)
        lines.append(ReleaseSummary(row, cells, elsewhere))
    return lines


def rollout_lines() -> list[RolloutSummary]:
    """Return the NEWEST rollouts, newest first; two queries."""
    steps = Prefetch("steps", RolloutStep.objects.order_by("number"))
    rows = Rollout.objects.select_related("release", "author").prefetch_related(steps).order_by("-id")[:NEWEST]
    return [RolloutSummary(row, _COLOURS[row.state], [_step(step) for step in row.steps.all()]) for row in rows]


def _step(row: RolloutStep) -> RolloutStepSummary:
    failed = GateMeasure("failed", _failed(row.before), _failed(row.found))
    return RolloutStepSummary(
        row, _COLOURS[row.state], [failed, GateMeasure("lag", row.before.get("p95_us"), row.found.get("p95_us"))]
    )


def _failed(health: dict[str, int]) -> float | None:
    return health["failed"] / health["ended"] if health.get("ended") else None
