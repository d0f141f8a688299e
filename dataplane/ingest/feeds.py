"""Feeds: read sources of type kafka from clusters of other owners, and ingest their records like posted events.

All replicas read: Kafka's group protocol assigns the partitions to them. An offset is committed once everything below
it is ACKed, so the events that a killed replica leaves behind are read again, under the same ids.
"""

import asyncio
import logging
import operator
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from dataplane.ingest.events import (
    MAX_ATTRIBUTES,
    ReceivedEvent,
    RecordOrigin,
    is_attribute_name,
    is_attribute_value,
)
from dataplane.ingest.problems import EventRejectedError
from dataplane.ingest.strictjson import parse
from dataplane.ledger.meta import CE_PREFIX, CONTENT_TYPE, Headers
from dataplane.ledger.traceparent import TRACEPARENT, is_traceparent
from dataplane.spec import KafkaSource
from dataplane.spec.clusters import Clusters, why_not_readable
from dataplane.tables.control import ControlTable
from dataplane.tables.records import PipeRecord

log = logging.getLogger(__name__)

BATCH: Final = 500
WAIT_S: Final = 0.5
AGAIN_S: Final = 1.0
OVER_QUOTA_S: Final = 0.1
REQUEST_S: Final = 10.0
_IDS: Final = UUID("6f2e6a0c-5f0e-5a55-9c55-8f6b0d8f5a21")  # namespace of the ids made from topic, partition and offset

# (pipe, source, events, count) -> status of each event: 202 if it is stored. Raises EventRejectedError if none can be.
TakeFeedEvents = Callable[[str, str, Iterable[ReceivedEvent], int], Awaitable[Sequence[int]]]
Room = Callable[[str], int]  # tenant -> the number of events that its quota allows now


class FeedKey(NamedTuple):
    """Identity of a feed: one source of one pipe, and the topic that it reads."""

    pipe: str
    source: str
    tenant: str
    topic: str
    cluster: str
    start: str


TypeHeader = Callable[[FeedKey], str]  # the record header that names the event types of a source; "" if none does


class FeedStoppedError(Exception):
    """Reading stops at an event that can never be taken, because skipping it would lose it."""


def wanted(table: ControlTable, clusters: Clusters) -> set[FeedKey]:
    """Return the feeds to run, by the newest revision with traffic of each pipe. Pure."""
    return {
        FeedKey(pipe.pipe, name, pipe.tenant, source.topic, source.cluster, source.start)
        for pipe in table
        if isinstance(pipe, PipeRecord) and pipe.state != "closed" and pipe.weights
        for name, source in _sources(table, pipe).items()
        if why_not_readable(clusters, source, pipe.tenant) is None
    }


def _sources(table: ControlTable, pipe: PipeRecord) -> dict[str, KafkaSource]:
    plan = table.plan(pipe.pipe, max(revision for revision, _ in pipe.weights))
    found = plan.spec.sources.items() if plan is not None else ()
    return {name: source for name, source in found if isinstance(source, KafkaSource)}


# For a header name that is not UTF-8, confluent-kafka 2.16.1 returns a list with a NULL item and an exception set.
# Python notices the exception in a call made by C code, as here, but not in a hot `message.headers()`: there the NULL
# item is read, and the process ends with SIGSEGV. A second call returns the list without the exception.
_read_headers: Final = operator.methodcaller("headers")


class FeedRecord(NamedTuple):
    """A record as an event whose body is not decoded yet, and the number of its headers that were dropped."""

    event: ReceivedEvent
    dropped_headers: int


def record_of(message: Message, want: FeedKey, type_header: str = "") -> FeedRecord:
    """Read a record: its own time and key, and the headers that may be passed on. Call once for each message.

    type_header: name of the header with the event's type, in lower case; "" if there is none
    """
    location = f"{want.cluster}/{message.topic()}/{message.partition()}/{message.offset()}"
    key = (message.key() or b"").decode("utf-8", "replace") or None
    origin = RecordOrigin(str(uuid5(_IDS, f"{want.pipe}/{want.source}/{location}")), key)
    given, unreadable = _headers_of(message)
    headers, dropped = usable_headers(given)
    event = ReceivedEvent(message.value() or b"null", None, headers, message.timestamp()[1], origin)
    if type_header:
        named = [value for name, value in given if value and name.lower() == type_header]
        event.type_header = named[-1].decode("utf-8", "replace") if named else ""
    return FeedRecord(event, dropped + unreadable)


