"""Reads the cells as the last level of scaling sees them, and does what it decides there."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import inf
from typing import Final

import structlog

from controlplane.autoscaler.spreading import AddCell, CellLoad, Fleet, MovePipe, PipeLoad, Say, Step, spread
from controlplane.interlocks import why_not
from controlplane.leases import cell_states
from mgmt.models import Cell, Pipe, Relocation, ScaleGroup, Verdict
from mgmt.provisioning.placing import PlacingPolicy
from mgmt.queries.pipes import rates_of
from mgmt.services import Refused, add_cell, request_relocation
from mgmt.services.relocations import why_busy, why_unfit

LOOKED_AT: Final = 20  # pipes of a cell; a twenty-first has less than a twentieth of its traffic
NOT_ASKED: Final = "others have more"
log = structlog.get_logger(__name__)


def relieve(placing: PlacingPolicy, most: int, now: datetime) -> Mapping[str, str]:
    """Do what is due for cells that are short of lanes; for each of them what was done, or why nothing, in words.

    Nothing is asked of the rows but one query, as long as none is short.
    """
    short = _short(now)
    if not short:
        return {}
    return {step.cell: _do(step, now) for step in spread(_fleet(short, placing, most, now))}


def _short(now: datetime) -> dict[str, float]:
    """Cells of which a group has asked for more than its most, and for how many seconds."""
    found: dict[str, float] = {}
    for cell, memory in ScaleGroup.objects.filter(cell__in=Cell.objects.all()).values_list("cell_id", "memory"):
        if since := memory.get("short_since_s"):
            found[cell] = max(found.get(cell, 0.0), now.timestamp() - since)
    return found


def _fleet(short: Mapping[str, float], placing: PlacingPolicy, most: int, now: datetime) -> Fleet:
    pipes: dict[str, list[Pipe]] = defaultdict(list)
    for pipe in Pipe.objects.exclude(cell=None).exclude(state=Pipe.State.CLOSED).order_by("id"):
        pipes[str(pipe.cell_id)].append(pipe)
    rates = rates_of([pipe.id for of_cell in pipes.values() for pipe in of_cell], now)
    stable = set(Verdict.objects.filter(state=Verdict.State.STABLE).values_list("cell_id", flat=True))
    states, rests = cell_states(now), _rests(now)
    kept_for = dict(Cell.objects.order_by("id").values_list("id", "dedicated_to"))
    cells = [
        CellLoad(
            id=cell,
            pipes=_loads(pipes[cell], rates, is_short=cell in short),
            short_s=short.get(cell, 0.0),
            stable=cell in stable,
            rests_s=rests.get(cell, inf),
            refused=refusal.why if (refusal := why_not("scale", states[cell], protective=True)) else "",
        )
        for cell in kept_for
    ]
    return Fleet(cells, {cell: tenant for cell, tenant in kept_for.items() if tenant}, placing, most)


def _loads(pipes: Sequence[Pipe], rates: Mapping[str, float], *, is_short: bool) -> list[PipeLoad]:
    """Whether it can be moved is asked of the busiest pipes of a cell that is short: it means to read their specs."""
    busiest = sorted(pipes, key=lambda pipe: -rates[pipe.id])[:LOOKED_AT] if is_short else []
    unfit = {pipe.id: why_unfit(pipe) or why_busy(pipe) for pipe in busiest}
    return [PipeLoad(pipe.id, pipe.tenant_id, rates[pipe.id], unfit.get(pipe.id, NOT_ASKED)) for pipe in pipes]


def _rests(now: datetime) -> dict[str, float]:
    """For how long no pipe has come to a cell or gone from it; one that is under way does neither yet, and both."""
    found: dict[str, float] = {}
    rows = Relocation.objects.order_by("-id").values_list("source", "target", "finished_at", "switched_at")
    for source, target, finished_at, switched_at in rows[:100]:
        if finished_at is None or switched_at is not None:  # what was given up has moved nothing
            rest_s = (now - finished_at).total_seconds() if finished_at else 0.0
            for cell in (source, target):
                found[cell] = min(found.get(cell, inf), rest_s)
    return found


def _do(step: Step, now: datetime) -> str:
    try:
        match step:
            case Say(why=why):
                return why
            case AddCell(name=name, why=why):
                add_cell(name=name, by=None, now=now, why=why)
                return f"cell {name} is being made"
            case MovePipe(pipe=id_, target=target, why=why):
                pipe = Pipe.objects.get(id=id_)
                request_relocation(pipe=pipe, target=Cell.objects.get(id=target), reason=why, by=None, now=now)
                return f"pipe {pipe.name} is to be moved to cell {target}"
    except Refused as exc:  # somebody was faster, or the two cells cannot tell their messages apart
        log.warning("not relieved", cell=step.cell, why=str(exc))
        return str(exc)
