"""Releases and their rollouts, for staff."""

from collections.abc import Sequence
from typing import Final

from django.db.models import Prefetch
from msgspec import Struct

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


class ReleaseLine(Struct, frozen=True):
    """A release, the cells whose rows name it, and whether there are cells that it could be rolled out to."""

    row: Release
    cells: Sequence[str]
    elsewhere: bool


class StepLine(Struct, frozen=True):
    """A step with the measures that its gate compares, as they were before and since its lanes came up."""

    row: RolloutStep
    colour: str
    gates: Sequence["Gate"]


class Gate(Struct, frozen=True):
    """What is measured, before and since: a share of one, or a lag in microseconds; None if nothing was."""

    name: str
    before: float | None
    found: float | None


class RolloutLine(Struct, frozen=True):
    """A rollout with its steps in their order."""

    row: Rollout
    colour: str
    steps: Sequence[StepLine]


def release_lines() -> list[ReleaseLine]:
    """The newest releases: two queries."""
    has = dict(Cell.objects.exclude(release=None).order_by("id").values_list("id", "release_id"))
    lines = []
    for row in Release.objects.order_by("-registered_at", "id")[:NEWEST]:
        cells = [cell for cell, release in has.items() if release == row.id]
        lines.append(ReleaseLine(row, cells, len(cells) < len(has)))
    return lines


def rollout_lines() -> list[RolloutLine]:
    """The newest rollouts, the newest first: two queries."""
    steps = Prefetch("steps", RolloutStep.objects.order_by("number"))
    rows = Rollout.objects.select_related("release", "author").prefetch_related(steps).order_by("-id")[:NEWEST]
    return [RolloutLine(row, _COLOURS[row.state], [_step(step) for step in row.steps.all()]) for row in rows]


def _step(row: RolloutStep) -> StepLine:
    failed = Gate("failed", _failed(row.before), _failed(row.found))
    return StepLine(row, _COLOURS[row.state], [failed, Gate("lag", row.before.get("p95_us"), row.found.get("p95_us"))])


def _failed(health: dict[str, int]) -> float | None:
    return health["failed"] / health["ended"] if health.get("ended") else None
