"""Merge audit records: unite sets, merge sketches and breakdowns, keep the highest marks. Pure.

Sets and marks depend neither on order nor on repeats. Sketches, usage and counts of events add up, so each record is
counted once: the offset moves in the transaction that stores the record, and a record that a writer sent again has the
same number.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct, field
from pyroaring import BitMap64

from dataplane.ledger.audit import AuditRecord, FactSet, LagSet
from dataplane.ledger.breakdown import Breakdown
from dataplane.ledger.facts import Fact
from dataplane.ledger.fields import FieldObservation
from dataplane.ledger.rejections import RejectionReport
from dataplane.ledger.sequence_breaks import SequenceBreak
from dataplane.ledger.sketch import LagSketch
from dataplane.ledger.usage import PipeShare, spent
from dataplane.ledger.version_traffic import VersionTraffic
from dataplane.names import PartitionKey, transmit_node

_Mergeable = TypeVar("_Mergeable", LagSketch, Breakdown)
BREAKDOWN: Final = "breakdown"
PipeBucket = tuple[str, int]
DETAIL_CHARS: Final = 60
NODE_CHARS: Final = 60
DAY_US: Final = 86_400_000_000
MINUTE_US: Final = 60_000_000
_TRANSMIT: Final = transmit_node("")


class FactId(NamedTuple):
    """Key of the row of a set of positions."""

    pipe: str
    bucket: int
    node: str
    fact: str
    detail: str
    child: int
    partition: int


class LagId(NamedTuple):
    """Key of the row of a sketch or breakdown; `way` is its column: `in`, `out`, `own` or `breakdown`."""

    pipe: str
    bucket: int
    node: str
    way: str
    partition: int


class HighOffsetId(NamedTuple):
    """Key of the row of a bucket's highest offset in one topic partition."""

    pipe: str
    bucket: int
    topic: str
    partition: int


class AttemptCountId(NamedTuple):
    """Key of the row of a destination's attempts in one minute."""

    pipe: str
    destination: str
    minute: int


class UsageId(NamedTuple):
    """Key of the row of a pipe's usage by day (since the epoch), cell and kind of process; pipe NO_PIPE: the rest."""

    pipe: str
    day: int
    cell: str
    kind: str


class MergedRecords(Struct):
    """Merged content of audit records. `cells`: the cell that reported each (pipe, bucket) last."""

    facts: dict[FactId, BitMap64] = field(default_factory=dict)
    lags: dict[LagId, LagSketch] = field(default_factory=dict)
    breakdowns: dict[LagId, Breakdown] = field(default_factory=dict)
    reach: dict[HighOffsetId, int] = field(default_factory=dict)
    passed: dict[PartitionKey, int] = field(default_factory=dict)
    cells: dict[PipeBucket, str] = field(default_factory=dict)
    usage: dict[UsageId, PipeShare] = field(default_factory=dict)
    deliveries: Counter[AttemptCountId] = field(default_factory=Counter)
    samples: list[FieldObservation] = field(default_factory=list)
    rejections: list[RejectionReport] = field(default_factory=list)
    traffic: list[VersionTraffic] = field(default_factory=list)
    breaks: list[SequenceBreak] = field(default_factory=list)

    def add(self, audit: AuditRecord, partition: int, *, is_repeat: bool = False) -> None:
        """Add one record of this audit partition; of a repeat, add only sets and marks."""
        for fact in audit.facts:
            positions = BitMap64.deserialize(fact.positions)
            _unite(self.facts, fact_id(fact, partition), positions)
            if fact.fact == Fact.DELIVERED and fact.node.startswith(_TRANSMIT) and not is_repeat:
                self.deliveries[delivery_id(fact, audit.at_us)] += len(positions)
        if not is_repeat:
            self._count(audit, partition)
        for mark in audit.inputs:
            topic_partition = (mark.topic, mark.partition)
            self.passed[topic_partition] = max(self.passed.get(topic_partition, 0), mark.offset)
        for pipe, bucket in {(fact.pipe, fact.bucket) for fact in audit.facts}:
            self.cells[pipe, bucket] = audit.cell
            for mark in audit.outputs:
                reach = HighOffsetId(pipe, bucket, mark.topic, mark.partition)
                self.reach[reach] = max(self.reach.get(reach, 0), mark.offset)

    def _count(self, audit: AuditRecord, partition: int) -> None:
        for lag in audit.lags:
            key = lag_id(lag, partition)
            _merge(self.lags, key, LagSketch.decode(lag.sketch))
            if lag.breakdown:
                _merge(self.breakdowns, key._replace(way=BREAKDOWN), Breakdown.decode(lag.breakdown))
        self._add_usage(audit)
        self.samples += audit.fields
        self.rejections += audit.rejections
        self.traffic += audit.traffic
        self.breaks += audit.breaks

    def _add_usage(self, audit: AuditRecord) -> None:
        """Divide the usage of each record separately: efforts are comparable only within one record."""
        if audit.usage is None:
            return
        for pipe, part in spent(audit.usage).items():
            key = UsageId(pipe, audit.at_us // DAY_US, audit.cell, audit.kind)
            known = self.usage.get(key)
            self.usage[key] = part if known is None else known + part


def tally(audits: Iterable[tuple[int, AuditRecord]]) -> MergedRecords:
    """Merge (audit partition, record) pairs."""
    total = MergedRecords()
    for partition, audit in audits:
        total.add(audit, partition)
    return total


def fact_id(fact: FactSet, partition: int) -> FactId:
    """Return the key of a set's row, with texts cut to the size of its columns."""
    detail, node = clean(fact.detail, DETAIL_CHARS), clean(fact.node, NODE_CHARS)
    return FactId(fact.pipe, fact.bucket, node, fact.fact, detail, fact.child, partition)


def delivery_id(fact: FactSet, at_us: int) -> AttemptCountId:
    """Return the key of the count of these deliveries, which a transmit lane reported at `at_us`."""
    destination = clean(fact.node.removeprefix(_TRANSMIT), 40)
    return AttemptCountId(clean(fact.pipe, 32), destination, at_us // MINUTE_US)


def lag_id(lag: LagSet, partition: int) -> LagId:
    """Return the key of a sketch's row."""
    return LagId(lag.pipe, lag.bucket, clean(lag.node, NODE_CHARS), lag.way, partition)


def clean(text: str, limit: int) -> str:
    """Return text that Postgres accepts: no NUL, at most `limit` characters. A bad text must not stop the Observer."""
    return text.replace("\x00", "")[:limit]


def united(known: bytes | None, more: BitMap64) -> bytes:
    """Return a stored set united with new positions, serialized for storage."""
    union = BitMap64.deserialize(known) | more if known is not None else more.copy()
    union.run_optimize()
    stored: bytes = union.serialize()
    return stored


def merged(known: bytes | None, more: _Mergeable) -> bytes:
    """Return a stored sketch or breakdown merged with a new one, encoded for storage."""
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
