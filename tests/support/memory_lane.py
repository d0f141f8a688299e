"""A lane without Kafka, for tests of one kind of lane: real windows, facts and tables, records in memory."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyroaring import BitMap64

from dataplane.ledger.audit import FactSet
from dataplane.ledger.facts import FactBook
from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta, encode_meta
from dataplane.names import INPUTS_OF, PURPOSES, WIRE_VERSION, LaneKind, cell_topic
from dataplane.record_limits import CLIENT_MAX_BYTES, wire_bytes
from dataplane.runtime.lanes.context import LaneIdentity
from dataplane.runtime.lanes.envelopes import EnvelopeReader, UnreadableEnvelope
from dataplane.runtime.lanes.slots import PartitionSlots
from dataplane.runtime.lanes.window import AckWindow
from dataplane.runtime.producers.tracked_producer import RecordTooLargeError
from dataplane.runtime.settings import settings_from
from dataplane.runtime.telemetry.fields import FieldBook
from dataplane.runtime.telemetry.lags import LagBook
from dataplane.runtime.telemetry.message_tally import MessageTally
from dataplane.runtime.telemetry.tracing import Tracing
from dataplane.runtime.telemetry.usage import UsageBook
from dataplane.tables.control import ControlTable
from dataplane.tables.optional_files import OptionalFiles
from dataplane.tables.records import CellRecord, TopicRecord

PARTITIONS = 4


class MemoryMessage:
    """Message as a consumer returns it."""

    def __init__(
        self, partition: int, offset: int, value: bytes, headers: Headers, key: bytes | None = None, topic: str = ""
    ) -> None:
        self._parts = (partition, offset, value, headers, key)
        self._topic = topic
        self.at_ms = 0  # when it was stored

    def __len__(self) -> int:
        return len(self.value())

    def timestamp(self) -> tuple[int, int]:
        return 1, self.at_ms

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._parts[0]

    def offset(self) -> int:
        return self._parts[1]

    def value(self) -> bytes:
        return self._parts[2]

    def headers(self) -> Headers:
        return self._parts[3]

    def key(self) -> bytes | None:
        return self._parts[4]

    def error(self) -> None:
        return None


def _check_size(value: bytes | None, key: bytes | None, headers: Headers) -> None:
    """Check the size that the client counts: key, headers and framing included."""
    if (size := wire_bytes(value, key, headers)) > CLIENT_MAX_BYTES:
        raise RecordTooLargeError(f"{size} bytes")


class MemoryOutbox:
    """Producer that keeps records by topic, in order; each is stored when the test says so."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any, dict[str, Any]]] = []
        self.waiting: list[Any] = []
        self.sent_now: list[int] = []  # by call of send_now, the number of records that were sent before

    @property
    def in_flight(self) -> int:
        return len(self.waiting)

    def send(self, topic: str, token: Any, **record: Any) -> None:
        _check_size(record["value"], record.get("key"), record.get("headers") or [])
        self.sent.append((topic, token, record))
        self.waiting.append(token)

    def show(self, topic: str, value: bytes, key: bytes, headers: Headers) -> None:
        self.sent.append((topic, None, {"value": value, "key": key, "headers": headers}))

    def send_now(self) -> None:
        self.sent_now.append(len(self.sent))

    def begin_group(self, topic: str, token: Any) -> "MemoryProduceGroup":
        return MemoryProduceGroup(self, topic, token)

    def of(self, topic: str) -> list[dict[str, Any]]:
        return [record for name, _, record in self.sent if name == topic]


class MemoryProduceGroup:
    """Group of records under one token, which waits for storage once, from `close` on."""

    def __init__(self, outbox: MemoryOutbox, topic: str, token: Any) -> None:
        self._outbox, self._topic, self._token = outbox, topic, token

    def send(self, value: bytes | None, key: bytes | None, partition: int, headers: Headers) -> None:
        _check_size(value, key, headers)
        record = {"value": value, "key": key, "partition": partition, "headers": list(headers)}
        self._outbox.sent.append((self._topic, self._token, record))

    def close(self) -> None:
        self._outbox.waiting.append(self._token)


class Audits:
    """Number of audit records begun and stored."""

    def __init__(self) -> None:
        self.begun = self.stored = 0
        self.floors: dict[tuple[str, int], int] = {}


