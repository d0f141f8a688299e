"""In-memory topics for consumers by assignment, and the signals topic as a retrier lane reads it."""

from collections import defaultdict
from typing import Any

from confluent_kafka import KafkaError

from dataplane.ledger.meta import Headers
from dataplane.retrier.signal_state import SignalState
from tests.support.memory_lane import MemoryMessage


class MemorySignalReader:
    """Signals topic, read to its end; a test applies records to `state`."""

    def __init__(self, *_: Any) -> None:
        self.state = SignalState()
        self.at_end = True

    def refresh(self, now_us: int) -> None:
        """Do nothing: signals arrive only from the test."""

    def close(self) -> None:
        """Do nothing: no resource is open."""


class End(MemoryMessage):
    """End of a partition, as the client reports it."""

    def error(self) -> Any:
        return _EndError()


class OutOfRange(MemoryMessage):
    """Error that a client returns in place of a record, because the log has none at its offset."""

    def error(self) -> Any:
        return KafkaError(KafkaError._AUTO_OFFSET_RESET, "no previously committed offset is available")


class _EndError:
    def code(self) -> int:
        return int(KafkaError._PARTITION_EOF)


class MemoryTopics:
    """Records by (topic, partition): {offset: message}; gaps are the result of retention or compaction."""

    def __init__(self) -> None:
        self.records: defaultdict[tuple[str, int], dict[int, MemoryMessage]] = defaultdict(dict)
        self.readers: list[MemoryReader] = []

    def add(self, message: MemoryMessage) -> None:
        """Store a record at its own topic, partition and offset."""
        self.records[message.topic(), message.partition()][message.offset()] = message

    def reader(self, *_: Any) -> "MemoryReader":
        """Return a new consumer."""
        made = MemoryReader(self)
        self.readers.append(made)
        return made


class MemoryReader:
    """Consumer of assigned partitions from their offsets; reports each end once."""

    def __init__(self, topics: MemoryTopics) -> None:
        self._topics = topics
        self._next: dict[tuple[str, int], int] = {}
        self.assigned = 0
        self.closed = False

    def assign(self, places: list[Any]) -> None:
        self.assigned += 1
        self._next = {(place.topic, place.partition): place.offset for place in places}

    def consume(self, limit: int, _timeout: float) -> list[MemoryMessage]:
        found: list[MemoryMessage] = []
        for place, first in list(self._next.items()):
            records = self._topics.records[place]
            if records and not min(records) <= first <= max(records) + 1:
                del self._next[place]
                found.append(OutOfRange(place[1], first, b"", [], None, place[0]))
                continue
            some = [records[offset] for offset in sorted(records) if offset >= first][: limit - len(found)]
            found += some
            end = max(records, default=-1) + 1
            self._next[place] = some[-1].offset() + 1 if some else first
            if self._next[place] >= end and len(found) < limit:
                del self._next[place]
                empty: Headers = []
                found.append(End(place[1], end, b"", empty, None, place[0]))
        return found

    def get_watermark_offsets(self, place: Any, **_: float) -> tuple[int, int]:
        records = self._topics.records[place.topic, place.partition]
        return min(records, default=0), max(records, default=-1) + 1

    def close(self) -> None:
        self.closed = True
