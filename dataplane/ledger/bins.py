"""Derive the bin of each unit of a bucket from its facts.

The first matching bin wins: delivered > filtered > duplicate > dead > cancelled > held > retrying > queued > lost. A
unit that the next node has not yet passed is queued; a unit that the next node has passed and no node has settled is
lost.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field
from pyroaring import BitMap64

from dataplane.ledger.facts import (
    ACKED,
    ASKED,
    DEDUP,
    DIVERTED_TO,
    EXPLODED,
    INGEST,
    LOG,
    PROCESS,
    REUSED,
    SEEN,
    Fact,
    FactKey,
    life_of,
)
from dataplane.ledger.units import partition_base
from dataplane.ledger.unitset import UnitSet, union
from dataplane.names import DELAYS_S, ENTRANCE, PROCESS_NODES, PartitionKey, Purpose, transform_node, transmit_node

_TRANSFORM = transform_node("")
_TRANSMIT = transmit_node("")
EXPLODES_AT = PROCESS_NODES[0]
UPSTREAM_NODES = (DEDUP, *PROCESS_NODES[:3])
OVERWRITTEN = -1  # instead of a child: the record that a position identified before Kafka reused its offset


class Bin(StrEnum):
    """The one place of a unit, in the order in which the bins are tried."""

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
_HEALTHY = frozenset({Fact.SENT, Fact.DELIVERED, Fact.FILTERED, Fact.DUPLICATE})
Bins = dict[Bin, UnitSet]
Facts = Mapping[FactKey, BitMap64]


class BucketFacts(Struct, frozen=True):
    """Facts and offsets of one (pipe, bucket).

    facts:   the merged sets
    reach:   by topic partition, the highest offset that carries a unit of this bucket
    passed:  by topic partition, the offset below which its lanes have settled everything; for held, its low watermark
    topics:  by purpose, the cell's topics of every generation that may hold a unit of the bucket
    """

    facts: Facts
    reach: Mapping[PartitionKey, int]
    passed: Mapping[PartitionKey, int]
    topics: Mapping[Purpose, Sequence[tuple[str, int]]]  # purpose -> (name, generation)


class NodeLoss(Struct, frozen=True):
    """One node of the loss table: the units that reached it, and the units lost before or in it."""

    node: str
    arrived: UnitSet
    lost: UnitSet


class BucketAccount(Struct, frozen=True):
    """The bins of all units of one (pipe, bucket).

    acked:        units that ingest has ACKed
    unacked:      units that process has read although ingest has not ACKed them
    upstream:     units that ended, wait or were lost before the route chose destinations for them
    destinations: by destination, the units that are due there
    nodes:        the loss table, in order of travel
    """

    acked: UnitSet
    unacked: UnitSet
    upstream: Bins
    destinations: dict[str, Bins]
    nodes: list[NodeLoss] = field(default_factory=list)

    @property
    def sent(self) -> UnitSet:
        """Return the units that ingest sent: those ACKed, and those that process read without an ACK."""
        return self.acked | self.unacked

    def count(self, name: Bin) -> int:
        """Return the number of units in a bin, over upstream and all destinations."""
        return len(self.upstream[name]) + sum(len(bins[name]) for bins in self.destinations.values())


def united_facts(many: Iterable[BucketFacts]) -> BucketFacts:
    """Return the facts of several buckets of one pipe as those of one, with the highest offsets and marks of any."""
    facts: dict[FactKey, BitMap64] = {}
    reach: dict[PartitionKey, int] = {}
    passed: dict[PartitionKey, int] = {}
    topics: Mapping[Purpose, Sequence[tuple[str, int]]] = {}
    for books in many:
        for key, positions in books.facts.items():
            facts[key] = facts[key] | positions if key in facts else positions
        for place, offset in books.reach.items():
            reach[place] = max(reach.get(place, offset), offset)
        passed |= books.passed
        topics = books.topics or topics
    return BucketFacts(facts, reach, passed, topics)


def derive(books: BucketFacts) -> BucketAccount:
    """Return the account of one bucket. Pure: it does not depend on the order in which the facts arrived."""
    acked = _facts(books, INGEST, Fact.SENT, ACKED)
    acked = acked | UnitSet({OVERWRITTEN: _overwritten(books.facts, acked.positions())})
    seen = _facts(books, INGEST, Fact.SENT, SEEN)
    sent = acked | seen
    through = _facts(books, PROCESS, Fact.SENT) & _at_destinations(books)
    exploded = _facts(books, EXPLODES_AT, Fact.SENT, EXPLODED)
    upstream = _upstream_bins(books, sent | exploded, through)
    names = _destination_names(books)
    destinations = {name: _destination_bins(books, name) for name in names}
    return BucketAccount(
        acked=acked,
        unacked=seen - acked,
        upstream=upstream,
        destinations=destinations,
        nodes=_node_lines(books, sent, exploded, upstream, destinations),
    )


def healthy_counts(facts: Facts) -> tuple[int, int] | None:
    """Return how many units were ACKed and delivered, in a tenth of the time of `derive`, for pages of many pipes.

    None if a unit was split, or failed or waited anywhere: then only `derive` can determine the bin of each. Without
    such facts, every unit that is neither delivered nor dropped on purpose is queued or lost.
    """
    acked = BitMap64()
    delivered: dict[str, BitMap64] = {}
    for key, positions in facts.items():
        if key.child or key.fact not in _HEALTHY or key.detail == EXPLODED:
            return None
        if key.fact == Fact.DELIVERED:
            kind, colon, name = key.node.partition(":")
            if kind + colon not in (_TRANSFORM, _TRANSMIT):
                return None
            delivered[name] = delivered[name] | positions if name in delivered else positions
        elif key.node == INGEST and key.fact == Fact.SENT and key.detail == ACKED:
            acked = acked | positions
    return len(acked) + len(_overwritten(facts, acked)), sum(map(len, delivered.values()))


def all_are_delivered(facts: Facts) -> bool:
    """Return True if every unit reached a destination, and was delivered at each that it was due at.

    Then no unit is lost, waits or failed, and `derive` is not needed. Returns False also for a bucket with filtered
    units or repeats.
    """
    sent, through, reached = BitMap64(), BitMap64(), BitMap64()
    due: dict[str, BitMap64] = {}
    delivered: dict[str, BitMap64] = {}
    for key, positions in facts.items():
        if key.child or key.fact not in (Fact.SENT, Fact.DELIVERED) or key.detail == EXPLODED:
            return False
        if key.node.startswith((_TRANSFORM, _TRANSMIT)):
            name, found = key.node.partition(":")[2], delivered if key.fact == Fact.DELIVERED else due
            found[name] = found.get(name, BitMap64()) | positions
            reached |= positions
        elif key.node == INGEST:
            sent |= positions
        elif key.node == PROCESS:
            through |= positions
    is_upstream = bool(sent - (through & reached)) or bool(_overwritten(facts, sent))
    return not is_upstream and all(units <= delivered.get(name, BitMap64()) for name, units in due.items())


def _overwritten(facts: Facts, acked: BitMap64) -> BitMap64:
    """Return ACKed positions whose records the broker has lost: it gave their offsets to other records.

    Each producer of ingest reports the positions that it ACKed, and process reports the positions that it read by
    producer. A record is lost if its producer ACKed it, process never read it from that producer, and another producer
    ACKed the same position or process read that position from another producer.
    """
    sets: dict[str, dict[str, BitMap64]] = {ACKED: {}, SEEN: {}}
    overwritten = BitMap64()
    for key, positions in facts.items():
        if key.node != LOG:
            continue
        detail, _, producer = key.detail.partition("/")
        if detail in sets:
            sets[detail][producer] = positions
        elif detail == REUSED:
            overwritten |= positions & acked
    for producer, positions in sets[ACKED].items():
        if missing := positions - sets[SEEN].get(producer, BitMap64()):
            for other in (*sets[ACKED].items(), *sets[SEEN].items()):
                if other[0] != producer:
                    overwritten |= missing & other[1]
    return overwritten


def _facts(books: BucketFacts, node: str, fact: Fact, detail: str | None = None) -> UnitSet:
    return union(
        (key.child, positions)
        for key, positions in books.facts.items()
        if key.node == node and key.fact == fact and (detail is None or key.detail == detail)
    )


def _first_match(known: Mapping[Bin, UnitSet], due: UnitSet) -> Bins:
    """Divide `due` so that each unit is in the first bin of `known` that contains it; drop units in no bin."""
    rest, bins = due, {}
    for name in Bin:
        bins[name] = rest & known[name] if name in known else UnitSet()
        rest = rest - bins[name]
    return bins


def _settled_at(books: BucketFacts, node: str) -> dict[Bin, UnitSet]:
    return {name: _facts(books, node, Fact(name)) for name in (*SETTLED, Bin.HELD)}


def _at_destinations(books: BucketFacts) -> UnitSet:
    """Return the units of which some destination has a fact: a unit that only passed the route is not one of them."""
    return union(
        (key.child, positions) for key, positions in books.facts.items() if key.node.startswith((_TRANSFORM, _TRANSMIT))
    )


def _upstream_bins(books: BucketFacts, sent: UnitSet, through: UnitSet) -> Bins:
    known = {name: UnitSet() for name in (*SETTLED, Bin.HELD)}
    for node in UPSTREAM_NODES:
        known = {name: units | known[name] for name, units in _settled_at(books, node).items()}
    due = sent - through
    rounds = _rounds(books, ENTRANCE)
    known[Bin.DEAD] = _finally_dead(books, UPSTREAM_NODES, rounds)
    # Released and redriven units return through the ingest topic.
    entrance = _state_after_rounds(books, rounds, back_on="ingest")
    known[Bin.HELD] = entrance.held
    queued = (due - _passed_units(books, "ingest")) | _in_dedup(books) | _diverted(books)
    known[Bin.QUEUED] = queued | entrance.waiting
    known[Bin.LOST] = due
    return _first_match(known, due)


def _destination_bins(books: BucketFacts, name: str) -> Bins:
    transform, transmit = transform_node(name), transmit_node(name)
    known = _settled_at(books, transmit)
    known = {bin_: units | known[bin_] for bin_, units in _settled_at(books, transform).items()}
    departed = _facts(books, transform, Fact.SENT)
    due = union(pair for units in (departed, *known.values()) for pair in units.items())
    rounds = _rounds(books, transmit)
    waited = union(pair for round_ in rounds for pair in round_.begun.items())
    state = _state_after_rounds(books, rounds, back_on="retry-out")
    known[Bin.DEAD] = _finally_dead(books, (transmit,), rounds) | _facts(books, transform, Fact.DEAD)
    known[Bin.HELD] = state.held
    known[Bin.RETRYING] = waited - state.lost
    due = due | waited
    on_the_way = not _has_passed(books, "egress") or (_reached(books, "slow") and not _has_passed(books, "slow"))
    queued = departed - waited if on_the_way else UnitSet()
    if not _has_passed(books, "lake"):
        queued = queued | _facts(books, transmit, Fact.STORED)
    known[Bin.QUEUED] = queued
    known[Bin.LOST] = due
    return _first_match(known, due)


def _in_dedup(books: BucketFacts) -> UnitSet:
    """Return units sent to dedup, while the query, or the lanes that read its verdicts, may still have them."""
    if _has_passed(books, "dedup") and _has_passed(books, "ingest"):
        return UnitSet()
    return _facts(books, DEDUP, Fact.SENT, ASKED)


def _diverted(books: BucketFacts) -> UnitSet:
    """Return units sent to the slow process lane or the bulk query, while these may still have them."""
    return union(
        pair
        for detail, purpose in DIVERTED_TO.items()
        if not _has_passed(books, purpose)
        for pair in _facts(books, ENTRANCE, Fact.SENT, detail).items()
    )


class _Round(Struct, frozen=True):
    """One round of a destination, or of the steps: the units that were parked, held, redriven and released in it."""

    number: int
    parked: UnitSet
    held: UnitSet
    redriven: UnitSet
    released: UnitSet

    @property
    def begun(self) -> UnitSet:
        """All units that came as far as this round."""
        return self.parked | self.held | self.redriven


class _RoundState(Struct, frozen=True):
    """State of units after their rounds: held, lost, or waiting for their next attempt."""

    held: UnitSet
    lost: UnitSet
    waiting: UnitSet


def _rounds(books: BucketFacts, node: str) -> list[_Round]:
    """Return the rounds of the units at this node, in ascending order."""
    begin = (Fact.PARKED, Fact.HELD, Fact.REDRIVEN)
    numbers = sorted({_number(k.detail) for k in books.facts if k.node == node and k.fact in begin})
    return [_Round(n, *(_of_round(books, node, fact, n) for fact in (*begin, Fact.RELEASED))) for n in numbers]


def _of_round(books: BucketFacts, node: str, fact: Fact, number: int) -> UnitSet:
    return union(
        (key.child, positions)
        for key, positions in books.facts.items()
        if key.node == node and key.fact == fact and _number(key.detail) == number
    )


def _number(detail: str) -> int:
    return int(detail) if detail.isdecimal() else 0


def _state_after_rounds(books: BucketFacts, rounds: Sequence[_Round], *, back_on: Purpose) -> _RoundState:
    """Follow units from round to round; a later round overrides the state that an earlier one left.

    A parked unit is lost once the retrier has passed it, a held unit once the low watermark of the held topic has, and
    a released or redriven unit once the readers of `back_on` have. So neither retrying nor held can hide a loss.
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
    return _RoundState(held, lost, begun - held - lost)


