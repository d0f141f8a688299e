"""The lease of a cell: taken for one change of seconds to minutes, kept, given back, and fenced where it matters.

A controller that stops anywhere leaves a lease that runs out. Whoever takes the cell next raises its fence in the same
transaction, so from then on the one before, if it wakes up, writes nothing: not a clock but the fence makes it safe.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction

from controlplane.interlocks import CellState, Controller, LeaseView, PauseView, Refusal, VerdictView, why_not
from mgmt.models import Cell, Lease, Verdict
from mgmt.queries.control import open_pauses
from mgmt.services.control import note

__all__ = ["LASTS", "LeaseLostError", "cell_states", "fenced", "give_back", "keep", "note", "take"]

LASTS: Final = timedelta(seconds=60)
log = structlog.get_logger(__name__)


class LeaseLostError(Exception):
    """Somebody else has taken the cell since: nothing was written, and what was decided is worth nothing any more."""


def take(
    cell: str,
    controller: Controller,
    what: str,
    now: datetime,
    *,
    protective: bool = False,
    lasts: timedelta = LASTS,
) -> Lease | Refusal:
    """The cell's lease for one change, or why not. `protective`: see interlocks.why_not. Raises Cell.DoesNotExist.

    A lock of the cell's row, for the answer rests on three tables, and the fence must rise with the token.
    """
    with transaction.atomic():
        Cell.with_ingest.select_for_update(no_key=True).get(id=cell)
        refusal = why_not(controller, cell_states(now, [cell])[cell], protective=protective)
        if refusal is not None:
            return refusal
        lease, _ = Lease.objects.get_or_create(cell_id=cell, defaults={"taken_at": now, "until": now})
        lease.holder, lease.what, lease.token = controller, what[:200], lease.token + 1
        lease.taken_at, lease.until = now, now + lasts
        lease.save()
        Cell.with_ingest.filter(id=cell).update(fence=lease.token)
    log.info("lease taken", cell=cell, holder=controller, token=lease.token, what=what)
    return lease


def keep(lease: Lease, now: datetime, *, lasts: timedelta = LASTS) -> bool:
    """Hold it for longer; False if it is not ours any more."""
    ours = Lease.objects.filter(cell_id=lease.cell_id, token=lease.token).exclude(holder="")
    return ours.update(until=now + lasts) == 1


def give_back(lease: Lease) -> bool:
    """Let others change the cell; False if it was not ours any more."""
    ours = Lease.objects.filter(cell_id=lease.cell_id, token=lease.token).exclude(holder="")
    return ours.update(holder="", what="") == 1


@contextmanager
def fenced(lease: Lease) -> Iterator[None]:
    """A transaction for what the holder writes: nobody takes the cell before it has ended.

    Raises LeaseLostError if somebody has taken it. A lease that ran out and that nobody took is still good.
    """
    with transaction.atomic():
        cells = Cell.with_ingest.select_for_update(no_key=True)
        if cells.filter(id=lease.cell_id, fence__lte=lease.token).first() is None:
            raise LeaseLostError(f"cell {lease.cell_id} was taken by somebody else after token {lease.token}")
        yield


def cell_states(now: datetime, cells: Iterable[str] | None = None) -> dict[str, CellState]:
    """What the interlocks ask about these cells, or about all of them: four queries, however many there are."""
    ids = list(Cell.objects.values_list("id", flat=True)) if cells is None else list(cells)
    leases = {row.cell_id: LeaseView(row.holder, row.what, row.until) for row in Lease.objects.filter(cell__in=ids)}
    verdicts = {
        row.cell_id: VerdictView(row.state, row.reasons, row.since, row.at)
        for row in Verdict.objects.filter(cell__in=ids)
    }
    pauses = _pauses(now)
    return {id_: CellState(id_, pauses[None] + pauses[id_], leases.get(id_), verdicts.get(id_), now) for id_ in ids}


def _pauses(now: datetime) -> dict[str | None, list[PauseView]]:
    found: dict[str | None, list[PauseView]] = defaultdict(list)
    for row in open_pauses(now):
        found[row.cell_id].append(PauseView(row.controller, row.by.username, row.reason, row.until, row.cell_id))
    return found
