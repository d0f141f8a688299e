"""Journey of one unit through the ledger: its facts in order of travel, and its bins now. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from dataplane.ledger.bins import Bin, BucketAccount, BucketFacts, derive
from dataplane.ledger.facts import ACKED, DEDUP, INGEST, PROCESS, SEEN, Fact, FactKey, life_of
from dataplane.names import PROCESS_NODES, transform_node, transmit_node

_UPSTREAM: Final = (INGEST, DEDUP, *PROCESS_NODES[:3], PROCESS)
_SENT: Final = (ACKED, SEEN)
# Within a round a unit is first redriven, parked or held, then released.
_IN_A_ROUND: Final = (Fact.REDRIVEN, Fact.PARKED, Fact.HELD, Fact.RELEASED)
_LAST: Final = 1 << 31


def facts_in_order(books: BucketFacts, position: int, child: int, destination: str) -> list[FactKey]:
    """Return the facts of a unit up to and at one destination, in order of travel; "" means up to the route only."""
    nodes = [*_UPSTREAM, transform_node(destination), transmit_node(destination)] if destination else [*_UPSTREAM]
    found = [
        key
        for key, positions in books.facts.items()
        if key.node in nodes and key.child == (0 if key.node == INGEST else child) and position in positions
    ]
    redriven = sorted(_round(key) for key in found if key.fact == Fact.REDRIVEN)
    return sorted(found, key=lambda key: (nodes.index(key.node), *_sort_key(key, redriven)))


def last_node(facts: Sequence[FactKey]) -> str:
    """Return the node that saw a unit last, from its facts in order of travel; a message's first node is ingest.

    The fact "passed every stage of process" has a node of its own; its last stage is the route.
    """
    node = facts[-1].node if facts else INGEST
    return PROCESS_NODES[2] if node == PROCESS else node


def bins_of(books: BucketFacts, position: int, child: int = 0) -> dict[str, Bin]:
    """Return the unit's bin before the route (under "") and at each destination where it is due."""
    return {name: bin_ for name, bin_, number in units_at(derive(books), position) if number == child}


def units_at(account: BucketAccount, position: int) -> Iterator[tuple[str, Bin, int]]:
    """Yield destination ("" before the route), bin and child of each unit of the message at a position."""
    for name, bins in {"": account.upstream, **account.destinations}.items():
        for bin_, units in bins.items():
            yield from ((name, bin_, child) for child, positions in units.items() if position in positions)


def _sort_key(key: FactKey, redriven: list[int]) -> tuple[int, int]:
    """Return the sort key of a fact among those of its node; `redriven`: the rounds in which the unit was redriven."""
    fact = Fact(key.fact)
    if fact is Fact.SENT:
        return 0, _SENT.index(key.detail) if key.detail in _SENT else 0
    if fact in _IN_A_ROUND:
        return _round(key), _IN_A_ROUND.index(fact)
    if fact is Fact.DEAD:
        return next((round_ for round_ in redriven if round_ > life_of(key.detail)), _LAST), -1
    return _LAST, 0


def _round(key: FactKey) -> int:
    return int(key.detail) if key.detail.isdecimal() else 0
