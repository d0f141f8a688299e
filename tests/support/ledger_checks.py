"""The ledger read directly from the audit topic, without Observer and Postgres, derived by the pure bins."""

from collections import defaultdict
from collections.abc import Iterable

from confluent_kafka import KafkaException, TopicPartition
from pyroaring import BitMap64

from dataplane.ledger.audit import AuditRecord, decode_audit
from dataplane.ledger.bins import Bin, BucketAccount, BucketFacts, derive
from dataplane.ledger.breakdown import Breakdown
from dataplane.ledger.facts import FactKey
from dataplane.ledger.fields import FieldObservation
from dataplane.ledger.sequence_breaks import SequenceBreak
from dataplane.ledger.sketch import LagSketch
from dataplane.ledger.units import format_position
from dataplane.ledger.unitset import UnitSet
from dataplane.names import AUDIT_TOPIC, Purpose
from dataplane.tables.records import TopicRecord
from tests.support.kafka import admin_consumer


class MergedReports:
    """Content of the audit records that were added. `accounts(pipe)` returns the current accounts of its buckets."""

    def __init__(self, topics: dict[Purpose, TopicRecord]) -> None:
        self._topics: dict[Purpose, list[tuple[str, int]]] = {
            purpose: [(topic.name, topic.generation)] for purpose, topic in topics.items()
        }
        self._facts: defaultdict[tuple[str, int], dict[FactKey, BitMap64]] = defaultdict(dict)
        self._reach: defaultdict[tuple[str, int], dict[tuple[str, int], int]] = defaultdict(dict)
        self._passed: dict[tuple[str, int], int] = {}
        self._lags: defaultdict[tuple[str, str, str], LagSketch] = defaultdict(LagSketch)
        self._breakdowns: defaultdict[str, Breakdown] = defaultdict(Breakdown)
        self.samples: list[FieldObservation] = []
        self.breaks: dict[tuple[str, str, str], SequenceBreak] = {}  # newest by (pipe, position, kind)

    def add(self, audit: AuditRecord) -> None:
        """Merge one record."""
        self.samples += audit.fields
        self.breaks |= {(one.pipe, format_position(one.position), one.kind): one for one in audit.breaks}
        for lag in audit.lags:
            self._lags[lag.pipe, lag.node, lag.way].merge(LagSketch.decode(lag.sketch))
            if lag.breakdown:
                self._breakdowns[lag.pipe].merge(Breakdown.decode(lag.breakdown))
        for mark in audit.inputs:
            place = (mark.topic, mark.partition)
            self._passed[place] = max(self._passed.get(place, 0), mark.offset)
        for fact in audit.facts:
            filed = self._facts[fact.pipe, fact.bucket]
            key = FactKey(fact.node, fact.fact, fact.detail, fact.child)
            filed[key] = filed.get(key, BitMap64()) | BitMap64.deserialize(fact.positions)
            reach = self._reach[fact.pipe, fact.bucket]
            for mark in audit.outputs:
                place = (mark.topic, mark.partition)
                reach[place] = max(reach.get(place, -1), mark.offset)

    def accounts(self, pipe: str) -> dict[int, BucketAccount]:
        """Return the account of every bucket of a pipe, or of a replay."""
        return {bucket: derive(facts) for bucket, facts in self.facts_by_bucket(pipe).items()}

    def facts_by_bucket(self, pipe: str) -> dict[int, BucketFacts]:
        """Return the facts of every bucket of a pipe, or of a replay."""
        return {
            bucket: BucketFacts(facts, self._reach[name, bucket], self._passed, self._topics)
            for (name, bucket), facts in self._facts.items()
            if name == pipe
        }

    def facts(self, pipe: str) -> dict[tuple[str, str], set[str]]:
        """Return the positions of each (node, fact) of a pipe, whatever their detail."""
        found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for (name, _), facts in self._facts.items():
            if name == pipe:
                for key, positions in facts.items():
                    found[key.node, key.fact] |= {format_position(position) for position in positions}
        return found

    def details(self, pipe: str) -> dict[tuple[str, str, str], set[str]]:
        """Return the positions of each (node, fact, detail) of a pipe."""
        found: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
        for (name, _), facts in self._facts.items():
            if name == pipe:
                for key, positions in facts.items():
                    found[key.node, key.fact, key.detail] |= {format_position(position) for position in positions}
        return found

    def passed(self, topic: str, partition: int) -> int:
        """Return the offset below which everything is settled, as the lanes have reported it."""
        return self._passed.get((topic, partition), 0)

    def timing(self, pipe: str, node: str) -> dict[str, LagSketch]:
        """Return the sketches of one node of a pipe: `in`, `out`, `own`."""
        return {way: sketch for (*where, way), sketch in self._lags.items() if where == [pipe, node]}

    def breakdown(self, pipe: str) -> Breakdown:
        """Return the breakdown of a pipe's deliveries."""
        return self._breakdowns[pipe]


