"""What the controllers are kept from, and what they hold, for staff."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q, QuerySet
from msgspec import Struct

from mgmt.models import Controller, Lease, Pause


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
