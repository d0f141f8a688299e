"""Migrations of pipes between cells, in progress and ended; for staff."""

from django.db.models import Q, QuerySet

from mgmt.models import PipeMigration


def pipe_migrations(*, cell: str = "", pipe: str = "") -> QuerySet[PipeMigration]:
    """Return the migrations, newest first; `cell` selects those from or to that cell."""
    rows = PipeMigration.objects.select_related("pipe", "by").order_by("-id")
    if cell:
        rows = rows.filter(Q(source=cell) | Q(target=cell))
    return rows.filter(pipe=pipe) if pipe else rows


def held_for_order() -> QuerySet[PipeMigration]:
    """Return the migrations whose target cell holds new messages until the source cell has processed older ones."""
    return PipeMigration.objects.filter(state=PipeMigration.State.DRAINING, held_at__isnull=False)
