"""Capacity test results of cells, for staff pages and for placement."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mgmt.models import CapacityResult, Cell


@dataclass(frozen=True)
class RatedCell:
    """Cell with its newest capacity result of each group, in the order of processing; empty if it was never tested."""

    cell: Cell
    ratings: Sequence[CapacityResult]


def tested_cells() -> list[RatedCell]:
    """Return every cell, by id; two queries."""
    newest = newest_capacity_results()
    order = CapacityResult.Group.values
    return [
        RatedCell(cell, sorted(newest.get(cell.id, {}).values(), key=lambda rating: order.index(rating.group)))
        for cell in Cell.objects.order_by("id")
    ]


def newest_capacity_results(**only: str) -> dict[str, Mapping[str, CapacityResult]]:
    """Return the newest result by cell and group; one query. `only`: exact filters on the rows."""
    rows = CapacityResult.objects.filter(**only).select_related("by").order_by("cell_id", "group", "-at")
    rows = rows.distinct("cell_id", "group")
    found: dict[str, dict[str, CapacityResult]] = defaultdict(dict)
    for row in rows:
        found[row.cell_id][row.group] = row
    return dict(found)
