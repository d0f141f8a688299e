"""Audit records into one tally: sets united, sketches and breakdowns merged, marks at their highest. Pure.

Sets and marks do not care for order or repeats. Sketches and usage count what they are given, so each record is counted
once: the offset moves in the transaction that stores it, and a record that a writer sent again is known by its number.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct, field
from pyroaring import BitMap64

from dataplane.ledger.audit import Audit, FactSet, LagSet
from dataplane.ledger.breakdown import Breakdown
from dataplane.ledger.fields import FieldSample
from dataplane.ledger.sketch import Sketch
from dataplane.ledger.usage import Spent, spent

Place = tuple[str, int]  # (topic, partition)
_Mergeable = TypeVar("_Mergeable", Sketch, Breakdown)
BREAKDOWN: Final = "breakdown"
PipeBucket = tuple[str, int]
DETAIL_CHARS: Final = 60
NODE_CHARS: Final = 60
DAY_US: Final = 86_400_000_000


class FactId(NamedTuple):
    """The row a set of positions belongs to."""

    pipe: str
    bucket: int
    node: str
    fact: str
    detail: str
    child: int
    partition: int


class LagId(NamedTuple):
    """The row that a sketch or a breakdown belongs to, and its column: `in`, `out`, `own` or `breakdown`."""

    pipe: str
    bucket: int
    node: str
    way: str
    partition: int


class ReachId(NamedTuple):
    """The row of a bucket's highest offset in one topic partition."""

    pipe: str
    bucket: int
    topic: str
    partition: int


class UsageId(NamedTuple):
    """The row of what a pipe took of one kind of process in a day (since the epoch); pipe NOBODY: what none took."""

    pipe: str
    day: int
    cell: str
    kind: str


class Tally(Struct):
    """What some audit records say together. `cells`: the cell that each (pipe, bucket) runs in."""

    facts: dict[FactId, BitMap64] = field(default_factory=dict)
    lags: dict[LagId, Sketch] = field(default_factory=dict)
    breakdowns: dict[LagId, Breakdown] = field(default_factory=dict)
    reach: dict[ReachId, int] = field(default_factory=dict)
    passed: dict[Place, int] = field(default_factory=dict)
    cells: dict[PipeBucket, str] = field(default_factory=dict)
    usage: dict[UsageId, Spent] = field(default_factory=dict)
    samples: list[FieldSample] = field(default_factory=list)

    def add(self, audit: Audit, partition: int, *, is_repeat: bool = False) -> None:
        """Add one record, read from this partition of the audit topic; of a repeat only what may be added twice."""
        for fact in audit.facts:
            _unite(self.facts, fact_id(fact, partition), BitMap64.deserialize(fact.positions))
        if not is_repeat:
            self._count(audit, partition)
        for mark in audit.inputs:
            place = (mark.topic, mark.partition)
            self.passed[place] = max(self.passed.get(place, 0), mark.offset)
        for pipe, bucket in {(fact.pipe, fact.bucket) for fact in audit.facts}:
            self.cells[pipe, bucket] = audit.cell
            for mark in audit.outputs:
                reach = ReachId(pipe, bucket, mark.topic, mark.partition)
                self.reach[reach] = max(self.reach.get(reach, 0), mark.offset)

    def _count(self, audit: Audit, partition: int) -> None:
        for lag in audit.lags:
            key = lag_id(lag, partition)
            _merge(self.lags, key, Sketch.decode(lag.sketch))
            if lag.breakdown:
                _merge(self.breakdowns, key._replace(way=BREAKDOWN), Breakdown.decode(lag.breakdown))
        self._add_usage(audit)
        self.samples += audit.fields

    def _add_usage(self, audit: Audit) -> None:
        """Divided record by record: who was busy for whom is known best where it was measured."""
        if audit.usage is None:
            return
        for pipe, part in spent(audit.usage).items():
            key = UsageId(pipe, audit.at_us // DAY_US, audit.cell, audit.kind)
            known = self.usage.get(key)
            self.usage[key] = part if known is None else known + part


def tally(audits: Iterable[tuple[int, Audit]]) -> Tally:
    """The tally of (audit partition, record) pairs."""
    total = Tally()
    for partition, audit in audits:
        total.add(audit, partition)
    return total


def fact_id(fact: FactSet, partition: int) -> FactId:
    """Where a set is filed; texts are cut to what a row holds."""
    detail, node = clean(fact.detail, DETAIL_CHARS), clean(fact.node, NODE_CHARS)
    return FactId(fact.pipe, fact.bucket, node, fact.fact, detail, fact.child, partition)


def lag_id(lag: LagSet, partition: int) -> LagId:
    """Where a sketch is filed."""
    return LagId(lag.pipe, lag.bucket, clean(lag.node, NODE_CHARS), lag.way, partition)


def clean(text: str, limit: int) -> str:
    """Text as Postgres takes it: without NUL, at most `limit` characters. One bad text must not stop the Observer."""
    return text.replace("\x00", "")[:limit]


def united(known: bytes | None, more: BitMap64) -> bytes:
    """A stored set and what is new, as it will be stored."""
    union = BitMap64.deserialize(known) | more if known is not None else more.copy()
    union.run_optimize()
    stored: bytes = union.serialize()
    return stored


def merged(known: bytes | None, more: _Mergeable) -> bytes:
    """Return a stored sketch or breakdown with what is new, as it will be stored."""
    if known is None:
        return more.encode()
    total = type(more).decode(known)
    total.merge(more)
    return total.encode()


def _unite(facts: dict[FactId, BitMap64], key: FactId, positions: BitMap64) -> None:
    known = facts.get(key)
    facts[key] = positions if known is None else known | positions


def _merge(totals: dict[LagId, _Mergeable], key: LagId, more: _Mergeable) -> None:
    if (known := totals.get(key)) is None:
        totals[key] = more
    else:
        known.merge(more)
