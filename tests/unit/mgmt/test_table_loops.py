"""Loops of pipes through look-up tables."""

from collections.abc import Sequence

import pytest

from mgmt.lookups.loops import PipeTables, find_loop, tables_of


def tables(pipe: str, reads: str, writes: str) -> PipeTables:
    return PipeTables(pipe, frozenset(reads.split()), frozenset(writes.split()))


@pytest.mark.parametrize(
    ("own", "others", "loop"),
    [
        (("a", "a"), [], "a -> me -> a"),
        (("a", "b"), [], ""),
        (("a", ""), [("p", "b", "a")], ""),
        (("a", "b"), [("p", "b", "a")], "a -> me -> b -> p -> a"),
        (("a", "b"), [("p", "b", "c"), ("q", "c", "a")], "a -> me -> b -> p -> c -> q -> a"),
        (("a", "b"), [("p", "b", "c"), ("q", "c", "b")], ""),
        (("a", "b"), [("p", "b", "b c"), ("q", "c", "d")], ""),
        (("a x", "b"), [("p", "b", "x")], "x -> me -> b -> p -> x"),
        (("a", "b c"), [("p", "b", "d"), ("q", "c", "a"), ("r", "d", "a")], "a -> me -> c -> q -> a"),
    ],
)
def test_shortest_loop_is_found(own: tuple[str, str], others: Sequence[tuple[str, str, str]], loop: str):
    found = find_loop(tables("me", *own), [tables(*one) for one in others])
    assert " -> ".join(found) == loop


def test_only_sources_and_destinations_of_type_table_count():
    spec = {
        "sources": {"web": {"type": "http"}, "rows": {"type": "table", "table": "a"}},
        "destinations": {"crm": {"type": "http"}, "sums": {"type": "table", "table": "b"}},
        "enrich": [{"table": "c"}],
    }
    assert tables_of("me", spec) == tables("me", "a", "b")
