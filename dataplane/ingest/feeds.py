"""Feeds: what sources of type kafka read from clusters that are not ours, taken as events like those of requests.

All replicas read: Kafka's group protocol shares the partitions among them. Offsets are committed once everything below
is ACKed, so a replica that is killed leaves events to be read again, under the same ids.
"""

import asyncio
import logging
import operator
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from dataplane.ingest.events import CE_PREFIX, MAX_ATTRIBUTES, Event, Origin, is_attribute_name, is_attribute_value
from dataplane.ingest.problems import RefusalError
from dataplane.ingest.strictjson import parse
from dataplane.ledger.meta import Headers
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
_IDS: Final = UUID("6f2e6a0c-5f0e-5a55-9c55-8f6b0d8f5a21")  # the name space of ids made of places
CONTENT_TYPE: Final = "content-type"

# Takes so many events of a source of a pipe; says of each whether it is stored. Raises RefusalError if none can be now.
Take = Callable[[str, str, Iterable[Event], int], Awaitable[Sequence[int]]]
Room = Callable[[str], int]  # how many events of a tenant fit into its quota now


class Wanted(NamedTuple):
    """One source of one pipe, and where it reads."""

    pipe: str
    source: str
    tenant: str
    topic: str
    cluster: str
    start: str


class FeedStoppedError(Exception):
    """An event can never be taken: reading stops there, for skipping it would lose it."""


def wanted(table: ControlTable, clusters: Clusters) -> set[Wanted]:
    """What is to be read, as the newest revision with traffic of each pipe says. Pure."""
    return {
        Wanted(pipe.pipe, name, pipe.tenant, source.topic, source.cluster, source.start)
        for pipe in table
        if isinstance(pipe, PipeRecord) and pipe.state != "closed" and pipe.weights
        for name, source in _sources(table, pipe).items()
        if why_not_readable(clusters, source, pipe.tenant) is None
    }


def _sources(table: ControlTable, pipe: PipeRecord) -> dict[str, KafkaSource]:
    plan = table.plan(pipe.pipe, max(revision for revision, _ in pipe.weights))
    found = plan.spec.sources.items() if plan is not None else ()
    return {name: source for name, source in found if isinstance(source, KafkaSource)}


# For a name that is not UTF-8 confluent-kafka 2.16.1 returns a list with a hole and an exception set. Python notices it
# in a call made by C code, as here, but not in a hot `message.headers()`: there the hole is read, and the process ends
# with SIGSEGV. A second call gives the list without the exception.
_read_headers: Final = operator.methodcaller("headers")


class Record(NamedTuple):
    """A record as an event whose body is not decoded yet, and how many of its headers could not be taken."""

    event: Event
    dropped_headers: int


def record_of(message: Message, want: Wanted) -> Record:
    """Read a record: its own time and key, and the headers that may go on. Call once for each message."""
    place = f"{want.cluster}/{message.topic()}/{message.partition()}/{message.offset()}"
    key = (message.key() or b"").decode("utf-8", "replace") or None
    origin = Origin(str(uuid5(_IDS, f"{want.pipe}/{want.source}/{place}")), key)
    headers, dropped = _headers_of(message)
    return Record(Event(message.value() or b"null", None, headers, message.timestamp()[1], origin), dropped)


def _headers_of(message: Message) -> tuple[Headers, int]:
    try:
        return usable_headers(_read_headers(message) or [])
    except SystemError:
        return usable_headers([])[0], 1


