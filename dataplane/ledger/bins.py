"""Bins: where each unit of a bucket is, derived from the facts. The exact rules are those of the ledger algebra:

first match wins: delivered > filtered > duplicate > dead > cancelled > held > retrying > queued > lost. A unit that the
next node has not yet passed is queued, not lost; one that nobody settled although the next node is past it is lost.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field
from pyroaring import BitMap64

from dataplane.ledger.facts import (
    ACKED,
    ASKED,
    DEDUP,
    EXPLODED,
    INGEST,
    LOG,
    PROCESS,
    REUSED,
    SEEN,
    SLOW,
    Fact,
    FactKey,
    life_of,
)
from dataplane.ledger.units import partition_base
from dataplane.ledger.unitset import UnitSet, union
from dataplane.names import DELAYS_S, ENTRANCE, PROCESS_NODES, Purpose, transform_node, transmit_node

Place = tuple[str, int]  # (topic, partition)
_TRANSFORM = transform_node("")
_TRANSMIT = transmit_node("")
EXPLODES_AT = PROCESS_NODES[0]
UPSTREAM_NODES = (DEDUP, *PROCESS_NODES[:3])
OVERWRITTEN = -1  # in place of a child: the record that a position named before Kafka gave it to another one


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
    passed:  per topic partition the offset below which its lanes have settled everything; for held, where it begins
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
    acked = acked | _overwritten(books, acked)
    seen = _facts(books, INGEST, Fact.SENT, SEEN)
    sent = acked | seen
    through = _facts(books, PROCESS, Fact.SENT)
    exploded = _facts(books, EXPLODES_AT, Fact.SENT, EXPLODED)
    upstream = _upstream_bins(books, sent | exploded, through)
    names = _destination_names(books)
    destinations = {name: _destination_bins(books, name) for name in names}
    return Account(
        acked=acked,
        unacked=seen - acked,
        upstream=upstream,
        destinations=destinations,
        nodes=_node_lines(books, sent, exploded, upstream, destinations),
    )


def _overwritten(books: Books, acked: UnitSet) -> UnitSet:
    """Return units that were ACKed and whose offsets the broker gave to other records: it has lost them.

    Each producer of ingest files what it ACKed, and process what it read of each. What was ACKed of one, never read of
    it, and ACKed or read of another at the same position, is one record too few.
    """
    sets: dict[str, dict[str, BitMap64]] = {ACKED: {}, SEEN: {}}
    overwritten = BitMap64()
    for key, positions in books.facts.items():
        detail, _, producer = key.detail.partition("/")
        if key.node == LOG and detail in sets:
            sets[detail][producer] = positions
        elif key.node == LOG and detail == REUSED:
            overwritten |= positions & acked.positions()
    for producer, positions in sets[ACKED].items():
        if missing := positions - sets[SEEN].get(producer, BitMap64()):
            for other in (*sets[ACKED].items(), *sets[SEEN].items()):
                if other[0] != producer:
                    overwritten |= missing & other[1]
    return UnitSet({OVERWRITTEN: overwritten})


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
    for node in UPSTREAM_NODES:
        known = {name: units | known[name] for name, units in _settled_at(books, node).items()}
    due = sent - through
    entrance = _at_entrance(books)
    known[Bin.HELD] = entrance.held
    queued = (due - _passed_units(books, "ingest")) | _under_judgement(books) | _in_slow_lane(books)
    known[Bin.QUEUED] = queued | entrance.waiting
    known[Bin.LOST] = due
    return _first_match(known, due)


def _destination_bins(books: Books, name: str) -> Bins:
    transform, transmit = transform_node(name), transmit_node(name)
    known = _settled_at(books, transmit)
    known = {bin_: units | known[bin_] for bin_, units in _settled_at(books, transform).items()}
    departed = _facts(books, transform, Fact.SENT)
    due = union(pair for units in (departed, *known.values()) for pair in units.items())
    rounds = _rounds(books, transmit)
    waited = union(pair for round_ in rounds for pair in round_.begun.items())
    standing = _where_rounds_stand(books, rounds, back_on="retry-out")
    known[Bin.DEAD] = _dead_for_good(books, transmit, rounds) | _facts(books, transform, Fact.DEAD)
    known[Bin.HELD] = standing.held
    known[Bin.RETRYING] = waited - standing.lost
    due = due | waited
    on_the_way = not _has_passed(books, "egress") or (_reached(books, "slow") and not _has_passed(books, "slow"))
    queued = departed - waited if on_the_way else UnitSet()
    if not _has_passed(books, "lake"):
        queued = queued | _facts(books, transmit, Fact.STORED)
    known[Bin.QUEUED] = queued
    known[Bin.LOST] = due
    return _first_match(known, due)


def _at_entrance(books: Books) -> "_Standing":
    """Units that were held before the steps: where they are now. What is released comes back on the ingest topic."""
    return _where_rounds_stand(books, _rounds(books, ENTRANCE), back_on="ingest")


def _under_judgement(books: Books) -> UnitSet:
    """Units that dedup was asked about, while the query, or the lanes it gives them back to, may still have them."""
    if _has_passed(books, "dedup") and _has_passed(books, "ingest"):
        return UnitSet()
    return _facts(books, DEDUP, Fact.SENT, ASKED)


def _in_slow_lane(books: Books) -> UnitSet:
    """Units that a process lane passed to the slow one, while that may still have them."""
    if _has_passed(books, "process-slow"):
        return UnitSet()
    return _facts(books, ENTRANCE, Fact.SENT, SLOW)


class _Round(Struct, frozen=True):
    """What happened in one round of a destination: units that waited in it, were brought back, were passed on."""

    number: int
    parked: UnitSet
    held: UnitSet
    redriven: UnitSet
    released: UnitSet

    @property
    def begun(self) -> UnitSet:
        """All units that came as far as this round."""
        return self.parked | self.held | self.redriven


class _Standing(Struct, frozen=True):
    """Where rounds end: units held, units that nobody knows any more, and the others, which are on their way."""

    held: UnitSet
    lost: UnitSet
    waiting: UnitSet


def _rounds(books: Books, node: str) -> list[_Round]:
    """Every round that a unit of this destination has come to, in order."""
    begin = (Fact.PARKED, Fact.HELD, Fact.REDRIVEN)
    numbers = sorted({_number(k.detail) for k in books.facts if k.node == node and k.fact in begin})
    return [_Round(n, *(_of_round(books, node, fact, n) for fact in (*begin, Fact.RELEASED))) for n in numbers]


def _of_round(books: Books, node: str, fact: Fact, number: int) -> UnitSet:
    return union(
        (key.child, positions)
        for key, positions in books.facts.items()
        if key.node == node and key.fact == fact and _number(key.detail) == number
    )


def _number(detail: str) -> int:
    return int(detail) if detail.isdecimal() else 0


def _where_rounds_stand(books: Books, rounds: Sequence[_Round], *, back_on: Purpose) -> _Standing:
    """Follow units from round to round; each later round takes up what an earlier one has left.

    Parked and held units are lost where the retrier, or the held topic's own beginning, is past them; what was passed
    on or brought back is lost where those who read it then are past it. So neither retrying nor held can hide loss.
    """
    held = lost = begun = UnitSet()
    retrier_passed, held_passed = _retrier_has_passed(books), _has_passed(books, "held")
    back_passed = _has_passed(books, back_on)
    for round_ in rounds:
        begun = begun | round_.begun
        held, lost = held - round_.begun, lost - round_.begun
        waiting = round_.held - round_.released
        held, lost = (held, lost | waiting) if held_passed else (held | waiting, lost)
        if retrier_passed:
            lost = lost | (round_.parked - round_.released)
        if back_passed:
            lost = lost | ((round_.parked | round_.held) & round_.released) | round_.redriven
    return _Standing(held, lost, begun - held - lost)


def _dead_for_good(books: Books, node: str, rounds: Sequence[_Round]) -> UnitSet:
    """Units that died and were not brought back since."""
    deaths: dict[int, UnitSet] = {}
    for key, positions in books.facts.items():
        if key.node == node and key.fact == Fact.DEAD:
            life = life_of(key.detail)
            deaths[life] = deaths.get(life, UnitSet()) | UnitSet({key.child: positions})
    brought_back = {round_.number: round_.redriven for round_ in rounds}
    dead = UnitSet()
    for life in sorted({*deaths, *brought_back}):
        dead = (dead - brought_back.get(life, UnitSet())) | deaths.get(life, UnitSet())
    return dead


def _retrier_has_passed(books: Books) -> bool:
    """Whether the retrier holds nothing of this bucket: neither on retry-in nor in a tier."""
    in_tiers = any(_reached(books, tier) and not _has_passed(books, tier) for tier in DELAYS_S)
    return _has_passed(books, "retry-in") and not in_tiers


def _has_passed(books: Books, purpose: Purpose) -> bool:
    """Whether the readers of a topic are past everything that this bucket put there."""
    reached = _reached(books, purpose)
    return bool(reached) and all(books.passed.get(place, 0) > offset for place, offset in reached.items())


def _reached(books: Books, purpose: Purpose) -> dict[Place, int]:
    """How far this bucket reaches in a topic, by partition."""
    names = {name for name, _ in books.topics.get(purpose, ())}
    return {place: offset for place, offset in books.reach.items() if place[0] in names}


def _passed_units(books: Books, purpose: Purpose) -> UnitSet:
    """All positions of a topic that its readers have settled: whole ranges, cheap as runs."""
    positions = BitMap64()
    generations = dict(books.topics.get(purpose, ()))
    for (topic, partition), low in books.passed.items():
        if topic in generations:
            base = partition_base(generations[topic], partition)
            positions.add_range(base, base + low)
    children = {key.child for key in books.facts} | {0, OVERWRITTEN}
    return UnitSet(dict.fromkeys(children, positions))


def _destination_names(books: Books) -> list[str]:
    return sorted({key.node.partition(":")[2] for key in books.facts if key.node.startswith((_TRANSFORM, _TRANSMIT))})


def _node_lines(
    books: Books, sent: UnitSet, exploded: UnitSet, upstream: Bins, destinations: Mapping[str, Bins]
) -> list[NodeLine]:
    """Node by node in the order of travel; what ended at a later stage of process has passed the earlier ones."""
    lines = [NodeLine(INGEST, sent, UnitSet())]
    arrived = sent - upstream[Bin.QUEUED] - upstream[Bin.LOST]
    lost = upstream[Bin.LOST]
    asks = len(_facts(books, DEDUP, Fact.SENT))
    for node in UPSTREAM_NODES if asks else PROCESS_NODES[:3]:
        lines.append(NodeLine(node, arrived, lost))
        if node == EXPLODES_AT:
            arrived = arrived | exploded
        settled = _settled_at(books, node)
        settled[Bin.HELD] &= upstream[Bin.HELD]  # what was released has gone on
        arrived = arrived - union(pair for units in settled.values() for pair in units.items())
        lost = UnitSet()
    for name, bins in destinations.items():
        due = union(pair for units in bins.values() for pair in units.items())
        departed = _facts(books, transform_node(name), Fact.SENT)
        lines.append(NodeLine(transform_node(name), due, UnitSet()))
        lines.append(NodeLine(transmit_node(name), departed - bins[Bin.QUEUED] - bins[Bin.LOST], bins[Bin.LOST]))
    return lines
