"""The groups of lanes and of ingest, what the Autoscaler last saw and said of them, what was changed; for staff."""

from collections.abc import Sequence

from django.db.models import Q
from msgspec import Struct

from mgmt.models import ControlAction, ScaleGroup

SHOWN = 20


class GroupLine(Struct, frozen=True):
    """A group as a row of the list; None for what was not seen. `cpu`: of one lane or replica, in cores."""

    group: ScaleGroup
    lanes: int
    came: float | None
    settled: float | None
    lag_us: int | None
    cpu: float | None
    ceiling: float | None


def group_lines() -> list[GroupLine]:
    """Every group, by cell, as it was seen last: one query."""
    return [line_of(group) for group in ScaleGroup.objects.select_related("cell").order_by("cell_id", "id")]


def line_of(group: ScaleGroup) -> GroupLine:
    """What is known of one group."""
    seen = group.seen
    return GroupLine(
        group=group,
        lanes=group.cell.lanes.get(group.kind, 0),
        came=seen.get("came"),
        settled=seen.get("settled"),
        lag_us=round(seen["lag_s"] * 1_000_000) if "lag_s" in seen else None,
        cpu=seen["cpu"] / max(1, seen["lanes"]) if seen else None,
        ceiling=group.memory.get("ceiling") or None,
    )


def changes_of(group: ScaleGroup) -> Sequence[ControlAction]:
    """What was done to the group lately, or refused, the newest first."""
    rows = ControlAction.objects.filter(Q(controller="scale") | Q(action="scale-policy"), cell=group.cell_id)
    return list(rows.filter(detail__kind=group.kind).select_related("author").order_by("-id")[:SHOWN])