def usable_headers(given: Iterable[tuple[str, bytes | None]]) -> tuple[Headers, int]:
    """Choose the headers of a record that go on to destinations; return them, and how many had to be dropped.

    These are `content-type`, `traceparent` and CloudEvents attributes (`ce_*`), under the rules that attributes of
    posted events are under. Others are the record's own affair and not counted. Of two with one name the last counts,
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


def decoded(events: Iterable[Event], max_event_bytes: int) -> Iterator[Event]:
    """Decode the body of each when it is asked for.

    What is no JSON is kept as it is: steps that need JSON say so, with the event as a dead letter.
    """
    for event in events:
        try:
            value = parse(event.body) if len(event.body) <= max_event_bytes else None
        except RefusalError:
            value = None
        yield msgspec.structs.replace(event, value=value)


class Feed:
    """Reads one source until told to end. All calls of its client are made in threads, one at a time."""

    def __init__(
        self,
        want: Wanted,
        settings: dict[str, str],
        take: Take,
        room: Room,
        *,
        dropped: Callable[[int], None],
        max_event_bytes: int,
    ) -> None:
        """`dropped` is called with the number of headers that could not be taken."""
        self.want = want
        self._settings = settings
        self._take, self._room = take, room
        self._note_dropped = dropped
        self._has_dropped = False
        self._max_event_bytes = max_event_bytes
        self._ending = False
        self.task = asyncio.create_task(self._run())

    async def end(self) -> None:
        """Finish what is in hand, commit it, leave the group."""
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
                log.error("feed of pipe=%s source=%s waits: %s", self.want.pipe, self.want.source, exc)
                await self._rest(REQUEST_S)
            except Exception:  # a task that ended would be missed by nobody, and its source never read again
                log.exception("feed of pipe=%s source=%s failed; it begins again", self.want.pipe, self.want.source)
                await self._rest(REQUEST_S)
            finally:
                await asyncio.to_thread(consumer.close)

    async def _turn(self, consumer: Any) -> None:
        """Read as many records as the tenant's quota has room for; over quota a feed slows down, it refuses nothing."""
        while not (room := self._room(self.want.tenant)) and not self._ending:
            await asyncio.sleep(OVER_QUOTA_S)
        messages = [_good(one) for one in await asyncio.to_thread(consumer.consume, min(BATCH, room or 1), WAIT_S)]
        if messages and await self._all_taken([self._read(one) for one in messages]):
            ends = {(one.topic(), one.partition()): one.offset() + 1 for one in messages}
            offsets = [TopicPartition(*place, offset) for place, offset in ends.items()]
            await asyncio.to_thread(consumer.commit, offsets=offsets, asynchronous=False)

    def _read(self, message: Message) -> Event:
        event, dropped = record_of(message, self.want)
        if dropped:
            self._note_dropped(dropped)
            if not self._has_dropped:
                self._has_dropped = True
                where = (self.want.pipe, self.want.source, message.partition(), message.offset())
                log.warning("feed of pipe=%s source=%s drops headers, first at partition=%d offset=%d", *where)
        return event

    async def _all_taken(self, events: list[Event]) -> bool:
        """Offer them until each is ACKed; False if the end came first. Raises FeedStoppedError."""
        while not self._ending:
            try:
                offered = decoded(events, self._max_event_bytes)
                statuses = await self._take(self.want.pipe, self.want.source, offered, len(events))
            except RefusalError:  # not live yet, or closed: nothing is read past it
                statuses = [503] * len(events)
            if 413 in statuses:
                raise FeedStoppedError("an event is larger than an event may be")
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
            "auto.offset.reset": "error",  # out of range is never answered by a jump
            "log_level": 0,
        }

    def _assigned(self, consumer: Any, places: list[TopicPartition]) -> None:
        """Partitions that nobody has read yet begin where the spec says; that is committed before anything is read."""
        known = consumer.committed(places, timeout=REQUEST_S)
        first = [place for place in known if place.offset < 0]
        for place in first:
            low, high = consumer.get_watermark_offsets(place, timeout=REQUEST_S)
            place.offset = low if self.want.start == "earliest" else high
        if first:
            consumer.commit(offsets=first, asynchronous=False)
        consumer.assign(known)


def _good(message: Message) -> Message:
    error: KafkaError | None = message.error()
    if error is not None:
        raise KafkaException(error)
    return message


class Feeds:
    """Keeps the feeds that the control table wants. Used from one event loop."""

    def __init__(self, clusters: Clusters, table: ControlTable, take: Take, room: Room, max_event_bytes: int) -> None:
        self._clusters, self._table, self._take, self._room = clusters, table, take, room
        self._max_event_bytes = max_event_bytes
        self.dropped_headers = 0
        self._feeds: dict[Wanted, Feed] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._seen = -1

    def turn(self) -> None:
        """Start what is wanted, end what is not."""
        if not self._clusters or self._seen == self._table.changes:
            return
        self._seen = self._table.changes
        due = wanted(self._table, self._clusters)
        for want in self._feeds.keys() - due:
            self._let_go(self._feeds.pop(want))
        for want in due - self._feeds.keys():
            log.info("reading %s of %s for pipe=%s source=%s", want.topic, want.cluster, want.pipe, want.source)
            settings = self._clusters[want.cluster].settings
            self._feeds[want] = Feed(
                want,
                settings,
                self._take,
                self._room,
                dropped=self._note_dropped,
                max_event_bytes=self._max_event_bytes,
            )

    async def close(self) -> None:
        """End them all."""
        for feed in self._feeds.values():
            self._let_go(feed)
        self._feeds.clear()
        await asyncio.gather(*self._ending)

    def _note_dropped(self, count: int) -> None:
        self.dropped_headers += count

    def _let_go(self, feed: Feed) -> None:
        task = asyncio.create_task(feed.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
