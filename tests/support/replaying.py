"""A cell in memory for replays: the events of a pipe `p` on its ingest topic, and whatever a replay writes."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from pyroaring import BitMap64

from dataplane.jobs.group_offsets import GroupOffsets
from dataplane.jobs.transmit_offsets import TransmitOffsets
from dataplane.ledger.audit import AuditRecord, FactSet, decode_audit
from dataplane.ledger.bins import BucketAccount, BucketFacts, derive
from dataplane.ledger.facts import FactKey
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.names import AUDIT_TOPIC, PURPOSES, WIRE_VERSION, cell_topic
from dataplane.replay.ranges import OffsetRange
from dataplane.replay.task import ReplayTask
from dataplane.spec import PipeSpec
from dataplane.tables.records import CellRecord, DestinationRecord, ReplayRecord, TopicRecord
from tests.support.memory_kafka import MemoryKafka, MemoryKafkaProducer
from tests.support.memory_lane import MemoryMessage
from tests.support.memory_topics import End, OutOfRange

CELL: Final = "c1"
PIPE: Final = "p"
PARTITIONS: Final = 4
HOUR_US: Final = 3_600_000_000
NOW_US: Final = 1_000 * HOUR_US
TOPICS: Final = {
    purpose: TopicRecord(cell_topic(CELL, purpose, 1), 1, 1 if purpose == "signals" else PARTITIONS, "")
    for purpose in PURPOSES
}
INGEST: Final = TOPICS["ingest"].name
EGRESS: Final = TOPICS["egress"].name


class NoPromise:
    """Replays commit nothing."""

    def audited(self, audit: AuditRecord) -> None:
        """Accept every audit record."""

    def committed(self, place: tuple[str, int], offset: int, before: int) -> None:
        raise AssertionError(f"a replay commits no offset, got {place}: {before} -> {offset}")


class LogReader:
    """Consumer of assigned partitions of a MemoryKafka, with the settings of `place_reader`."""

    def __init__(self, world: "ReplayWorld") -> None:
        self._world = world
        self._next: dict[tuple[str, int], int] = {}

    def assign(self, places: list[Any]) -> None:
        self._next = {(one.topic, one.partition): 0 if one.offset == OFFSET_BEGINNING else one.offset for one in places}

    def consume(self, limit: int, _timeout: float) -> list[MemoryMessage]:
        found: list[MemoryMessage] = []
        for place, first in list(self._next.items()):
            log, low = self._world.kafka.logs[place], self._world.lows.get(place, 0)
            if not low <= first <= len(log):
                del self._next[place]
                return [OutOfRange(place[1], first, b"", [], None, place[0])]
            some = log[first : first + limit]
            self._next[place] = first + len(some)
            found += some
            if first + len(some) == len(log):
                found.append(End(place[1], first, b"", [], None, place[0]))
        return found

    def get_watermark_offsets(self, place: Any, timeout: float) -> tuple[int, int]:
        assert timeout > 0
        key = (place.topic, place.partition)
        return self._world.lows.get(key, 0), len(self._world.kafka.logs[key])

    def offsets_for_times(self, places: list[Any], timeout: float) -> list[TopicPartition]:
        assert timeout > 0
        answers = []
        for one in places:
            key = (one.topic, one.partition)
            low = self._world.lows.get(key, 0)
            later = (m.offset() for m in self._world.kafka.logs[key][low:] if m.timestamp()[1] >= one.offset)
            answers.append(TopicPartition(one.topic, one.partition, next(later, -1)))
        return answers

    def close(self) -> None:
        """Do nothing: no resource is open."""


class GroupReader:
    """Consumer that asks for the committed offsets of one group of a ReplayWorld.

    A group has committed no offset of a partition without records.
    """

    def __init__(self, world: "ReplayWorld", group: str) -> None:
        self._world, self._group = world, group

    def committed(self, places: list[Any], timeout: float) -> list[TopicPartition]:
        assert timeout > 0
        world = self._world
        if world.offsets_error is not None:
            raise world.offsets_error
        if not world.delivers[self._group]:
            return [TopicPartition(one.topic, one.partition, world.stuck.get(self._group, -1001)) for one in places]
        ends = [len(world.kafka.logs[one.topic, one.partition]) for one in places]
        return [TopicPartition(one.topic, one.partition, end or -1001) for one, end in zip(places, ends, strict=True)]

    def close(self) -> None:
        """Do nothing: no resource is open."""


class WorldProducer(MemoryKafkaProducer):
    """Producer to a ReplayWorld, some of whose topics may refuse or never store records."""

    def __init__(self, world: "ReplayWorld") -> None:
        super().__init__(world.kafka)
        self._world = world

    def poll(self, _timeout: float) -> int:
        queue, refused, silent = list(self._queue), self._world.refused, self._world.silent
        self._queue.clear()
        self._queue.extend(record for record in queue if record[0] not in refused and record[0] not in silent)
        reported = super().poll(0)
        for topic, *_, on_delivery in queue:
            if topic in refused:
                on_delivery(refused[topic], None)
        self._queue.extend(record for record in queue if record[0] in silent)
        return reported

    def purge(self) -> None:
        """Drop the records that are not stored."""
        self._queue.clear()


class ReplayWorld:
    """Topics of one cell, and the offsets of its lanes.

    refused:  error of the delivery reports of topics that refuse records
    silent:   topics whose records are neither stored nor refused
    lows:     low watermarks, by topic partition
    delivers: by group, True while it commits all records; otherwise its offsets are `stuck`, or unknown
    """

    def __init__(self) -> None:
        self.kafka = MemoryKafka(NoPromise())
        for topic in TOPICS.values():
            self.kafka.partitions[topic.name] = topic.partitions
        self.lows: dict[tuple[str, int], int] = {}
        self.refused: dict[str, KafkaError] = {}
        self.silent: set[str] = set()
        self.cell = CellRecord(CELL, 1, 1, {"transmit": 1, "transmit-slow": 1}, TOPICS)
        self.delivers: defaultdict[str, bool] = defaultdict(lambda: True)
        self.stuck: dict[str, int] = {}
        self.offsets_error: KafkaException | None = None

    def reader(self) -> LogReader:
        """Return a new consumer for assigned partitions."""
        return LogReader(self)

    def offsets(self, known_for_s: float = 0.0) -> TransmitOffsets:
        """Return the reader of the offsets of transmit lanes."""
        make = lambda _, group: GroupReader(self, group)  # noqa: E731
        return TransmitOffsets(GroupOffsets("nowhere", make), self.reader(), known_for_s)

    def producer(self) -> MemoryKafkaProducer:
        """Return a new producer."""
        return WorldProducer(self)

    def ingest(
        self, number: int, body: bytes = b"{}", *, partition: int = 0, key: bytes | None = None, **more: Any
    ) -> MemoryMessage:
        """Write an event to the ingest topic, as ingest does; `number` is part of its id."""
        fields = {"source": "shop", "ingest_time_us": NOW_US, "event_time_us": NOW_US - 5, "bucket": 7, **more}
        pipe, revision = fields.pop("pipe", PIPE), fields.pop("revision", 1)
        meta = MessageMeta(WIRE_VERSION, f"m{number}", pipe, revision, **fields)
        headers = [(META_HEADER, encode_meta(meta)), ("ce_id", f"m{number}".encode()), ("x-own", b"1")]
        self.kafka.append(INGEST, body, headers, key, partition)
        message = self.kafka.logs[INGEST, partition][-1]
        message.at_ms = meta.ingest_time_us // 1_000
        return message

    def delete_below(self, partition: int, offset: int) -> None:
        """Raise the low watermark of a partition of the ingest topic, as retention does."""
        self.lows[INGEST, partition] = offset

    def copies(self) -> list[MemoryMessage]:
        """Return the records on egress."""
        return [m for (topic, _), log in sorted(self.kafka.logs.items()) if topic == EGRESS for m in log]

    def audits(self) -> list[AuditRecord]:
        """Return the audit records, in order."""
        return [
            decode_audit(m.value()) for (topic, _), log in self.kafka.logs.items() if topic == AUDIT_TOPIC for m in log
        ]


def replay(**fields: Any) -> ReplayRecord:
    """Return a running replay of all events of the pipe in the hour around NOW_US."""
    given = {
        "replay": "rep_1", "version": 1, "cell": CELL, "pipe": PIPE, "revision": 2, "destinations": ["crm"],
        "since_us": NOW_US - HOUR_US, "until_us": NOW_US + HOUR_US, "bucket": 999, "rate_per_s": 1e9,
        "state": "running",
    }  # fmt: skip
    return ReplayRecord(**{**given, **fields})


def task_of(
    record: ReplayRecord,
    spec: PipeSpec,
    end: int,
    *,
    partition: int = 0,
    first: int = 0,
    topics: tuple[DestinationRecord, ...] = (),
) -> ReplayTask:
    """Return a task that reads a range of one partition."""
    place = OffsetRange((INGEST, partition), first, end)
    return ReplayTask(record, spec, b"salt", "t", place, 1, TOPICS["egress"], record.rate_per_s, frozenset(), topics)


def account_of(facts: dict[FactKey, bytes], passed: dict[tuple[str, int], int] | None = None) -> BucketAccount:
    """Derive the account of a replay from the facts of its tasks; `passed`: settled offsets, as lanes report them."""
    sets = {key: BitMap64.deserialize(positions) for key, positions in facts.items()}
    topics = {purpose: [(topic.name, topic.generation)] for purpose, topic in TOPICS.items()}
    reach = {(EGRESS, number): 1_000 for number in range(PARTITIONS)}
    return derive(BucketFacts(sets, reach, passed or {}, topics))


def facts_of(sets: Iterable[FactSet]) -> dict[FactKey, bytes]:
    """Return the facts of audit records as a task returns them."""
    merged: defaultdict[FactKey, BitMap64] = defaultdict(BitMap64)
    for one in sets:
        merged[FactKey(one.node, one.fact, one.detail, one.child)] |= BitMap64.deserialize(one.positions)
    return {key: positions.serialize() for key, positions in merged.items()}