def _headers_of(message: Message) -> tuple[list[tuple[str, bytes | None]], int]:
    """Return the headers, and how many could not be read: all of them if the name of one is not UTF-8."""
    try:
        return _read_headers(message) or [], 0
    except SystemError:
        return [], 1


def usable_headers(given: Iterable[tuple[str, bytes | None]]) -> tuple[Headers, int]:
    """Choose the headers of a record that are passed on to destinations; return them and the number of dropped ones.

    These are `content-type`, `traceparent` and CloudEvents attributes (`ce_*`), under the same rules as the attributes
    of posted events. All other headers are ignored and not counted. Of two headers with the same name the last counts,
    as Kafka's clients read them.
    """
    ours = [pair for pair in given if pair[0] in (CONTENT_TYPE, TRACEPARENT) or pair[0].startswith(CE_PREFIX)]
    usable = {name: value for name, value in ours if value is not None and _is_usable(name, value)}
    named = CONTENT_TYPE in usable
    content_type = usable.pop(CONTENT_TYPE, b"application/json")
    rest = list(usable.items())[: MAX_ATTRIBUTES + 1]
    return [(CONTENT_TYPE, content_type), *rest], sum(value is not None for _, value in ours) - len(rest) - named


def _is_usable(name: str, value: bytes) -> bool:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return False
    if name == TRACEPARENT:
        return is_traceparent(text)
    is_named = name == CONTENT_TYPE or is_attribute_name(name.removeprefix(CE_PREFIX))
    return is_named and is_attribute_value(text)


def decoded(events: Iterable[ReceivedEvent], max_event_bytes: int) -> Iterator[ReceivedEvent]:
    """Decode the body of each event when it is requested.

    A body that is not JSON is kept as it is: steps that need JSON reject it, and the event becomes a dead letter.
    """
    for event in events:
        try:
            value = parse(event.body) if len(event.body) <= max_event_bytes else None
        except EventRejectedError:
            value = None
        yield msgspec.structs.replace(event, value=value)