class MemoryLane:
    """The lane as its work sees it."""

    def __init__(self, kind: LaneKind, var: Path, fernet_key: str = "", tracing: Tracing | None = None) -> None:
        self.identity = LaneIdentity("c1", kind, 0, 1, "here")
        self.settings = settings_from({"PENSTOCK_VAR": str(var), "PENSTOCK_FERNET_KEYS": fernet_key})
        self.files = OptionalFiles()
        self.table = ControlTable()
        topics = {purpose: TopicRecord(cell_topic("c1", purpose, 1), 1, PARTITIONS, "") for purpose in PURPOSES}
        self.cell = CellRecord("c1", 1, 1, {}, topics)
        self.slots = PartitionSlots([topics[purpose].name for purpose in INPUTS_OF[kind]])
        self.producer = MemoryOutbox()
        self._envelopes = EnvelopeReader(self.slots, self.producer, topics["dead"].name)
        self.held_pipes = 0
        self.facts, self.lags, self.tally, self.usage = FactBook(), LagBook(), MessageTally(), UsageBook()
        self.fields = FieldBook(self.settings.fields)
        self.windows: dict[int, AckWindow] = {}
        self.ours = set(range(PARTITIONS))
        self.asleep = False
        self.work: Any = None
        self.audits = Audits()
        self.tracing = tracing
        self.told: list[FactSet] = []
        self.notes: dict[int, str] = {}  # as of the last commit

    def settle(self, partition: int, offset: int) -> None:
        if partition in self.windows:
            self.windows[partition].settle(offset)

    def settle_all(self, partition: int, offsets: Iterable[int]) -> None:
        if partition in self.windows:
            self.windows[partition].settle_all(offsets)

    def bound_windows(self, messages: int, size_bytes: int) -> None:
        self.bounds = (messages, size_bytes)

    def keep_notes(self, note: Callable[[int, int], str], recall: Callable[[int, str], None]) -> None:
        self.note, self.recall = note, recall

    def renote(self, partition: int) -> None:
        """Do nothing: `commit` is the next checkpoint, which writes the note."""

    def committed_note(self, partition: int) -> str:
        return self.notes.get(partition, "")

    def owns(self, partition: int) -> bool:
        return partition in self.ours

    def may_send(self, partition: int) -> bool:
        return partition in self.ours and not self.asleep

    def read_all(self, messages: Iterable[Any]) -> list[tuple[Any, MessageMeta, Headers]]:
        return self._envelopes.read_all(messages)

    # -- what the loop does ----------------------------------------------------------------------------------------

    def take(self, *messages: MemoryMessage) -> None:
        """Open the ack windows and process the messages."""
        for message in messages:
            window = self.windows.setdefault(self.slots.of(message), AckWindow(message.offset()))
            window.take(message.offset())
        self.work.process(messages)
        while self.work.backlog():
            self.work.poll()

    def poll(self) -> None:
        """Poll until no message waits for its turn."""
        self.work.poll()
        while self.work.backlog():
            self.work.poll()

    def condemn(self, message: MemoryMessage) -> None:
        """Dead-letter a poison message, which has killed lanes."""
        self.windows.setdefault(self.slots.of(message), AckWindow(message.offset())).take(message.offset())
        self.work.dead_letter_poison(message)

    def store(self) -> None:
        """Store everything produced so far."""
        waiting, self.producer.waiting = self.producer.waiting, []
        for token in waiting:
            if isinstance(token, UnreadableEnvelope):
                self.settle(token.slot, token.offset)
            else:
                self.work.on_delivery(token)

    def checkpoint(self) -> None:
        """Run a checkpoint whose audit record is stored at once."""
        self.work.report()
        facts = self.facts.take()
        if facts:
            self.audits.begun += 1
            self.audits.stored += 1
        self.told += facts

    def commit(self) -> None:
        """Commit what is stored, with the notes of the work."""
        self.notes = {slot: self.note(slot, window.prefix) for slot, window in self.windows.items()}

    def lose(self, partition: int) -> None:
        """Revoke the partition, which moves to another lane."""
        self.work.on_revoked([partition])
        self.windows.pop(partition, None)
        self.ours.discard(partition)

    def unsettled(self) -> int:
        return sum(window.unsettled for window in self.windows.values())

    def filed(self) -> dict[tuple[str, str, str], int]:
        """Return the number of units of each (node, fact, detail), and remove them from the recorded facts."""
        counts: dict[tuple[str, str, str], int] = {}
        for found in self.facts.take():
            key = (found.node, found.fact, found.detail)
            counts[key] = counts.get(key, 0) + len(BitMap64.deserialize(found.positions))
        return counts


def message(
    offset: int,
    body: bytes = b"{}",
    *,
    partition: int = 0,
    key: bytes | None = None,
    topic: str = "",
    more: Headers | None = None,
    **changes: Any,
) -> MemoryMessage:
    """Return a message as ingest, process or the retrier writes it."""
    fields: dict[str, Any] = {
        "version": WIRE_VERSION,
        "id": f"id-{partition}-{offset}",
        "pipe": "p",
        "revision": 1,
        "source": "shop",
        "event_time_us": 1_790_000_000_000_000,
        "ingest_time_us": 1_790_000_000_000_000,
        "bucket": 29_833_333,
        "position": offset,
        "destination": "crm",
    }
    meta = MessageMeta(**fields | changes)
    headers = [(META_HEADER, encode_meta(meta)), ("content-type", b"application/json"), *(more or [])]
    return MemoryMessage(partition, offset, body, headers, key, topic)
