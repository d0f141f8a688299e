"""Pipes on their way from one cell to another, and those that have come; for staff."""

from django.db.models import Q, QuerySet

from mgmt.models import Relocation


def relocations(*, cell: str = "", pipe: str = "") -> QuerySet[Relocation]:
    """The newest first; `cell` narrows it to those from or to that cell."""
    rows = Relocation.objects.select_related("pipe", "by").order_by("-id")
    if cell:
        rows = rows.filter(Q(source=cell) | Q(target=cell))
    return rows.filter(pipe=pipe) if pipe else rows


def held_for_order() -> QuerySet[Relocation]:
    """Those whose target holds what comes until the cell that the pipe leaves has worked off what came before."""
    return Relocation.objects.filter(state=Relocation.State.DRAINING, held_at__isnull=False)
