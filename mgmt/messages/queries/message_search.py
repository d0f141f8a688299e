"""Search for messages by Penstock's id, by position, or by the customer's own id. Kafka itself is the index.

Penstock's ids are UUIDs of version 7: their first 48 bits are the millisecond of ingest, which the topic's time index
resolves. A position gives partition and offset. The customer's own ids have no index: the newest messages are scanned.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, Final

import msgspec

from dataplane.ledger.meta import MessageMeta, read_meta
from dataplane.ledger.units import parse_position, place_of, position_of
from dataplane.plan import StageError
from dataplane.plan.masked_fields import hides
from dataplane.plan.stage import decode
from dataplane.stages.paths import compile_path, get
from mgmt.cells.queries.cells import topics_of
from mgmt.messages.queries.event_masks import EventMasks
from mgmt.messages.queries.records import RecordUnavailableError, messages_since, newest_messages, read_record
from mgmt.models import Pipe, PipeRevision, Topic

OUR_ID: Final = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(?:\.(\d{1,6}))?")
POSITION: Final = re.compile(r"\d{1,4}-\d{1,5}-\d{1,13}")
# The id has ingest's clock, the index the broker's. If both clocks agree, the first search finds the message at once.
CLOCKS_APART: Final = (timedelta(0), timedelta(seconds=2))
_LATEST_S: Final = datetime.max.replace(tzinfo=UTC).timestamp()
NEWEST: Final = 25_000  # messages of each partition that are scanned for a customer's own id


@dataclass(frozen=True)
class FoundMessage:
    """Pipe, position and child of a message, which address its journey, and its envelope."""

    pipe_id: str
    position: int
    meta: MessageMeta = field(compare=False)
    child: int = 0


def is_message_name(text: str) -> bool:
    """Return True if the text has the form of Penstock's id or of a position."""
    return bool(OUR_ID.fullmatch(text) or POSITION.fullmatch(text))


def accepted_at(message_id: str) -> datetime | None:
    """Return the time of acceptance in a message's id, to the millisecond; None if it is not an id of Penstock's.

    The 48 bits reach the year 10889, which no time of Python does: such an id was not made at ingest.
    """
    parts = OUR_ID.fullmatch(message_id)
    at_s = int(parts[1] + parts[2], 16) / 1_000 if parts else 0.0
    return datetime.fromtimestamp(at_s, UTC) if parts and at_s < _LATEST_S else None


def find_messages(pipes: Iterable[Pipe], text: str) -> list[FoundMessage]:
    """Return the messages of these pipes that the text names, newest last. Raises RecordUnavailableError."""
    known = {pipe.id: pipe for pipe in pipes if pipe.cell_id}
    topics = list(topics_of(known, "ingest"))
    if made_at := accepted_at(text):
        return _by_id(known, topics, text, made_at)
    if POSITION.fullmatch(text):
        return _by_position(known, topics, text)
    return _by_own_id(known, topics, text)


def _by_id(known: dict[str, Pipe], topics: list[Topic], text: str, made_at: datetime) -> list[FoundMessage]:
    whole, _, child = text.partition(".")
    for topic, apart in product(topics, CLOCKS_APART):
        for message in messages_since(topic.name, range(topic.partitions), made_at - apart):
            meta = _meta_with(message, whole.encode())
            if meta is not None and meta.id == whole and meta.pipe in known:
                return [FoundMessage(meta.pipe, _position(topic, message), meta, int(child or 0))]
    return []


def _by_position(known: dict[str, Pipe], topics: list[Topic], text: str) -> list[FoundMessage]:
    try:
        position = parse_position(text)
    except ValueError:
        return []
    place, found = place_of(position), []
    for topic in topics:
        if topic.generation != place.generation or place.partition >= topic.partitions:
            continue
        try:
            meta = read_record(topic.name, place.partition, place.offset, pipes=known).meta
        except RecordUnavailableError:
            continue
        found.append(FoundMessage(meta.pipe, position, meta))
    return found


def _by_own_id(known: dict[str, Pipe], topics: list[Topic], text: str) -> list[FoundMessage]:
    own, found = _OwnIds(), []
    wanted = text.encode()
    for topic in topics:
        for message in newest_messages(topic.name, range(topic.partitions), NEWEST):
            meta = _meta_of(message)
            if meta is not None and meta.pipe in known and own.is_called(meta, message, text, wanted):
                found.append(FoundMessage(meta.pipe, _position(topic, message), meta))
    return found


class _OwnIds:
    """Customers' own ids of messages: the CloudEvents id, or the value at the source's id path.

    A value that the pipe masks is not compared: a search must not find it. The path is read from the stored spec: to
    compile whole specs here would cost as much as their authors choose.
    """

    def __init__(self) -> None:
        self._specs: dict[tuple[str, int], dict[str, Any]] = {}
        self._masks = EventMasks()

    def is_called(self, meta: MessageMeta, message: Any, text: str, wanted: bytes) -> bool:
        if any(name == "ce_id" and value == wanted for name, value in message.headers()[1:]):
            return True
        path = self._id_path(meta) if wanted in (body := message.value() or b"") else ""
        if not path:
            return False
        try:
            return str(get(decode(body), compile_path(path))) == text
        except (StageError, ValueError):
            return False  # not JSON, or a number of thousands of digits

    def _id_path(self, meta: MessageMeta) -> str:
        name = (meta.pipe, meta.revision)
        if name not in self._specs:
            row = PipeRevision.objects.filter(pipe_id=meta.pipe, number=meta.revision).first()
            self._specs[name] = row.spec if row else {}
        path: str | None = self._specs[name].get("sources", {}).get(meta.source, {}).get("id")
        return path if path and not hides(self._masks.of(*name), path) else ""


def _meta_with(message: Any, part: bytes) -> MessageMeta | None:
    """Return Penstock's header if it contains these bytes."""
    headers = message.headers()
    return _meta_of(message) if headers and part in headers[0][1] else None


def _meta_of(message: Any) -> MessageMeta | None:
    try:
        return read_meta(message.headers() or [])
    except (KeyError, msgspec.DecodeError):
        return None


def _position(topic: Topic, message: Any) -> int:
    return position_of(topic.generation, message.partition(), message.offset())
