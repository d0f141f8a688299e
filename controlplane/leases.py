"""The lease of a cell: acquired for one change of seconds to minutes, renewed, released, and enforced by a fence.

If a controller stops anywhere, its lease expires. The next holder raises the cell's fence in the same transaction, so
the earlier holder writes nothing if it resumes: the fence makes this safe, not a clock.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction

from controlplane.interlocks import (
    CellState,
    ControllerName,
    LeaseView,
    PauseView,
    Refusal,
    VerdictView,
    name_of,
    refusal_of,
)
from mgmt.cells.queries.control import open_pauses
from mgmt.cells.services.control import note
from mgmt.models import Cell, CellVerdict, Lease

__all__ = ["LASTS", "LeaseLostError", "acquire", "cell_states", "fenced", "note", "release", "renew"]

LASTS: Final = timedelta(seconds=60)
log = structlog.get_logger(__name__)


class LeaseLostError(Exception):
    """Another controller has taken the cell since: nothing was written, and the decision is void."""


def acquire(
    cell: str,
    controller: ControllerName,
    what: str,
    now: datetime,
    *,
    protective: bool = False,
    repairs: bool = False,
    lasts: timedelta = LASTS,
) -> Lease | Refusal:
    """Acquire the cell's lease for one change, or return why not. `protective`, `repairs`: see interlocks.refusal_of.

    Locks the cell's row, because the answer depends on three tables and the fence must rise with the token.
    Raises Cell.DoesNotExist.
    """
    with transaction.atomic():
        Cell.with_ingest.select_for_update(no_key=True).get(id=cell)
        refusal = refusal_of(controller, cell_states(now, [cell])[cell], protective=protective, repairs=repairs)
        if refusal is not None:
            return refusal
        lease, _ = Lease.objects.get_or_create(cell_id=cell, defaults={"taken_at": now, "until": now})
        lease.holder, lease.what, lease.token = controller, what[:200], lease.token + 1
        lease.taken_at, lease.until = now, now + lasts
        lease.save()
        Cell.with_ingest.filter(id=cell).update(fence=lease.token)
    log.info("lease taken", cell=cell, holder=controller, token=lease.token, what=what)
    return lease


def renew(lease: Lease, now: datetime, *, lasts: timedelta = LASTS) -> bool:
    """Extend the lease; return False if it is not ours any more."""
    ours = Lease.objects.filter(cell_id=lease.cell_id, token=lease.token).exclude(holder="")
    return ours.update(until=now + lasts) == 1


def release(lease: Lease) -> bool:
    """Release the lease, so that others may change the cell; return False if it was not ours any more."""
    ours = Lease.objects.filter(cell_id=lease.cell_id, token=lease.token).exclude(holder="")
    return ours.update(holder="", what="") == 1


@contextmanager
def fenced(lease: Lease) -> Iterator[None]:
    """Open a transaction for the holder's writes: no controller takes the cell before it ends.

    Raises LeaseLostError if another has taken the cell. An expired lease stays valid until another controller takes it.
    """
    with transaction.atomic():
        cells = Cell.with_ingest.select_for_update(no_key=True)
        if cells.filter(id=lease.cell_id, fence__lte=lease.token).first() is None:
            raise LeaseLostError(f"{name_of(lease.cell_id)} was taken by another controller after token {lease.token}")
        yield


def cell_states(now: datetime, cells: Iterable[str] | None = None) -> dict[str, CellState]:
    """Return by cell what the interlocks need to know of these cells (None: all): four queries for any number."""
    ids = list(Cell.objects.values_list("id", flat=True)) if cells is None else list(cells)
    leases = {row.cell_id: LeaseView(row.holder, row.what, row.until) for row in Lease.objects.filter(cell__in=ids)}
    verdicts = {
        row.cell_id: VerdictView(row.state, row.reasons, row.since, row.at)
        for row in CellVerdict.objects.filter(cell__in=ids)
    }
    pauses = _pauses(now)
    return {id_: CellState(id_, pauses[None] + pauses[id_], leases.get(id_), verdicts.get(id_), now) for id_ in ids}


def _pauses(now: datetime) -> dict[str | None, list[PauseView]]:
    found: dict[str | None, list[PauseView]] = defaultdict(list)
    for row in open_pauses(now):
        found[row.cell_id].append(PauseView(row.controller, row.by.username, row.reason, row.until, row.cell_id))
    return found
