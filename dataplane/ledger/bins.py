"""Bins: where each unit of a bucket is, derived from the facts. The exact rules are those of the ledger algebra:

first match wins: delivered > filtered > duplicate > dead > cancelled > held > retrying > queued > lost. A unit that the
next node has not yet passed is queued, not lost; one that nobody settled although the next node is past it is lost.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field
from pyroaring import BitMap64

from dataplane.ledger.facts import ACKED, INGEST, PROCESS, SEEN, Fact, FactKey
from dataplane.ledger.units import partition_base
from dataplane.ledger.unitset import UnitSet, union
from dataplane.names import PROCESS_NODES, Purpose, transform_node, transmit_node

Place = tuple[str, int]  # (topic, partition)
_TRANSFORM = transform_node("")
_TRANSMIT = transmit_node("")


class Bin(StrEnum):
    """Exactly one for each unit, in the order in which they are tried."""

    DELIVERED = "delivered"
    FILTERED = "filtered"
    DUPLICATE = "duplicate"
    DEAD = "dead"
    CANCELLED = "cancelled"
    HELD = "held"
    RETRYING = "retrying"
    QUEUED = "queued"
    LOST = "lost"


SETTLED: tuple[Bin, ...] = (Bin.DELIVERED, Bin.FILTERED, Bin.DUPLICATE, Bin.DEAD, Bin.CANCELLED)
OPEN: tuple[Bin, ...] = (Bin.RETRYING, Bin.QUEUED)
Bins = dict[Bin, UnitSet]


class Books(Struct, frozen=True):
    """Everything known of one (pipe, bucket).

    facts:   the merged sets
    reach:   per topic partition the highest offset that carries a unit of this bucket
    passed:  per topic partition the offset below which its lanes have settled everything
    topics:  the names of the cell's topics, every generation that may hold a unit of the bucket
    """

    facts: Mapping[FactKey, BitMap64]
    reach: Mapping[Place, int]
    passed: Mapping[Place, int]
    topics: Mapping[Purpose, Sequence[tuple[str, int]]]  # purpose -> (name, generation)


class NodeLine(Struct, frozen=True):
    """One node of the loss table: units that reached it, and units lost on the way to or in it."""

    node: str
    arrived: UnitSet
    lost: UnitSet


class Account(Struct, frozen=True):
    """Where every unit of one (pipe, bucket) is.

    upstream:     units that ended, wait or were lost before the route chose destinations for them
    destinations: for each destination, the units that are due there
    """

    acked: UnitSet
    unacked: UnitSet
    upstream: Bins
    destinations: dict[str, Bins]
    nodes: list[NodeLine] = field(default_factory=list)

    @property
    def sent(self) -> UnitSet:
        """What ingest sent: ACKed, or seen by process all the same."""
        return self.acked | self.unacked

    def count(self, name: Bin) -> int:
        """Units in a bin, over upstream and all destinations."""
        return len(self.upstream[name]) + sum(len(bins[name]) for bins in self.destinations.values())


def derive(books: Books) -> Account:
    """The account of one bucket. Pure: the same facts, in whatever order they came, give the same account."""
    acked = _facts(books, INGEST, Fact.SENT, ACKED)
    seen = _facts(books, INGEST, Fact.SENT, SEEN)
    sent = acked | seen
    through = _facts(books, PROCESS, Fact.SENT)
    upstream = _upstream_bins(books, sent, through)
    names = _destination_names(books)
    destinations = {name: _destination_bins(books, name) for name in names}
    return Account(
        acked=acked,
        unacked=seen - acked,
        upstream=upstream,
        destinations=destinations,
        nodes=_node_lines(books, sent, upstream, destinations),
    )


def losses(arrived: Sequence[UnitSet], settled: Sequence[UnitSet]) -> list[UnitSet]:
    """Units lost at each node: arrived at the one before, and neither arrived nor settled here (the talk's loss table).

    `arrived[0]` is the first node, which cannot lose. Both lists have one entry a node.
    """
    return [UnitSet()] + [
        before - (here | ended) for before, here, ended in zip(arrived, arrived[1:], settled[1:], strict=False)
    ]


def _facts(books: Books, node: str, fact: Fact, detail: str | None = None) -> UnitSet:
    return union(
        (key.child, positions)
        for key, positions in books.facts.items()
        if key.node == node and key.fact == fact and (detail is None or key.detail == detail)
    )


def _first_match(known: Mapping[Bin, UnitSet], due: UnitSet) -> Bins:
    """Deal `due` into bins so that each unit is in the first that claims it; nobody's are in none."""
    rest, bins = due, {}
    for name in Bin:
        bins[name] = rest & known[name] if name in known else UnitSet()
        rest = rest - bins[name]
    return bins


def _settled_at(books: Books, node: str) -> dict[Bin, UnitSet]:
    return {name: _facts(books, node, Fact(name)) for name in (*SETTLED, Bin.HELD)}


def _upstream_bins(books: Books, sent: UnitSet, through: UnitSet) -> Bins:
    known = {name: UnitSet() for name in (*SETTLED, Bin.HELD)}
    for node in PROCESS_NODES[:3]:
        known = {name: units | known[name] for name, units in _settled_at(books, node).items()}
    due = sent - through
    known[Bin.QUEUED] = due - _passed_units(books, "ingest")
    known[Bin.LOST] = due
    return _first_match(known, due)


def _destination_bins(books: Books, name: str) -> Bins:
    transform, transmit = transform_node(name), transmit_node(name)
    known = _settled_at(books, transmit)
    known = {bin_: units | known[bin_] for bin_, units in _settled_at(books, transform).items()}
    departed = _facts(books, transform, Fact.SENT)
    due = union(pair for units in (departed, *known.values()) for pair in units.items())
    rounds = _rounds(books, transmit)
    parked = union(pair for units, _ in rounds for pair in units.items())
    known[Bin.RETRYING] = parked - _lost_in_retry(books, rounds)
    due = due | parked
    if not _has_passed(books, "egress"):
        known[Bin.QUEUED] = departed - parked
    known[Bin.LOST] = due
    return _first_match(known, due)


def _rounds(books: Books, node: str) -> list[tuple[UnitSet, UnitSet]]:
    """For each round, in order: units parked, and of those the ones the retrier has released."""
    numbers = sorted({int(k.detail) for k in books.facts if k.node == node and k.fact == Fact.PARKED})
    return [(_facts(books, node, Fact.PARKED, str(n)), _facts(books, node, Fact.RELEASED, str(n))) for n in numbers]


def _lost_in_retry(books: Books, rounds: Sequence[tuple[UnitSet, UnitSet]]) -> UnitSet:
    """Parked units that the retrier, or the retry lane after it, is past without having passed them on."""
    lost = UnitSet()
    retrier_passed, retry_lane_passed = _has_passed(books, "retry-in"), _has_passed(books, "retry-out")
    for parked, released in rounds:
        lost = lost - parked  # taken up again in this round
        if retrier_passed:
            lost = lost | (parked - released)
        if retry_lane_passed:
            lost = lost | (parked & released)
    return lost


def _has_passed(books: Books, purpose: Purpose) -> bool:
    """Whether the readers of a topic are past everything that this bucket put there."""
    names = {name for name, _ in books.topics.get(purpose, ())}
    reached = {place: offset for place, offset in books.reach.items() if place[0] in names}
    return bool(reached) and all(books.passed.get(place, 0) > offset for place, offset in reached.items())


def _passed_units(books: Books, purpose: Purpose) -> UnitSet:
    """All positions of a topic that its readers have settled: whole ranges, cheap as runs."""
    positions = BitMap64()
    generations = dict(books.topics.get(purpose, ()))
    for (topic, partition), low in books.passed.items():
        if topic in generations:
            base = partition_base(generations[topic], partition)
            positions.add_range(base, base + low)
    children = {key.child for key in books.facts} or {0}
    return UnitSet(dict.fromkeys(children, positions))


def _destination_names(books: Books) -> list[str]:
    return sorted({key.node.partition(":")[2] for key in books.facts if key.node.startswith((_TRANSFORM, _TRANSMIT))})


def _node_lines(books: Books, sent: UnitSet, upstream: Bins, destinations: Mapping[str, Bins]) -> list[NodeLine]:
    """Node by node in the order of travel; what ended at a later stage of process has passed the earlier ones."""
    lines = [NodeLine(INGEST, sent, UnitSet())]
    arrived = sent - upstream[Bin.QUEUED] - upstream[Bin.LOST]
    lost = upstream[Bin.LOST]
    for node in PROCESS_NODES[:3]:
        lines.append(NodeLine(node, arrived, lost))
        arrived = arrived - union(pair for units in _settled_at(books, node).values() for pair in units.items())
        lost = UnitSet()
    for name, bins in destinations.items():
        due = union(pair for units in bins.values() for pair in units.items())
        departed = _facts(books, transform_node(name), Fact.SENT)
        lines.append(NodeLine(transform_node(name), due, UnitSet()))
        lines.append(NodeLine(transmit_node(name), departed - bins[Bin.QUEUED] - bins[Bin.LOST], bins[Bin.LOST]))
    return lines
