"""Events of one pipe in the order of the log, from a cursor on: a bounded read of the ingest topics.

Tenants share these topics, so a read passes records of other pipes; the cursor advances over them. An event is
returned once it is stored, before any step runs. Masked fields are masked as in searches.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from confluent_kafka import OFFSET_END, KafkaError, Message, TopicPartition

from dataplane.ledger.meta import CE_PREFIX, CONTENT_TYPE, MessageMeta, read_meta
from dataplane.ledger.units import position_of
from dataplane.plan.masked_fields import masked_text
from mgmt.cells.queries.cells import topics_of
from mgmt.messages.event_cursor import EventCursor, cursor_of
from mgmt.messages.queries.event_masks import EventMasks
from mgmt.messages.queries.readers import BrokersUnavailableError, RecordReader, RecordUnavailableError, reading
from mgmt.models import Pipe, Topic

READ_S: Final = 2.0  # wall time of one request
MOST_EVENTS: Final = 500
MOST_BODY_BYTES: Final = 4 * 1024 * 1024  # of the bodies of one answer; one event is always returned
CLOCKS_APART: Final = timedelta(seconds=10)  # a partition that appears is read from this much before the last answer
_OUT_OF_RANGE: Final = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
_Partition = tuple[int, int]  # generation and partition


@dataclass(frozen=True)
class LoggedEvent:
    """An accepted event. `body`: None if masks apply to a body that is not JSON."""

    position: int
    meta: MessageMeta
    headers: Mapping[str, str]
    body: str | None
    is_masked: bool


@dataclass
class EventPage:
    """Events after a cursor.

    cursor: position after these events
    more:   True if the read ended at a limit and not at the end of the log
    gap:    True if events between the cursor and these are no longer kept
    """

    cursor: EventCursor
    events: list[LoggedEvent] = field(default_factory=list)
    more: bool = False
    gap: bool = False


def events_after(
    pipe: Pipe, cursor: EventCursor | None, *, since: datetime, source: str = "", most: int = MOST_EVENTS, now: datetime
) -> EventPage:
    """Return up to `most` events of a pipe after a cursor or, without one, those stored at `since` or later.

    Raises RecordUnavailableError if a partition does not answer and nothing else was found.
    """
    topics = {topic.generation: topic for topic in topics_of([pipe.id], "ingest")}
    at = now - CLOCKS_APART
    with reading("error") as reader:
        offsets = _starts(reader, topics, cursor, since)
        scan = _LogScan(pipe.id, source, most, {topic.name: number for number, topic in topics.items()}, offsets)
        scan.run(reader)
    return EventPage(cursor_of(at, scan.offsets), scan.events, scan.more, scan.gap)


class _LogScan:
    """One pass from the given offsets to the ends of all partitions, or to the first limit."""

    def __init__(
        self, pipe_id: str, source: str, most: int, generations: Mapping[str, int], offsets: dict[_Partition, int]
    ) -> None:
        self.offsets, self.events, self.gap = offsets, list[LoggedEvent](), False
        self._pipe_id, self._source, self._most = pipe_id, source, most
        self._generations = generations
        self._names = {number: name for name, number in generations.items()}
        self._open = set(offsets)
        self._silent = set(offsets)
        self._bytes = 0
        self._masks = EventMasks()

    @property
    def more(self) -> bool:
        return bool(self._open)

    def run(self, reader: RecordReader) -> None:
        """Read until the ends or a limit."""
        deadline_s = time.monotonic() + READ_S
        self._assign(reader)
        while self._open and (left_s := deadline_s - time.monotonic()) > 0:
            for message in reader.read(left_s):
                if self._is_full():
                    return
                self._take(reader, message)
        if self._silent and not self.events:
            raise BrokersUnavailableError

    def _is_full(self) -> bool:
        return len(self.events) >= self._most or self._bytes >= MOST_BODY_BYTES

    def _assign(self, reader: RecordReader) -> None:
        reader.client.assign(
            [
                TopicPartition(self._names[generation], partition, self.offsets[generation, partition])
                for generation, partition in sorted(self._open)
            ]
        )

    def _take(self, reader: RecordReader, message: Message) -> None:
        place = (self._generations[message.topic()], message.partition())
        error = message.error()
        if error is not None and error.code() in _OUT_OF_RANGE:
            low, high = reader.limits(message.topic(), message.partition(), READ_S)
            self.gap |= self.offsets[place] < low
            self.offsets[place] = low if self.offsets[place] < low else high
            self._assign(reader)
        elif error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self._silent.discard(place)
                self._open.discard(place)
        elif place in self._open and message.offset() >= self.offsets[place]:
            self._silent.discard(place)
            self._add(place, message)
            self.offsets[place] = message.offset() + 1

    def _add(self, place: _Partition, message: Message) -> None:
        headers = message.headers() or []
        try:
            meta = read_meta(headers)
        except (KeyError, msgspec.DecodeError):
            return
        if meta.pipe != self._pipe_id or not meta.is_original or self._source not in ("", meta.source):
            return
        body = message.value() or b""
        self._bytes += len(body)
        masks = self._masks.of(meta.pipe, meta.revision)
        shown = masked_text(body, masks) if masks else body.decode("utf-8", "replace")
        position = position_of(*place, message.offset())
        self.events.append(
            LoggedEvent(position, meta, {**meta.request_headers, **_shown_headers(headers)}, shown, bool(masks))
        )


def _starts(
    reader: RecordReader, topics: Mapping[int, Topic], cursor: EventCursor | None, since: datetime
) -> dict[_Partition, int]:
    """Return the first offset of each partition: that of the cursor, or the one of a time."""
    found: dict[_Partition, int] = {}
    for generation, topic in topics.items():
        known = cursor.offsets.get(generation, [])[: topic.partitions] if cursor else []
        found |= {(generation, partition): offset for partition, offset in enumerate(known)}
        new = range(len(known), topic.partitions)
        # The ends are read first: an event that arrives between the two answers is then not passed over.
        ends = {partition: reader.limits(topic.name, partition, READ_S)[1] for partition in new}
        for one in reader.offsets_at(topic.name, new, cursor.at if cursor else since, READ_S) if new else ():
            at_end = one.offset == OFFSET_END or one.offset < 0
            found[generation, one.partition] = ends[one.partition] if at_end else one.offset
    return found


def _shown_headers(headers: list[tuple[str, Any]]) -> dict[str, str]:
    """Return the content type and the CloudEvents attributes, as a delivery names them."""
    texts = {name: (value or b"").decode("utf-8", "replace") for name, value in headers[1:]}
    return {
        name.replace(CE_PREFIX, "ce-", 1) if name.startswith(CE_PREFIX) else name: text
        for name, text in texts.items()
        if name == CONTENT_TYPE or name.startswith(CE_PREFIX)
    }


__all__ = ["MOST_EVENTS", "EventPage", "LoggedEvent", "RecordUnavailableError", "events_after"]
