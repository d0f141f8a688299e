"""An in-memory Kafka for whole lanes: logs, a group with committed offsets, producers that report when polled.

It models a broker that works; the only failures are those that a test raises in the lane's own code. Everything
that is stored is checked at once against the lane's guarantees (`Promise`), so that a wrong state is not missed
because a later one is right.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, Protocol
from zlib import crc32

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from dataplane.ledger.audit import AuditRecord, decode_audit
from dataplane.ledger.meta import Headers
from dataplane.names import AUDIT_TOPIC
from dataplane.record_limits import CLIENT_MAX_BYTES, wire_bytes
from tests.support.memory_lane import MemoryMessage
from tests.support.memory_topics import End, OutOfRange
from tests.support.reports import Report

Place = tuple[str, int]


class Promise(Protocol):
    """Guarantees that hold whenever something is stored."""

    def audited(self, audit: AuditRecord) -> None:
        """Check the content of an audit record, now that it is stored."""

    def committed(self, place: Place, offset: int, before: int) -> None:
        """Check that everything below a committed offset is accounted for, and that the offset has not decreased."""


class MemoryKafka:
    """In-memory topics. A topic has one partition unless `partitions` says otherwise.

    out_of_range: places that have no record at the committed offset
    """

    def __init__(self, promise: Promise) -> None:
        self.logs: defaultdict[Place, list[MemoryMessage]] = defaultdict(list)
        self.partitions: defaultdict[str, int] = defaultdict(lambda: 1)
        self.committed: dict[Place, tuple[int, str]] = {}
        self.out_of_range: set[Place] = set()
        self._promise = promise

    def append(
        self, topic: str, value: bytes, headers: Headers, key: bytes | None = None, partition: int = -1
    ) -> tuple[int, int]:
        """Store a record; return its partition and offset."""
        if partition < 0:
            partition = crc32(key or b"") % self.partitions[topic]
        log = self.logs[topic, partition]
        log.append(MemoryMessage(partition, len(log), value, headers, key, topic))
        if topic == AUDIT_TOPIC:
            self._promise.audited(decode_audit(value))
        return partition, len(log) - 1

    def commit(self, place: Place, offset: int, note: str) -> None:
        """Commit an offset of the group."""
        self._promise.committed(place, offset, self.committed.get(place, (0, ""))[0])
        self.committed[place] = (offset, note)

    def is_consumed(self, topics: list[str]) -> bool:
        """Return True if everything on these topics is committed."""
        places = [(topic, number) for topic in topics for number in range(self.partitions[topic])]
        return all(self.committed.get(place, (0, ""))[0] == len(self.logs[place]) for place in places)


class MemoryGroupConsumer:
    """The only member of a group, with librdkafka's interface: callbacks are called from `poll` and `close`."""

    def __init__(self, kafka: MemoryKafka, on_commit: Callable[[Any, list[Any]], None]) -> None:
        self._kafka, self._on_commit = kafka, on_commit
        self._subscribed: list[str] = []
        self._positions: dict[Place, int] = {}
        self._paused: set[Place] = set()
        self._reports: list[list[Any]] = []
        self._is_assigned = self._is_closed = False
        self._on_assign: Callable[[Any, list[Any]], None]
        self._on_revoke: Callable[[Any, list[Any]], None]

    def subscribe(self, topics: list[str], *, on_assign: Any, on_revoke: Any, **_: Any) -> None:
        self._subscribed, self._on_assign, self._on_revoke = topics, on_assign, on_revoke

    def unsubscribe(self) -> None:
        self._check_open()
        self._subscribed = []

    def memberid(self) -> str | None:
        return "member" if self._subscribed or self._positions else None

    def incremental_assign(self, places: list[Any]) -> None:
        for place in places:
            offset, _ = self._kafka.committed.get((place.topic, place.partition), (0, ""))
            self._positions[place.topic, place.partition] = offset

    def incremental_unassign(self, places: list[Any]) -> None:
        for place in places:
            self._positions.pop((place.topic, place.partition), None)

    def assignment(self) -> list[Any]:
        return [TopicPartition(*place) for place in self._positions]

    def pause(self, places: list[Any]) -> None:
        self._paused |= {(place.topic, place.partition) for place in places}

    def resume(self, places: list[Any]) -> None:
        self._paused -= {(place.topic, place.partition) for place in places}

    def poll(self, _timeout: float) -> MemoryMessage | None:
        self._check_open()
        if not self._subscribed and self._positions:
            self._on_revoke(self, self.assignment())
        if not self._is_assigned:
            self._is_assigned = True
            topics = self._subscribed
            self._on_assign(self, [TopicPartition(t, n) for t in topics for n in range(self._kafka.partitions[t])])
        while self._reports:
            self._on_commit(None, self._reports.pop(0))
        return next(iter(self._take(1)), None)

    def consume(self, limit: int, _timeout: float) -> list[MemoryMessage]:
        self._check_open()
        return self._take(limit)

    def commit(self, *, offsets: list[Any], asynchronous: bool) -> None:
        self._check_open()
        for place in offsets:
            self._kafka.commit((place.topic, place.partition), place.offset, place.metadata)
        if asynchronous:
            self._reports.append([TopicPartition(place.topic, place.partition) for place in offsets])

    def committed(self, places: list[Any], timeout: float) -> list[Any]:
        assert timeout > 0
        known = [(place, self._kafka.committed.get((place.topic, place.partition))) for place in places]
        return [TopicPartition(place.topic, place.partition, *(found or (-1001,))) for place, found in known]

    def close(self) -> None:
        if self._is_closed:
            return
        try:
            if self._positions:
                self._on_revoke(self, self.assignment())
        finally:
            self._is_closed = True

    def _take(self, limit: int) -> list[MemoryMessage]:
        found: list[MemoryMessage] = []
        for place, position in self._positions.items():
            if place not in self._paused and place in self._kafka.out_of_range:
                found.append(OutOfRange(place[1], position, b"", [], topic=place[0]))
            elif place not in self._paused:
                some = self._kafka.logs[place][position : position + limit - len(found)]
                self._positions[place] += len(some)
                found += some
        return found

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("Consumer closed")


class MemoryTopicReader:
    """Reader of one partition from its beginning, without a group, that reports its end."""

    def __init__(self, kafka: MemoryKafka, topic: str) -> None:
        self._log = kafka.logs[topic, 0]
        self._next = 0

    def consume(self, limit: int, _timeout: float) -> list[Any]:
        found: list[Any] = self._log[self._next : self._next + limit]
        self._next += len(found)
        return [*found, End(0, self._next, b"", [])]

    def close(self) -> None:
        """Do nothing: no resource is open."""


class MemoryKafkaProducer:
    """Producer that stores its records when polled, and reports them."""

    def __init__(self, kafka: MemoryKafka) -> None:
        self._kafka = kafka
        self._queue: deque[tuple[Any, ...]] = deque()

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | str | None = None,
        partition: int = -1,
        on_delivery: Any = None,
        headers: Headers | None = None,
    ) -> None:
        key = key.encode() if isinstance(key, str) else key
        if wire_bytes(value, key, headers or []) > CLIENT_MAX_BYTES:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        self._queue.append((topic, value or b"", list(headers or []), key, partition, on_delivery))

    def poll(self, _timeout: float) -> int:
        reported = 0
        while self._queue:
            *record, on_delivery = self._queue.popleft()
            place = self._kafka.append(*record)
            reported += 1
            if on_delivery is not None:
                on_delivery(None, Report(*place))
        return reported

    def flush(self, _timeout: float) -> int:
        self.poll(0)
        return 0

    def __len__(self) -> int:
        return len(self._queue)
