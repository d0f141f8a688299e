"""What is done where a cell has all the lanes that it may have, and they are not enough: the last level. Pure.

A pipe leaves it, under traffic, for the cell of its tenant's shard with the least traffic; where there is none that
would have clearly less than this one has now, a cell is made. So a pipe never goes where it would have to leave again:
lanes of this cell were short at what comes to it now, and the other one ends well below that. One pipe at a time, the
largest that fits, and nothing more before what it brought can be seen.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Final

from msgspec import Struct

from mgmt.provisioning.placing import NewPipe, PlacingPolicy, allowed

PATIENCE_S: Final = 300.0  # lanes may still be added elsewhere, a burst may end: cells are slow to come and stay
SETTLES_S: Final = 600.0  # before what a move brought is seen in the figures
BELOW: Final = 0.8  # of what comes to the cell that is short: what the other one may then have
WORTH: Final = 0.05  # of it: what a pipe must have to be moved for it
NAMES_TRIED: Final = 100


class PipeLoad(Struct, frozen=True):
    """A pipe: events a second, and why it cannot be moved ("" if it can)."""

    id: str
    tenant: str
    per_s: float
    unfit: str = ""


class CellLoad(Struct, frozen=True):
    """A cell with its pipes.

    short_s: for how long lanes have been asked for beyond the most; 0: they are enough
    rests_s: for how long no pipe has come or gone        refused: who keeps it from being scaled now, in words
    """

    id: str
    pipes: Sequence[PipeLoad] = ()
    short_s: float = 0.0
    stable: bool = True
    rests_s: float = inf
    refused: str = ""

    @property
    def per_s(self) -> float:
        """What comes to all of its pipes."""
        return sum(pipe.per_s for pipe in self.pipes)


class Fleet(Struct, frozen=True):
    """All cells. `dedicated`: cell -> the tenant that it is kept for; `most`: cells that may be open to all."""

    cells: Sequence[CellLoad]
    dedicated: Mapping[str, str] = {}
    placing: PlacingPolicy = PlacingPolicy()
    most: int = 1

    @property
    def open_to_all(self) -> list[str]:
        """The others."""
        return [cell.id for cell in self.cells if cell.id not in self.dedicated]


class MovePipe(Struct, frozen=True):
    """A pipe is to leave the cell for another."""

    cell: str
    pipe: str
    target: str
    why: str


class AddCell(Struct, frozen=True):
    """A cell is to be made; once it runs, a pipe goes there."""

    cell: str
    name: str
    why: str


class Say(Struct, frozen=True):
    """Why nothing is done for the cell now."""

    cell: str
    why: str


Step = MovePipe | AddCell | Say


def spread(fleet: Fleet) -> Iterator[Step]:
    """One step for each cell that is short, the longest first; not more than one that does something."""
    done = False
    for cell in sorted((cell for cell in fleet.cells if cell.short_s > 0), key=lambda cell: -cell.short_s):
        step = _step(fleet, cell)
        if done and not isinstance(step, Say):
            step = Say(cell.id, "another cell is relieved first")
        done = done or not isinstance(step, Say)
        yield step


def _step(fleet: Fleet, cell: CellLoad) -> Step:
    if why := _why_not_yet(cell):
        return Say(cell.id, why)
    movable = (pipe for pipe in cell.pipes if not pipe.unfit and WORTH <= pipe.per_s / (cell.per_s or 1) <= BELOW)
    fitting = sorted(movable, key=lambda pipe: (-pipe.per_s, pipe.id))
    for pipe in fitting:
        if target := _target(fleet, cell, pipe):
            return MovePipe(cell.id, pipe.id, target, f"cell {cell.id} has all the lanes it may have, and needs more")
    if why := _why_no_cell(fleet, cell) if fitting else _why_none(cell):
        return Say(cell.id, why)
    why = f"cell {cell.id} has all the lanes it may have, and no other has room for one of its pipes"
    return AddCell(cell.id, _name(fleet, fitting), why)


def _why_not_yet(cell: CellLoad) -> str:
    if cell.refused:
        return cell.refused
    if cell.rests_s < SETTLES_S:
        return "a pipe has been moved from or to it, and what that brings is not seen yet"
    return f"a pipe leaves it if that lasts for {PATIENCE_S / 60:.0f} min" if cell.short_s < PATIENCE_S else ""


def _target(fleet: Fleet, source: CellLoad, pipe: PipeLoad) -> str:
    """The cell with the least traffic among those that the pipe may be on and that take it with ease; "" if none."""
    new = NewPipe(pipe.id, pipe.tenant)
    among = allowed(new, [cell.id for cell in fleet.cells], fleet.placing, fleet.dedicated)
    fit = [
        cell
        for cell in fleet.cells
        if cell.id in among
        and cell.id != source.id
        and cell.stable
        and not (cell.short_s or cell.refused)
        and cell.rests_s >= SETTLES_S
        and cell.per_s + pipe.per_s <= BELOW * source.per_s
    ]
    return min(fit, key=lambda cell: (cell.per_s, cell.id)).id if fit else ""


def _why_none(cell: CellLoad) -> str:
    busy = [pipe for pipe in cell.pipes if pipe.per_s > 0]
    if len(busy) <= 1:
        return "it has one busy pipe, which another cell would not make less"
    unfit = next((f"{pipe.id}: {pipe.unfit}" for pipe in busy if pipe.unfit), "")
    return f"none of its pipes can leave it ({unfit})" if unfit else "nearly all that comes is one pipe's"


def _why_no_cell(fleet: Fleet, cell: CellLoad) -> str:
    if cell.id in fleet.dedicated:
        return "no other cell that is kept for its tenant has room: add one"
    if len(fleet.open_to_all) >= fleet.most:
        return f"no other cell has room, and {fleet.most} is the most there may be (PENSTOCK_CELLS_MAX)"
    empty = [one.id for one in fleet.cells if not one.pipes and one.id in fleet.open_to_all]
    return f"cell {empty[0]} is not ready yet, or in the shard of none of its tenants" if empty else ""


def _name(fleet: Fleet, pipes: Sequence[PipeLoad]) -> str:
    """A name that is free, and by which the cell is in the shard of the largest pipe's tenant that can be had."""
    known = {cell.id for cell in fleet.cells}
    names = [name for number in range(1, NAMES_TRIED) if (name := f"c{number}") not in known]
    for pipe in pipes:
        for name in names:
            if name in allowed(NewPipe(pipe.id, pipe.tenant), [*fleet.open_to_all, name], fleet.placing, {}):
                return name
    return names[0]
