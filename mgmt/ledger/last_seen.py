"""Description of where a lost message was last seen: node, as the loss table names it, and event there. Pure.

Pages, alerts and the API all use this description, so that they agree.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from dataplane.ledger.bins import OVERWRITTEN, BucketFacts
from dataplane.ledger.facts import ACKED, BULK, DEDUP, EXPLODED, PROCESS, SEEN, SLOW, Fact, FactKey
from dataplane.ledger.trace import facts_in_order, last_node

_PASSED: Final = "passed its offset and reported nothing further."
_OVERWRITTEN: Final = "accepted by ingest. Kafka lost the record and reused its offset for another message."
_BY_FACT: Final = {
    (Fact.SENT, ACKED): "accepted by ingest. The process lanes passed its offset without reading it.",
    (Fact.SENT, SEEN): "read by a process lane, which reported nothing further.",
    (Fact.SENT, SLOW): f"passed to the slow lane, which {_PASSED}",
    (Fact.SENT, BULK): f"passed to bulk execution, which {_PASSED}",
    (Fact.SENT, EXPLODED): f"created by an explode step. The process lanes {_PASSED}",
    (Fact.PARKED, ""): "scheduled for a retry. The retrier passed its offset and has no record of it.",
    (Fact.RELEASED, ""): "returned by the retrier. The retry lane passed its offset without reading it.",
    (Fact.REDRIVEN, ""): "redriven from the dead letters. The retry lane passed its offset without reading it.",
    (Fact.HELD, ""): "held. It is no longer in the held topic, which has deleted older messages.",
}
_BY_NODE: Final = {
    DEDUP: "handed to deduplication. No later stage reported it.",
    PROCESS: "processed up to the route. No destination reported it.",
}


class LastSeen(NamedTuple):
    """Node that saw a message last, and what happened there."""

    node: str
    words: str


def last_seen(facts: Sequence[FactKey]) -> LastSeen:
    """Return where a unit was last seen, from the ledger's ordered facts."""
    if not facts:
        return LastSeen(last_node(facts), "not reported by any node.")
    return LastSeen(last_node(facts), _words(facts[-1]))


def last_seen_of(books: BucketFacts, position: int, child: int, destination: str) -> LastSeen:
    """Return where a unit was last seen on its path to a destination, "" for the path up to the route."""
    found = last_seen(facts_in_order(books, position, child, destination))
    return found._replace(words=_OVERWRITTEN) if child == OVERWRITTEN else found


def _words(key: FactKey) -> str:
    known = _BY_FACT.get((Fact(key.fact), key.detail)) or _BY_FACT.get((Fact(key.fact), "")) or _BY_NODE.get(key.node)
    if known:
        return known
    if key.node.startswith("transform:"):
        return "processed for the destination. The transmit lanes passed its offset without reading it."
    return f"{key.fact} there. Nothing further was reported."
