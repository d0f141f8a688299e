"""What the controllers are kept from, what they hold and what they did, and how the cells are; for staff."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db.models import F, Q, QuerySet
from msgspec import Struct

from mgmt.models import Cell, ControlAction, Controller, Heartbeat, Lease, Pause, Pipe, Verdict

HEARD: Final = timedelta(seconds=10)  # a heartbeat that is older is no sign of life


class ControllerLine(Struct, frozen=True):
    """A controller with the pauses that hold it back and the leases that it holds at this moment."""

    name: str
    label: str
    pauses: Sequence[Pause]
    leases: Sequence[Lease]

    @property
    def paused_everywhere(self) -> bool:
        """Whether it changes nothing at all."""
        return any(pause.cell_id is None for pause in self.pauses)


class CellLine(Struct, frozen=True):
    """A cell as lists show it. `heard`: of each kind of lane, how many have said something within HEARD."""

    cell: Cell
    verdict: Verdict | None
    lease: Lease | None
    pauses: Sequence[Pause]
    pipes: int
    heard: Mapping[str, int]

    @property
    def lanes(self) -> list[tuple[str, int, int]]:
        """(kind, heard, wanted)"""
        return [(kind, self.heard.get(kind, 0), wanted) for kind, wanted in self.cell.lanes.items()]


def open_pauses(now: datetime) -> QuerySet[Pause]:
    """The pauses that hold somebody back now, the oldest first."""
    rows = Pause.objects.filter(Q(until=None) | Q(until__gt=now), ended_at=None)
    return rows.select_related("by").order_by("id")


def held_leases(now: datetime) -> QuerySet[Lease]:
    """Leases that somebody holds now, by cell."""
    return Lease.objects.filter(until__gt=now).exclude(holder="").order_by("cell_id")


def controller_lines(now: datetime) -> list[ControllerLine]:
    """Every controller: two queries."""
    pauses, leases = list(open_pauses(now)), list(held_leases(now))
    return [
        ControllerLine(
            name=value,
            label=str(label),
            pauses=[pause for pause in pauses if pause.controller == value],
            leases=[lease for lease in leases if lease.holder == value],
        )
        for value, label in Controller.choices
    ]


def cell_lines(now: datetime) -> list[CellLine]:
    """Every cell, by id: six queries, however many there are."""
    verdicts = {row.cell_id: row for row in Verdict.objects.all()}
    leases = {row.cell_id: row for row in held_leases(now)}
    pauses = list(open_pauses(now))
    placed = Counter(Pipe.objects.exclude(cell=None).values_list("cell_id", flat=True))
    heard: dict[str, Counter[str]] = defaultdict(Counter)
    for cell, kind in Heartbeat.objects.filter(at__gt=now - HEARD).values_list("cell", "kind"):
        heard[cell][kind] += 1
    return [
        CellLine(
            cell=cell,
            verdict=verdicts.get(cell.id),
            lease=leases.get(cell.id),
            pauses=[pause for pause in pauses if pause.cell_id in (None, cell.id)],
            pipes=placed[cell.id],
            heard=heard[cell.id],
        )
        for cell in Cell.objects.select_related("dedicated_to").order_by("id")
    ]


def heartbeats_of(cell: str) -> QuerySet[Heartbeat]:
    """The newest word of each process of the cell."""
    return Heartbeat.objects.filter(cell=cell).order_by("writer")


def pipes_on(cell: str) -> QuerySet[Pipe]:
    """The pipes that were placed there, with their tenants."""
    return Pipe.objects.filter(cell=cell).select_related("tenant").order_by("tenant__name", "name")


def control_actions(*, controller: str = "", cell: str = "", outcome: str = "") -> QuerySet[ControlAction]:
    """The audit, the newest first; each choice that is not empty narrows it."""
    chosen = {"controller": controller, "cell": cell, "outcome": outcome}
    rows = ControlAction.objects.filter(**{name: value for name, value in chosen.items() if value})
    return rows.select_related("author", "pipe").annotate(tenant=F("pipe__tenant__name")).order_by("-id")