class AuditReader(MergedReports):
    """Reader of every audit record, once."""

    def __init__(self, kafka: str, topics: dict[Purpose, TopicRecord], partitions: int = 4) -> None:
        super().__init__(topics)
        self._consumer = admin_consumer(
            {"bootstrap.servers": kafka, "group.id": "rig-books", "enable.auto.commit": False, "log_level": 3}
        )
        self._consumer.assign([TopicPartition(AUDIT_TOPIC, partition, 0) for partition in range(partitions)])
        self._next = dict.fromkeys(range(partitions), 0)

    def refresh(self) -> None:
        """Read everything that is stored by now, however slowly the broker delivers it."""
        ends = {number: self._end(number) for number in self._next}
        while any(self._next[number] < end for number, end in ends.items()):
            for message in self._consumer.consume(1_000, 0.2):
                if message.error() is None:
                    self.add(decode_audit(message.value()))
                    self._next[message.partition()] = message.offset() + 1

    def _end(self, partition: int) -> int:
        """Return the end offset of a partition, 0 while the broker is unavailable."""
        try:
            return int(self._consumer.get_watermark_offsets(TopicPartition(AUDIT_TOPIC, partition), timeout=10)[1])
        except KafkaException:
            return 0

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def texts(units: UnitSet) -> set[str]:
    """Return the positions as receipts show them."""
    return {format_position(position) for position, _ in units}


class Whole:
    """Sum of the accounts of a pipe's buckets, as sets of positions in text."""

    def __init__(self, accounts: dict[int, BucketAccount]) -> None:
        self.acked = self._union(account.acked for account in accounts.values())
        self.unacked = self._union(account.unacked for account in accounts.values())
        self.acked_by_bucket = {bucket: texts(account.acked) for bucket, account in accounts.items()}
        self._accounts = accounts

    def at(self, destination: str, bin_: Bin) -> set[str]:
        """Return the units in one bin of a destination."""
        found = (account.destinations.get(destination, {}).get(bin_) for account in self._accounts.values())
        return self._union(units for units in found if units is not None)

    def upstream(self, bin_: Bin) -> set[str]:
        """Return the units in one bin before their destinations were chosen."""
        return self._union(account.upstream[bin_] for account in self._accounts.values())

    def units(self, bin_: Bin, destination: str = "") -> int:
        """Return the number of units in one bin of a destination, or before one was chosen; children count."""
        accounts = self._accounts.values()
        found = [one.destinations.get(destination, {}) if destination else one.upstream for one in accounts]
        return sum(len(bins[bin_]) for bins in found if bin_ in bins)

    def upstream_open(self) -> int:
        """Return the number of units that process has not reported on yet."""
        return sum(len(account.upstream[Bin.QUEUED]) for account in self._accounts.values())

    def __str__(self) -> str:
        lines = [f"acked {len(self.acked)} unacked {len(self.unacked)}"]
        for account in self._accounts.values():
            for name, bins in (("upstream", account.upstream), *account.destinations.items()):
                lines.append(
                    f"{name} " + " ".join(f"{bin_} {len(units)}" for bin_, units in bins.items() if len(units))
                )
        return "; ".join(lines)

    def lost(self) -> int:
        """Return the number of lost units of the whole pipe."""
        return sum(account.count(Bin.LOST) for account in self._accounts.values())

    def lost_at(self) -> dict[str, set[str]]:
        """Return the units lost at each node that lost any."""
        nodes = {line.node for account in self._accounts.values() for line in account.nodes if line.lost}
        lines = [line for account in self._accounts.values() for line in account.nodes]
        return {node: self._union(line.lost for line in lines if line.node == node) for node in nodes}

    def open(self) -> int:
        """Return the number of units that are queued or retrying."""
        return sum(account.count(Bin.QUEUED) + account.count(Bin.RETRYING) for account in self._accounts.values())

    @staticmethod
    def _union(sets: Iterable[UnitSet]) -> set[str]:
        return {text for units in sets for text in texts(units)}
