"""Which cell takes the next pipe. Pure.

A tenant's pipes are placed within its shard only: a few cells that a hash gives it for good. Two tenants rarely have
the same ones, so what a noisy tenant does to its cells reaches few others in all of theirs. Source: Colm MacCarthaigh,
"Workload isolation using shuffle-sharding", Amazon Builders' Library. The hash is rendezvous hashing (Thaler and
Ravishankar, 1998): a new cell enters the shards in which it comes first, and changes no other.

Within the shard the cell takes it that has the most room left: what its lanes were measured to take, less what its
pipes took of late. As long as a cell of the shard was never rated, the fewest pipes decide.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from statistics import median
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

Cores = Mapping[str, float]  # of CPU, by kind of lane
RATED_KINDS: Final = ("process", "transmit")


class PlacingPolicy(Struct, frozen=True):
    """How pipes are placed.

    shard:    cells that a tenant's pipes may be on, besides those that are dedicated to it
    headroom: share of what a cell takes that placing keeps free
    peak:     how many times the mean of its busiest day a pipe is taken to need: a day has a busy hour
    """

    shard: int = 2
    headroom: float = 0.3
    peak: float = 3.0

    def __post_init__(self) -> None:
        """Raises ValueError for what would leave no pipe a place."""
        if self.shard < 1:
            raise ValueError(f"PENSTOCK_PLACING_SHARD: needs 1 or more, got {self.shard}")
        if not 0 <= self.headroom < 1:
            raise ValueError(f"PENSTOCK_PLACING_HEADROOM: needs 0 or more and less than 1, got {self.headroom}")


class CellRoom(Struct, frozen=True):
    """A cell. `used`: what its pipes need; `capacity`: what all lanes it may have can do, {} if it was never rated."""

    id: str
    pipes: int = 0
    used: Cores = {}
    capacity: Cores = {}


class NewPipe(Struct, frozen=True):
    """A pipe that has no cell yet, and what it is taken to need."""

    id: str
    tenant: str
    need: Cores = {}


class Choice(Struct, frozen=True):
    """The cell, among those it could have been, and by what it was chosen; `full`: none had room, it has the most."""

    cell: str
    among: Sequence[str]
    by: Literal["room", "pipes", "full"]


def place(
    pipes: Iterable[NewPipe],
    cells: Iterable[CellRoom],
    policy: PlacingPolicy,
    dedicated: Mapping[str, str] | None = None,
) -> dict[str, Choice]:
    """A cell for each pipe, one after another, each seeing those before it; pipes for which there is none are left out.

    dedicated: cell -> the pipe or tenant that it is kept for. Nobody else is placed there, and they nowhere else.
    """
    rooms = {cell.id: cell for cell in cells}
    chosen: dict[str, Choice] = {}
    for pipe in pipes:
        among = allowed(pipe, rooms, policy, dedicated or {})
        if not among:
            continue
        choice = chosen[pipe.id] = _choose(pipe, [rooms[name] for name in among], policy)
        rooms[choice.cell] = _with(rooms[choice.cell], pipe)
    return chosen


def allowed(pipe: NewPipe, cells: Collection[str], policy: PlacingPolicy, dedicated: Mapping[str, str]) -> list[str]:
    """The cells that the pipe may be placed on, by name."""
    own = [cell for cell in cells if dedicated.get(cell) in (pipe.id, pipe.tenant)]
    return sorted(own) or shard_of(pipe.tenant, [cell for cell in cells if cell not in dedicated], policy.shard)


def shard_of(tenant: str, cells: Iterable[str], size: int) -> list[str]:
    """The tenant's cells, by name: always the same of the same cells."""

    def score(cell: str) -> bytes:
        return blake2b(f"{tenant}/{cell}".encode(), digest_size=16).digest()

    return sorted(sorted(cells, key=score)[:size])


def share_of(cell: CellRoom, more: Cores) -> float:
    """How full the cell is with `more` on it: the fullest kind of its lanes decides. 1 is all that it takes."""
    return max((cell.used.get(kind, 0.0) + more.get(kind, 0.0)) / most for kind, most in cell.capacity.items())


def usual_need(tenants: Mapping[str, str], needs: Mapping[str, Cores], tenant: str) -> Cores:
    """What a pipe that nothing is known of is taken to need: the median of its tenant's pipes, else of all, by kind.

    tenants: pipe -> its tenant; needs: of the pipes that did something.
    """
    known = [need for pipe, need in needs.items() if tenants.get(pipe) == tenant] or list(needs.values())
    return {kind: median(need.get(kind, 0.0) for need in known) for kind in RATED_KINDS} if known else {}


def _choose(pipe: NewPipe, cells: Sequence[CellRoom], policy: PlacingPolicy) -> Choice:
    among = [cell.id for cell in cells]
    if not all(cell.capacity for cell in cells):
        return Choice(min(cells, key=lambda cell: (cell.pipes, cell.id)).id, among, "pipes")
    shares = {cell.id: share_of(cell, pipe.need) for cell in cells}
    best = min(cells, key=lambda cell: (shares[cell.id], cell.pipes, cell.id)).id
    return Choice(best, among, "room" if shares[best] <= 1 - policy.headroom else "full")


def _with(cell: CellRoom, pipe: NewPipe) -> CellRoom:
    kinds = {*cell.used, *pipe.need}
    used = {kind: cell.used.get(kind, 0.0) + pipe.need.get(kind, 0.0) for kind in kinds}
    return replace(cell, pipes=cell.pipes + 1, used=used)
