"""What cells were rated at, for staff and for placing."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mgmt.models import Cell, Rating


@dataclass(frozen=True)
class RatedCell:
    """A cell with its newest rating of each group, in order of travel; none if it was never rated."""

    cell: Cell
    ratings: Sequence[Rating]


def rated_cells() -> list[RatedCell]:
    """Every cell, by id: two queries."""
    newest = newest_ratings()
    order = Rating.Group.values
    return [
        RatedCell(cell, sorted(newest.get(cell.id, {}).values(), key=lambda rating: order.index(rating.group)))
        for cell in Cell.objects.order_by("id")
    ]


def newest_ratings(**only: str) -> dict[str, Mapping[str, Rating]]:
    """By cell and group, of those rows for which `only` holds: one query."""
    rows = Rating.objects.filter(**only).select_related("by").order_by("cell_id", "group", "-at")
    rows = rows.distinct("cell_id", "group")
    found: dict[str, dict[str, Rating]] = defaultdict(dict)
    for row in rows:
        found[row.cell_id][row.group] = row
    return dict(found)
