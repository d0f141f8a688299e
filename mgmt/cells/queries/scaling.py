"""Scale groups of lanes and ingest: the Autoscaler's newest measurements and the changes; for staff."""

from collections.abc import Sequence

from django.db.models import Q
from msgspec import Struct

from mgmt.models import ControlAction, ScaleGroup

SHOWN = 20


class ScaleGroupSummary(Struct, frozen=True):
    """Scale group as a row of the list; None for values not measured.

    came, settled: messages per second that arrived and that were settled
    cpu:           of one lane or replica, in cores
    """

    group: ScaleGroup
    lanes: int
    came: float | None
    settled: float | None
    lag_us: int | None
    cpu: float | None
    ceiling: float | None


def scale_group_summaries() -> list[ScaleGroupSummary]:
    """Return every group with its newest measurements, by cell; one query."""
    return [scale_group_summary(group) for group in ScaleGroup.objects.select_related("cell").order_by("cell_id", "id")]


def scale_group_summary(group: ScaleGroup) -> ScaleGroupSummary:
    """Return the newest measurements of one group."""
    seen = group.seen
    return ScaleGroupSummary(
        group=group,
        lanes=group.cell.lanes.get(group.kind, 0),
        came=seen.get("came"),
        settled=seen.get("settled"),
        lag_us=round(seen["lag_s"] * 1_000_000) if "lag_s" in seen else None,
        cpu=seen["cpu"] / max(1, seen["lanes"]) if seen else None,
        ceiling=group.memory.get("ceiling") or None,
    )


def changes_of(group: ScaleGroup) -> Sequence[ControlAction]:
    """Return the SHOWN newest changes of the group, including refused ones, newest first."""
    rows = ControlAction.objects.filter(Q(controller="scale") | Q(action="scale-policy"), cell=group.cell_id)
    return list(rows.filter(detail__kind=group.kind).select_related("author").order_by("-id")[:SHOWN])
