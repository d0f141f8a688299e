"""Migrations of pipes between cells, in progress and ended; for staff."""

from datetime import datetime

from django.db.models import Q, QuerySet

from mgmt.models import Pipe, PipeMigration


def pipe_migrations(*, cell: str = "") -> QuerySet[PipeMigration]:
    """Return the migrations, newest first; `cell` selects those from or to that cell."""
    rows = PipeMigration.objects.select_related("pipe", "by").order_by("-id")
    return rows.filter(Q(source=cell) | Q(target=cell)) if cell else rows


def held_for_order() -> QuerySet[PipeMigration]:
    """Return the migrations whose target cell holds new messages until the source cell has processed older ones."""
    return PipeMigration.objects.filter(state=PipeMigration.State.DRAINING, held_at__isnull=False)


def last_switch_after(pipe: Pipe, since: datetime) -> datetime | None:
    """Return when the pipe was last switched to another cell, where its earlier events are not; None if not since."""
    rows = PipeMigration.objects.filter(pipe=pipe, switched_at__gt=since).order_by("-switched_at")
    return rows.values_list("switched_at", flat=True).first()
