"""Loops of pipes through look-up tables: a pipe writes a table whose changes return to it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class PipeTables(NamedTuple):
    """Tables that a pipe reads the changes of, and those that it writes."""

    pipe: str
    reads: frozenset[str]
    writes: frozenset[str]


def tables_of(pipe: str, spec: Mapping[str, Any]) -> PipeTables:
    """Return the tables in the document of a spec."""
    reads, writes = (table_names(spec.get(field, {})) for field in ("sources", "destinations"))
    return PipeTables(pipe, reads, writes)


def merged(own: PipeTables, revisions: Iterable[PipeTables]) -> PipeTables:
    """Return the tables of a pipe's next revision together with those of its revisions in use."""
    every = [own, *revisions]
    reads = frozenset(table for one in every for table in one.reads)
    return PipeTables(own.pipe, reads, frozenset(table for one in every for table in one.writes))


def find_loop(own: PipeTables, others: Sequence[PipeTables]) -> list[str]:
    """Return a shortest loop as table, pipe, table, ..., from a table that the pipe reads back to it; [] if none.

    Every source of a pipe is taken to reach every destination, because routes depend on the events.
    """
    for table in sorted(own.reads):
        chains = [[table, own.pipe, written] for written in sorted(own.writes)]
        reached = set(own.writes)
        while chains:
            if found := next((chain for chain in chains if chain[-1] == table), None):
                return found
            chains = list(_longer(chains, others, reached))
    return []


def _longer(chains: Iterable[list[str]], others: Sequence[PipeTables], reached: set[str]) -> Iterable[list[str]]:
    """Yield the chains with one more pipe, to tables that were not reached yet."""
    for chain in chains:
        for pipe in (one for one in others if chain[-1] in one.reads):
            for written in sorted(pipe.writes - reached):
                reached.add(written)
                yield [*chain, pipe.pipe, written]


def table_names(parts: Mapping[str, Any]) -> frozenset[str]:
    """Return the tables of the sources, or of the destinations, in the document of a spec."""
    return frozenset(part["table"] for part in parts.values() if part.get("type") == "table")