class SourceFeed:
    """Reader of one source, until `end`. All calls of its Kafka client are made in threads, one at a time."""

    def __init__(
        self,
        want: FeedKey,
        settings: dict[str, str],
        take: TakeFeedEvents,
        room: Room,
        *,
        dropped: Callable[[int], None],
        max_event_bytes: int,
        type_header: TypeHeader,
    ) -> None:
        """Start reading; `dropped` is called with the number of headers that could not be passed on."""
        self.want = want
        self._settings = settings
        self._take, self._room = take, room
        self._note_dropped = dropped
        self._type_header = type_header
        self._has_dropped = False
        self._max_event_bytes = max_event_bytes
        self._ending = False
        self.task = asyncio.create_task(self._run())

    async def end(self) -> None:
        """Finish and commit the events in progress, then leave the consumer group."""
        self._ending = True
        await self.task

    async def _run(self) -> None:
        while not self._ending:
            consumer = Consumer(self._client_settings())
            try:
                consumer.subscribe([self.want.topic], on_assign=self._assigned)
                while not self._ending:
                    await self._turn(consumer)
            except (KafkaException, FeedStoppedError) as exc:
                log.error("feed of pipe=%s source=%s stopped, will retry: %s", self.want.pipe, self.want.source, exc)
                await self._rest(REQUEST_S)
            except Exception:  # nothing restarts a task that ended: its source would never be read again
                log.exception("feed of pipe=%s source=%s failed; restarting", self.want.pipe, self.want.source)
                await self._rest(REQUEST_S)
            finally:
                await asyncio.to_thread(consumer.close)

    async def _turn(self, consumer: Any) -> None:
        """Read as many records as the tenant's quota allows now; over quota a feed slows down and refuses nothing."""
        while not (allowed := self._room(self.want.tenant)) and not self._ending:
            await asyncio.sleep(OVER_QUOTA_S)
        messages = [
            _checked(one) for one in await asyncio.to_thread(consumer.consume, min(BATCH, allowed or 1), WAIT_S)
        ]
        type_header = self._type_header(self.want)
        if messages and await self._all_taken([self._read(one, type_header) for one in messages]):
            ends = {(one.topic(), one.partition()): one.offset() + 1 for one in messages}
            offsets = [TopicPartition(*partition, offset) for partition, offset in ends.items()]
            await asyncio.to_thread(consumer.commit, offsets=offsets, asynchronous=False)

    def _read(self, message: Message, type_header: str) -> ReceivedEvent:
        event, dropped = record_of(message, self.want, type_header)
        if dropped:
            self._note_dropped(dropped)
            if not self._has_dropped:
                self._has_dropped = True
                where = (self.want.pipe, self.want.source, message.partition(), message.offset())
                log.warning("feed of pipe=%s source=%s drops headers, first at partition=%d offset=%d", *where)
        return event

    async def _all_taken(self, events: list[ReceivedEvent]) -> bool:
        """Offer the events until each is ACKed; return False if the feed was ended first. Raises FeedStoppedError."""
        while not self._ending:
            try:
                offered = decoded(events, self._max_event_bytes)
                statuses = await self._take(self.want.pipe, self.want.source, offered, len(events))
            except EventRejectedError:  # the pipe is not live yet, or closed: do not read on
                statuses = [503] * len(events)
            if 413 in statuses:
                raise FeedStoppedError("an event exceeds the size limit")
            events = [event for event, status in zip(events, statuses, strict=True) if status != 202]
            if not events:
                return True
            await self._rest(AGAIN_S)
        return False

    async def _rest(self, seconds: float) -> None:
        for _ in range(int(seconds / 0.1)):
            if not self._ending:
                await asyncio.sleep(0.1)

    def _client_settings(self) -> dict[str, Any]:
        return {
            **self._settings,
            "group.id": f"penstock.{self.want.pipe}.{self.want.source}",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",  # never skip events silently when the offset is out of range
            "log_level": 0,
        }

    def _assigned(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Start partitions without a committed offset where the spec says.

        That offset is committed before anything is read.
        """
        known = consumer.committed(partitions, timeout=REQUEST_S)
        uncommitted = [partition for partition in known if partition.offset < 0]
        for partition in uncommitted:
            low, high = consumer.get_watermark_offsets(partition, timeout=REQUEST_S)
            partition.offset = low if self.want.start == "earliest" else high
        if uncommitted:
            consumer.commit(offsets=uncommitted, asynchronous=False)
        consumer.assign(known)


def _checked(message: Message) -> Message:
    error: KafkaError | None = message.error()
    if error is not None:
        raise KafkaException(error)
    return message


class SourceFeeds:
    """Runs the feeds that the control table calls for. Used from one event loop."""

    def __init__(
        self,
        clusters: Clusters,
        table: ControlTable,
        take: TakeFeedEvents,
        room: Room,
        *,
        max_event_bytes: int,
        type_header: TypeHeader,
    ) -> None:
        self._clusters, self._table, self._take, self._room = clusters, table, take, room
        self._max_event_bytes = max_event_bytes
        self._type_header = type_header
        self.dropped_headers = 0
        self._feeds: dict[FeedKey, SourceFeed] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._seen = -1

    def poll(self) -> None:
        """Start feeds that are wanted and not running, and end those that are no longer wanted."""
        if not self._clusters or self._seen == self._table.changes:
            return
        self._seen = self._table.changes
        due = wanted(self._table, self._clusters)
        for want in self._feeds.keys() - due:
            self._let_go(self._feeds.pop(want))
        for want in due - self._feeds.keys():
            log.info("reading %s of %s for pipe=%s source=%s", want.topic, want.cluster, want.pipe, want.source)
            settings = self._clusters[want.cluster].settings
            self._feeds[want] = SourceFeed(
                want,
                settings,
                self._take,
                self._room,
                dropped=self._note_dropped,
                max_event_bytes=self._max_event_bytes,
                type_header=self._type_header,
            )

    async def close(self) -> None:
        """End all feeds."""
        for feed in self._feeds.values():
            self._let_go(feed)
        self._feeds.clear()
        await asyncio.gather(*self._ending)

    def _note_dropped(self, count: int) -> None:
        self.dropped_headers += count

    def _let_go(self, feed: SourceFeed) -> None:
        task = asyncio.create_task(feed.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
