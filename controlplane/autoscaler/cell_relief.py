"""The last level of scaling: decides what to do if a cell has its maximum of lanes and they are not enough. Pure.

A pipe is migrated, under traffic, to the cell of its tenant's shard with the least traffic; if no cell would then have
clearly less traffic than this one has now, a cell is added. So a pipe never migrates to a cell that it would have to
leave again: this cell's lanes are short at its present traffic, and the other cell ends well below that. One pipe
migrates at a time, the largest that fits, and nothing else changes before its effect can be seen.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Final

from msgspec import Struct

from mgmt.cells.placement import NewPipe, PlacementPolicy, allowed

PATIENCE_S: Final = 300.0  # lanes may still be added elsewhere, a burst may end: cells are slow to start, and stay
SETTLES_S: Final = 600.0  # before the effect of a migration is seen in the figures
BELOW: Final = 0.8  # the target may then have this share of the short cell's traffic
WORTH: Final = 0.05  # a pipe must have this share of the cell's traffic to be worth a migration
NAMES_TRIED: Final = 100


class PipeLoad(Struct, frozen=True):
    """A pipe: events per second, and why it cannot be migrated ("" if it can)."""

    id: str
    tenant: str
    per_s: float
    unfit: str = ""


class CellLoad(Struct, frozen=True):
    """A cell with its pipes.

    short_s:           seconds for which it has needed more lanes than its maximum; 0: they are enough
    stable:            the Observer's verdict on it is stable
    since_migration_s: seconds since a pipe last migrated to or from it
    refused:           why the interlocks refuse to scale it now, in words; "" if they do not
    """

    id: str
    pipes: Sequence[PipeLoad] = ()
    short_s: float = 0.0
    stable: bool = True
    since_migration_s: float = inf
    refused: str = ""

    @property
    def per_s(self) -> float:
        """Events per second of all its pipes."""
        return sum(pipe.per_s for pipe in self.pipes)


class CellFleet(Struct, frozen=True):
    """All cells. `dedicated`: cell -> the tenant that it is reserved for; `most`: maximum of cells open to all."""

    cells: Sequence[CellLoad]
    dedicated: Mapping[str, str] = {}
    placing: PlacementPolicy = PlacementPolicy()
    most: int = 1

    @property
    def open_to_all(self) -> list[str]:
        """Ids of the cells that are not dedicated to a tenant."""
        return [cell.id for cell in self.cells if cell.id not in self.dedicated]


class MigratePipe(Struct, frozen=True):
    """Migrate a pipe from the cell to another."""

    cell: str
    pipe: str
    target: str
    why: str


class AddCell(Struct, frozen=True):
    """Add a cell; once it runs, a pipe migrates there."""

    cell: str
    name: str
    why: str


class NoAction(Struct, frozen=True):
    """Do nothing for the cell now, and why."""

    cell: str
    why: str


ReliefStep = MigratePipe | AddCell | NoAction


def relief_steps(fleet: CellFleet) -> Iterator[ReliefStep]:
    """Yield one step for each short cell, the one short for longest first; at most one step is not NoAction."""
    done = False
    for cell in sorted((cell for cell in fleet.cells if cell.short_s > 0), key=lambda cell: -cell.short_s):
        step = _step(fleet, cell)
        if done and not isinstance(step, NoAction):
            step = NoAction(cell.id, "another cell is handled first")
        done = done or not isinstance(step, NoAction)
        yield step


def _step(fleet: CellFleet, cell: CellLoad) -> ReliefStep:
    if why := _why_not_yet(cell):
        return NoAction(cell.id, why)
    movable = (pipe for pipe in cell.pipes if not pipe.unfit and WORTH <= pipe.per_s / (cell.per_s or 1) <= BELOW)
    fitting = sorted(movable, key=lambda pipe: (-pipe.per_s, pipe.id))
    for pipe in fitting:
        if target := _target(fleet, cell, pipe):
            return MigratePipe(cell.id, pipe.id, target, f"cell {cell.id} has its maximum of lanes and needs more")
    if why := _why_no_cell(fleet, cell) if fitting else _why_none(cell):
        return NoAction(cell.id, why)
    why = f"cell {cell.id} has its maximum of lanes, and no other cell has room for one of its pipes"
    return AddCell(cell.id, _name(fleet, fitting), why)


def _why_not_yet(cell: CellLoad) -> str:
    if cell.refused:
        return cell.refused
    if cell.since_migration_s < SETTLES_S:
        return "a pipe was migrated recently, and the effect is not measurable yet"
    return f"a pipe is migrated if this lasts for {PATIENCE_S / 60:.0f} min" if cell.short_s < PATIENCE_S else ""


def _target(fleet: CellFleet, source: CellLoad, pipe: PipeLoad) -> str:
    """Return the cell with the least traffic on which the pipe may be placed and which has room for it; "" if none."""
    new = NewPipe(pipe.id, pipe.tenant)
    candidates = allowed(new, [cell.id for cell in fleet.cells], fleet.placing, fleet.dedicated)
    fit = [
        cell
        for cell in fleet.cells
        if cell.id in candidates
        and cell.id != source.id
        and cell.stable
        and not (cell.short_s or cell.refused)
        and cell.since_migration_s >= SETTLES_S
        and cell.per_s + pipe.per_s <= BELOW * source.per_s
    ]
    return min(fit, key=lambda cell: (cell.per_s, cell.id)).id if fit else ""


def _why_none(cell: CellLoad) -> str:
    busy = [pipe for pipe in cell.pipes if pipe.per_s > 0]
    if len(busy) <= 1:
        return "it has one busy pipe, and a migration would not reduce the load of that pipe"
    unfit = next((f"{pipe.id}: {pipe.unfit}" for pipe in busy if pipe.unfit), "")
    return f"none of its pipes can be migrated ({unfit})" if unfit else "one pipe has nearly all of the traffic"


def _why_no_cell(fleet: CellFleet, cell: CellLoad) -> str:
    if cell.id in fleet.dedicated:
        return "no other cell dedicated to the tenant has room: add one"
    if len(fleet.open_to_all) >= fleet.most:
        return f"no other cell has room, and the maximum of cells is {fleet.most} (PENSTOCK_CELLS_MAX)"
    empty = [one.id for one in fleet.cells if not one.pipes and one.id in fleet.open_to_all]
    return f"cell {empty[0]} is not ready yet, or not in the shard of any of its tenants" if empty else ""


def _name(fleet: CellFleet, pipes: Sequence[PipeLoad]) -> str:
    """Return a free name that puts the new cell in the shard of a pipe's tenant, of the largest pipe possible."""
    known = {cell.id for cell in fleet.cells}
    names = [name for number in range(1, NAMES_TRIED) if (name := f"c{number}") not in known]
    for pipe in pipes:
        for name in names:
            if name in allowed(NewPipe(pipe.id, pipe.tenant), [*fleet.open_to_all, name], fleet.placing, {}):
                return name
    return names[0]