def _finally_dead(books: BucketFacts, nodes: Collection[str], rounds: Sequence[_Round]) -> UnitSet:
    """Return the units that are dead at one of these nodes and were not redriven since."""
    deaths: dict[int, UnitSet] = {}
    for key, positions in books.facts.items():
        if key.node in nodes and key.fact == Fact.DEAD:
            life = life_of(key.detail)
            deaths[life] = deaths.get(life, UnitSet()) | UnitSet({key.child: positions})
    redriven = {round_.number: round_.redriven for round_ in rounds}
    dead = UnitSet()
    for life in sorted({*deaths, *redriven}):
        dead = (dead - redriven.get(life, UnitSet())) | deaths.get(life, UnitSet())
    return dead


def _retrier_has_passed(books: BucketFacts) -> bool:
    """Return True if the retrier has nothing of this bucket left, neither on retry-in nor in a delay tier."""
    in_tiers = any(_reached(books, tier) and not _has_passed(books, tier) for tier in DELAYS_S)
    return _has_passed(books, "retry-in") and not in_tiers


def _has_passed(books: BucketFacts, purpose: Purpose) -> bool:
    """Return True if the bucket wrote to a topic, and its readers have settled all of that."""
    reached = _reached(books, purpose)
    return bool(reached) and all(books.passed.get(key, 0) > offset for key, offset in reached.items())


