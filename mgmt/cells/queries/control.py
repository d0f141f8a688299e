"""Controllers with their pauses and leases, cells with their verdicts, and the control audit; for staff."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, F, Q, QuerySet
from msgspec import Struct

from mgmt.cells.history import History, folded
from mgmt.models import Cell, CellVerdict, ControlAction, Controller, Heartbeat, Lease, Pause, Pipe, Topic

MOST_READ: Final = 1_000  # entries that one page of a history may fold
MOST_LINES: Final = 100
HEARTBEAT_MAX_AGE: Final = timedelta(seconds=10)  # an older heartbeat does not count


class ControllerSummary(Struct, frozen=True):
    """Controller with its pauses in effect and the leases that it holds now."""

    name: str
    label: str
    pauses: Sequence[Pause]
    leases: Sequence[Lease]

    @property
    def paused_everywhere(self) -> bool:
        """True if the controller is paused for all cells."""
        return any(pause.cell_id is None for pause in self.pauses)


class CellSummary(Struct, frozen=True):
    """Cell as lists show it.

    heard:      number of processes with a heartbeat within HEARTBEAT_MAX_AGE, by kind
    partitions: of its topics; None if the default of the installation will apply to them
    """

    cell: Cell
    verdict: CellVerdict | None
    lease: Lease | None
    pauses: Sequence[Pause]
    pipes: int
    heard: Mapping[str, int]
    partitions: int | None

    @property
    def lanes(self) -> list[tuple[str, int, int]]:
        """Lanes of the cell as (kind, reporting, desired)."""
        return [(kind, self.heard.get(kind, 0), wanted) for kind, wanted in self.cell.lanes.items()]


def open_pauses(now: datetime) -> QuerySet[Pause]:
    """Return the pauses in effect, oldest first."""
    rows = Pause.objects.filter(Q(until=None) | Q(until__gt=now), ended_at=None)
    return rows.select_related("by").order_by("id")


def held_leases(now: datetime) -> QuerySet[Lease]:
    """Return the leases that are held now, by cell."""
    return Lease.objects.filter(until__gt=now).exclude(holder="").order_by("cell_id")


def controller_lines(now: datetime) -> list[ControllerSummary]:
    """Return every controller; two queries."""
    pauses, leases = list(open_pauses(now)), list(held_leases(now))
    return [
        ControllerSummary(
            name=value,
            label=str(label),
            pauses=[pause for pause in pauses if pause.controller == value],
            leases=[lease for lease in leases if lease.holder == value],
        )
        for value, label in Controller.choices
    ]


def cell_lines(now: datetime) -> list[CellSummary]:
    """Return every cell, by id; seven queries for any number of cells."""
    verdicts = {row.cell_id: row for row in CellVerdict.objects.all()}
    leases = {row.cell_id: row for row in held_leases(now)}
    pauses = list(open_pauses(now))
    placed = dict(Pipe.objects.exclude(cell=None).order_by().values_list("cell_id").annotate(Count("id")))
    partitions = dict(Topic.objects.filter(purpose="ingest").values_list("cell", "partitions"))
    heard: dict[str, Counter[str]] = defaultdict(Counter)
    for cell, kind in Heartbeat.objects.filter(at__gt=now - HEARTBEAT_MAX_AGE).values_list("cell", "kind"):
        heard[cell][kind] += 1
    return [
        CellSummary(
            cell=cell,
            verdict=verdicts.get(cell.id),
            lease=leases.get(cell.id),
            pauses=[pause for pause in pauses if pause.cell_id in (None, cell.id)],
            pipes=placed.get(cell.id, 0),
            partitions=partitions.get(cell.id, cell.partitions),
            heard=heard[cell.id],
        )
        for cell in Cell.objects.select_related("dedicated_to").order_by("id")
    ]


def heartbeats_of(cell: str) -> QuerySet[Heartbeat]:
    """Return the newest heartbeat of each process of the cell."""
    return Heartbeat.objects.filter(cell=cell).order_by("writer")


def pipes_on(cell: str) -> QuerySet[Pipe]:
    """Return the pipes that are placed on the cell, with their tenants."""
    return Pipe.objects.filter(cell=cell).select_related("tenant").order_by("tenant__name", "name")


def history_of(controller: str, *, outcome: str = "", before: int = 0) -> History:
    """Return the history of a controller, newest first: entries below the id `before`, repeated refusals folded."""
    rows = ControlAction.objects.filter(controller=controller, **({"outcome": outcome} if outcome else {}))
    if before:
        rows = rows.filter(id__lt=before)
    return folded(rows.defer("detail").order_by("-id")[: MOST_READ + 1], lines=MOST_LINES, entries=MOST_READ)


def control_actions(*, controller: str = "", cell: str = "", outcome: str = "") -> QuerySet[ControlAction]:
    """Return the control audit, newest first; an empty filter matches all."""
    chosen = {"controller": controller, "cell": cell, "outcome": outcome}
    rows = ControlAction.objects.filter(**{name: value for name, value in chosen.items() if value})
    return rows.select_related("author", "pipe").annotate(tenant=F("pipe__tenant__name")).order_by("-id")
