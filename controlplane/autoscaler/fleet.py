"""Reads the cells for the last level of scaling (controlplane.autoscaler.cell_relief), and executes its decisions."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import inf
from typing import Final

import structlog

from controlplane.autoscaler.cell_relief import (
    AddCell,
    CellFleet,
    CellLoad,
    MigratePipe,
    NoAction,
    PipeLoad,
    ReliefStep,
    relief_steps,
)
from controlplane.interlocks import refusal_of
from controlplane.leases import cell_states
from mgmt.cells.placement import PlacementPolicy
from mgmt.cells.queries.cells import partitions_of
from mgmt.cells.services.pipe_migrations import why_busy, why_unfit
from mgmt.models import Cell, CellVerdict, Pipe, PipeMigration, ScaleGroup
from mgmt.pipes.queries.pipes import rates_of
from mgmt.services import ServiceError, add_cell, request_migration

MOST_CHECKED: Final = 20  # busiest pipes of a cell; a twenty-first has less than a twentieth of its traffic
NOT_CHECKED: Final = "other pipes of the cell have more traffic"
log = structlog.get_logger(__name__)


def relieve(placing: PlacementPolicy, most: int, now: datetime) -> Mapping[str, str]:
    """Take the due steps for cells that are short of lanes; return for each what was done, or why nothing, in words.

    Costs one query as long as no cell is short. `most`: the highest number of cells that are open to all tenants.
    """
    short = _short(now)
    if not short:
        return {}
    return {step.cell: _do(step, now) for step in relief_steps(_fleet(short, placing, most, now))}


def _short(now: datetime) -> dict[str, float]:
    """Return the cells with a group that needs more lanes than its maximum, and for how many seconds it has."""
    found: dict[str, float] = {}
    for cell, memory in ScaleGroup.objects.filter(cell__in=Cell.objects.all()).values_list("cell_id", "memory"):
        if since := memory.get("short_since_s"):
            found[cell] = max(found.get(cell, 0.0), now.timestamp() - since)
    return found


def _fleet(short: Mapping[str, float], placing: PlacementPolicy, most: int, now: datetime) -> CellFleet:
    pipes: dict[str, list[Pipe]] = defaultdict(list)
    for pipe in Pipe.objects.exclude(cell=None).exclude(state=Pipe.State.CLOSED).order_by("id"):
        pipes[str(pipe.cell_id)].append(pipe)
    rates = rates_of([pipe.id for of_cell in pipes.values() for pipe in of_cell], now)
    stable = set(CellVerdict.objects.filter(state=CellVerdict.State.STABLE).values_list("cell_id", flat=True))
    states, since_migration = cell_states(now), _since_migration(now)
    dedicated_to = dict(Cell.objects.order_by("id").values_list("id", "dedicated_to"))
    cells = [
        CellLoad(
            id=cell,
            pipes=_loads(pipes[cell], rates, is_short=cell in short),
            short_s=short.get(cell, 0.0),
            stable=cell in stable,
            since_migration_s=since_migration.get(cell, inf),
            refused=refusal.why if (refusal := refusal_of("scale", states[cell], protective=True)) else "",
        )
        for cell in dedicated_to
    ]
    return CellFleet(cells, {cell: tenant for cell, tenant in dedicated_to.items() if tenant}, placing, most)


def _loads(pipes: Sequence[Pipe], rates: Mapping[str, float], *, is_short: bool) -> list[PipeLoad]:
    """Return the loads of the pipes. Only the busiest of a short cell are checked for migration: that reads specs."""
    busiest = sorted(pipes, key=lambda pipe: -rates[pipe.id])[:MOST_CHECKED] if is_short else []
    unfit = {pipe.id: why_unfit(pipe) or why_busy(pipe) for pipe in busiest}
    return [PipeLoad(pipe.id, pipe.tenant_id, rates[pipe.id], unfit.get(pipe.id, NOT_CHECKED)) for pipe in pipes]


def _since_migration(now: datetime) -> dict[str, float]:
    """Return by cell the seconds since its last migration in or out: 0 for both cells of an open migration."""
    found: dict[str, float] = {}
    rows = PipeMigration.objects.order_by("-id").values_list("source", "target", "finished_at", "switched_at")
    for source, target, finished_at, switched_at in rows[:100]:
        if finished_at is None or switched_at is not None:  # a cancelled migration has moved nothing
            since_s = (now - finished_at).total_seconds() if finished_at else 0.0
            for cell in (source, target):
                found[cell] = min(found.get(cell, inf), since_s)
    return found


def _do(step: ReliefStep, now: datetime) -> str:
    try:
        match step:
            case NoAction(why=why):
                return why
            case AddCell(name=name, why=why):
                add_cell(name=name, by=None, now=now, why=why, partitions=partitions_of(step.cell))
                return f"cell {name} is being created"
            case MigratePipe(pipe=id_, target=target, why=why):
                pipe = Pipe.objects.get(id=id_)
                request_migration(pipe=pipe, target=Cell.objects.get(id=target), reason=why, by=None, now=now)
                return f"a migration of pipe {pipe.name} to cell {target} was requested"
    except ServiceError as exc:  # a person was faster, or messages of the two cells could not be distinguished
        log.warning("not relieved", cell=step.cell, why=str(exc))
        return str(exc)
