"""Service that moves a pipe to a cell of its own."""

from datetime import datetime
from typing import Final

from django.db import transaction

from mgmt.cells.queries.cells import partitions_of
from mgmt.cells.services.cells import add_cell, keep_cell_for
from mgmt.cells.services.pipe_migrations import request_migration
from mgmt.models import Cell, Pipe, PipeMigration, User

PREFIX: Final = "own"


@transaction.atomic
def move_to_own_cell(*, pipe: Pipe, reason: str, by: User, now: datetime) -> PipeMigration:
    """Request the migration of a pipe to a cell that is dedicated to its tenant and has no other pipe.

    If there is none, a cell is added and dedicated to the tenant. Raises as `request_migration` does; then no cell is
    added.
    """
    used = Pipe.objects.filter(cell__isnull=False).exclude(state=Pipe.State.CLOSED).values("cell")
    coming = PipeMigration.objects.filter(state__in=PipeMigration.UNDER_WAY).values("target")
    free = Cell.objects.filter(dedicated_to=pipe.tenant_id).exclude(id__in=used).exclude(id__in=coming)
    target = free.order_by("id").first()
    if target is None:
        partitions = partitions_of(str(pipe.cell_id)) if pipe.cell_id else None
        added = add_cell(name=_free_name(), by=by, now=now, why=reason, partitions=partitions)
        target = keep_cell_for(cell=added, tenant=pipe.tenant, sleeps_after_s=None, by=by, now=now)
    return request_migration(pipe=pipe, target=target, reason=reason, by=by, now=now)


def _free_name() -> str:
    taken = set(Cell.objects.filter(id__startswith=PREFIX).values_list("id", flat=True))
    return next(name for number in range(1, len(taken) + 2) if (name := f"{PREFIX}{number}") not in taken)