def _reached(books: BucketFacts, purpose: Purpose) -> dict[PartitionKey, int]:
    """Return the bucket's highest offset in each partition of a topic."""
    names = {name for name, _ in books.topics.get(purpose, ())}
    return {key: offset for key, offset in books.reach.items() if key[0] in names}


def _passed_units(books: BucketFacts, purpose: Purpose) -> UnitSet:
    """Return all positions of a topic that its readers have settled. Whole ranges are cheap in roaring bitmaps."""
    positions = BitMap64()
    generations = dict(books.topics.get(purpose, ()))
    for (topic, partition), low in books.passed.items():
        if topic in generations:
            base = partition_base(generations[topic], partition)
            positions.add_range(base, base + low)
    children = {key.child for key in books.facts} | {0, OVERWRITTEN}
    return UnitSet(dict.fromkeys(children, positions))


def _destination_names(books: BucketFacts) -> list[str]:
    return sorted({key.node.partition(":")[2] for key in books.facts if key.node.startswith((_TRANSFORM, _TRANSMIT))})


def _node_lines(
    books: BucketFacts, sent: UnitSet, exploded: UnitSet, upstream: Bins, destinations: Mapping[str, Bins]
) -> list[NodeLoss]:
    """Return the loss table in order of travel; units that ended at a later process stage passed the earlier ones.

    A unit is lost at the first node that has no fact of it: `after_route` ones at the route, because which destination
    they were due at is not known.
    """
    lines = [NodeLoss(INGEST, sent, UnitSet())]
    after_route = upstream[Bin.LOST] & _facts(books, PROCESS, Fact.SENT)
    missing = (upstream[Bin.QUEUED] | upstream[Bin.LOST]) - after_route
    arrived = sent - missing
    lost = upstream[Bin.LOST] - exploded - after_route
    has_dedup = len(_facts(books, DEDUP, Fact.SENT))
    for node in UPSTREAM_NODES if has_dedup else PROCESS_NODES[:3]:
        if node == PROCESS_NODES[2]:
            arrived, lost = arrived - after_route, after_route
        lines.append(NodeLoss(node, arrived, lost))
        lost = UnitSet()
        if node == EXPLODES_AT:
            arrived = arrived | (exploded - missing)
            lost = (upstream[Bin.LOST] & exploded) - after_route
        settled = _settled_at(books, node)
        for bin_ in (Bin.HELD, Bin.DEAD):
            settled[bin_] &= upstream[bin_]  # released and redriven units have passed the node
        arrived = arrived - union(pair for units in settled.values() for pair in units.items())
    for name, bins in destinations.items():
        due = union(pair for units in bins.values() for pair in units.items())
        departed = _facts(books, transform_node(name), Fact.SENT)
        lines.append(NodeLoss(transform_node(name), due, UnitSet()))
        lines.append(NodeLoss(transmit_node(name), departed - bins[Bin.QUEUED] - bins[Bin.LOST], bins[Bin.LOST]))
    return lines
