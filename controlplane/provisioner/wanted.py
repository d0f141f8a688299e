"""Which control records the rows ask for, by key and version. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from controlplane.control_topic import end_of
from controlplane.provisioner.snapshot import RevisionView, Snapshot
from dataplane.names import WHOLE

OPEN = ("requested", "ramping")


def cell_key(cell: str) -> str:
    """Key of a cell's record."""
    return f"cell/{cell}"


def pipe_key(pipe: str) -> str:
    """Key of a pipe's record."""
    return f"pipe/{pipe}"


def plan_key(pipe: str, number: int) -> str:
    """Key of a revision's plan."""
    return f"plan/{pipe}@{number}"


def destination_key(pipe: str, name: str) -> str:
    """Key of a destination's record."""
    return f"destination/{pipe}/{name}"


def schema_key(pipe: str, source: str) -> str:
    """Key of the record of a source's schema."""
    return f"schema/{pipe}/{source}"


def digest_key(digest: str) -> str:
    """Key of an API key's record."""
    return f"key/{digest}"


def move_key(move: str) -> str:
    """Key of a move's record."""
    return f"move/{move}"


def quota_key(tenant: str) -> str:
    """Key of the record of a tenant's own limits."""
    return f"quota/{tenant}"


def wanted_versions(snapshot: Snapshot) -> dict[str, int]:
    """Every record that should be in the control topic, in the order in which they are to be written.

    Moves come last: what they bring back finds the state that their destination was given before them.
    A pipe's own record comes after its plans, schemas and destinations, and its keys last: who holds a key's record
    holds all that is needed to accept with it. A pipe has no record before a revision is ramping: nothing could run.
    """
    placed = {p.id for p in snapshot.pipes if p.cell is not None}
    routed = weights_by_pipe(snapshot.revisions)
    wanted = {quota_key(tenant): version for tenant, version in snapshot.quotas.items()}
    wanted |= {cell_key(c.id): c.version for c in snapshot.cells if c.bound}
    wanted |= {plan_key(r.pipe, r.number): 1 for r in snapshot.revisions if r.pipe in placed and r.state != "failed"}
    wanted |= {schema_key(s.pipe, s.name): s.version for s in snapshot.schemas if s.pipe in placed}
    wanted |= {destination_key(d.pipe, d.name): d.version for d in snapshot.destinations if d.pipe in placed}
    wanted |= {pipe_key(p.id): p.version for p in snapshot.pipes if p.id in placed and p.id in routed}
    wanted |= {digest_key(k.name): k.version for k in snapshot.keys if k.pipe in placed}
    wanted |= {move_key(m.name): m.version for m in snapshot.moves if m.pipe in placed}
    return wanted


class Look(Struct, frozen=True):
    """A snapshot, and the records that its rows ask for: what is decided rests on both."""

    snapshot: Snapshot
    wanted: Mapping[str, int]

    def end_of(self, keys: Sequence[str]) -> int | None:
        """Where the records of these keys end in the control topic, or None while one of them is not there."""
        return end_of(keys, self.wanted, self.snapshot.published)


def weights_by_pipe(
    revisions: Iterable[RevisionView], shares: Mapping[int, int] | None = None
) -> dict[str, list[tuple[int, int]]]:
    """The share of each revision in its pipe's traffic: the newest ramping one's, then what is left to the live one.

    `shares`: those of ramps under way, by the revision's id; a revision that ramps without one takes everything.
    """
    shares = shares or {}
    ramping: dict[str, tuple[int, int]] = {}
    live: dict[str, int] = {}
    for revision in revisions:
        if revision.state == "ramping":
            mine = (revision.number, shares.get(revision.id, 0))
            ramping[revision.pipe] = max(mine, ramping.get(revision.pipe, mine))
        elif revision.state == "live":
            live[revision.pipe] = revision.number
    alone = {pipe: [(number, WHOLE)] for pipe, number in live.items()}
    return alone | {pipe: _weights(*mine, live.get(pipe)) for pipe, mine in ramping.items()}


def _weights(number: int, share: int, live: int | None) -> list[tuple[int, int]]:
    if not share or live is None:
        return [(number, WHOLE)]
    return [(number, share), (live, WHOLE - share)]
