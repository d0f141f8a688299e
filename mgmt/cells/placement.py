"""Placement of new pipes on cells. Pure.

A tenant's pipes are placed within its shard only: a few cells that a hash assigns to it permanently. Two tenants rarely
have the same shard, so a noisy tenant affects few others on all of their cells. Source: Colm MacCarthaigh, "Workload
isolation using shuffle-sharding", Amazon Builders' Library. The hash is rendezvous hashing (Thaler and Ravishankar,
1998): a new cell enters only the shards in which it ranks first, and changes no other.

Within the shard, the cell with the most free capacity is chosen: the measured capacity of its lanes minus the recent
usage of its pipes. While any cell of the shard has no capacity test, the cell with the fewest pipes is chosen.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from statistics import median
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

Cores = Mapping[str, float]  # CPU cores by kind of lane
RATED_KINDS: Final = ("process", "transmit")


class PlacementPolicy(Struct, frozen=True):
    """Policy of placement.

    shard:    number of cells for a tenant's pipes, apart from cells that are dedicated to it
    headroom: share of a cell's capacity that placement keeps free
    peak:     factor from the mean of a pipe's busiest day to its assumed need, because a day has a busy hour
    """

    shard: int = 2
    headroom: float = 0.3
    peak: float = 3.0

    def __post_init__(self) -> None:
        """Raise ValueError for a policy with which no pipe could be placed."""
        if self.shard < 1:
            raise ValueError(f"PENSTOCK_PLACING_SHARD: needs 1 or more, got {self.shard}")
        if not 0 <= self.headroom < 1:
            raise ValueError(f"PENSTOCK_PLACING_HEADROOM: needs 0 or more and less than 1, got {self.headroom}")


class CellCapacity(Struct, frozen=True):
    """A cell. `used`: need of its pipes; `capacity`: of all lanes it may have, {} without a capacity test."""

    id: str
    pipes: int = 0
    used: Cores = {}
    capacity: Cores = {}


class NewPipe(Struct, frozen=True):
    """A pipe without a cell, and its assumed need."""

    id: str
    tenant: str
    need: Cores = {}


class PlacementChoice(Struct, frozen=True):
    """The chosen cell, the cells considered, and the criterion; `full`: the best of cells without headroom."""

    cell: str
    among: Sequence[str]
    by: Literal["room", "pipes", "full"]


def place(
    pipes: Iterable[NewPipe],
    cells: Iterable[CellCapacity],
    policy: PlacementPolicy,
    dedicated: Mapping[str, str] | None = None,
) -> dict[str, PlacementChoice]:
    """Choose a cell for each pipe in turn, each with the earlier choices counted. A pipe without a cell is left out.

    dedicated: cell -> the pipe or tenant to which it is dedicated. No other pipe is placed there, and these pipes are
               placed nowhere else.
    """
    by_name = {cell.id: cell for cell in cells}
    chosen: dict[str, PlacementChoice] = {}
    for pipe in pipes:
        among = allowed(pipe, by_name, policy, dedicated or {})
        if not among:
            continue
        choice = chosen[pipe.id] = _choose(pipe, [by_name[name] for name in among], policy)
        by_name[choice.cell] = _with(by_name[choice.cell], pipe)
    return chosen


def allowed(pipe: NewPipe, cells: Collection[str], policy: PlacementPolicy, dedicated: Mapping[str, str]) -> list[str]:
    """Return the names of the cells on which the pipe may be placed, sorted."""
    own = [cell for cell in cells if dedicated.get(cell) in (pipe.id, pipe.tenant)]
    return sorted(own) or shard_of(pipe.tenant, [cell for cell in cells if cell not in dedicated], policy.shard)


def shard_of(tenant: str, cells: Iterable[str], size: int) -> list[str]:
    """Return the names of the cells in the tenant's shard, sorted; deterministic for the same cells."""

    def score(cell: str) -> bytes:
        return blake2b(f"{tenant}/{cell}".encode(), digest_size=16).digest()

    return sorted(sorted(cells, key=score)[:size])


def share_of(cell: CellCapacity, more: Cores) -> float:
    """Return the utilization of the cell with `more` added, by its most utilized kind of lane; 1.0 is full."""
    return max((cell.used.get(kind, 0.0) + more.get(kind, 0.0)) / most for kind, most in cell.capacity.items())


def usual_need(tenants: Mapping[str, str], needs: Mapping[str, Cores], tenant: str) -> Cores:
    """Return the assumed need of a pipe without usage: the median over its tenant's pipes, else over all, by kind.

    tenants: pipe -> its tenant; needs: pipe -> its need, for pipes with usage.
    """
    known = [need for pipe, need in needs.items() if tenants.get(pipe) == tenant] or list(needs.values())
    return {kind: median(need.get(kind, 0.0) for need in known) for kind in RATED_KINDS} if known else {}


def _choose(pipe: NewPipe, cells: Sequence[CellCapacity], policy: PlacementPolicy) -> PlacementChoice:
    among = [cell.id for cell in cells]
    if not all(cell.capacity for cell in cells):
        return PlacementChoice(min(cells, key=lambda cell: (cell.pipes, cell.id)).id, among, "pipes")
    shares = {cell.id: share_of(cell, pipe.need) for cell in cells}
    best = min(cells, key=lambda cell: (shares[cell.id], cell.pipes, cell.id)).id
    return PlacementChoice(best, among, "room" if shares[best] <= 1 - policy.headroom else "full")


def _with(cell: CellCapacity, pipe: NewPipe) -> CellCapacity:
    kinds = {*cell.used, *pipe.need}
    used = {kind: cell.used.get(kind, 0.0) + pipe.need.get(kind, 0.0) for kind in kinds}
    return replace(cell, pipes=cell.pipes + 1, used=used)
