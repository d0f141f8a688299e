"""Feeds: what sources of type kafka read from clusters that are not ours, taken as events like those of requests.

All replicas read: Kafka's group protocol shares the partitions among them. Offsets are committed once everything below
is ACKed, so a replica that is killed leaves events to be read again, under the same ids.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from dataplane.ingest.events import CE_PREFIX, Event, Origin
from dataplane.ingest.problems import RefusalError
from dataplane.ingest.strictjson import parse
from dataplane.ledger.meta import Headers
from dataplane.ledger.traceparent import TRACEPARENT
from dataplane.spec import KafkaSource
from dataplane.spec.clusters import Clusters, why_not_readable
from dataplane.tables.control import ControlTable
from dataplane.tables.records import PipeRecord

log = logging.getLogger(__name__)

BATCH: Final = 500
WAIT_S: Final = 0.5
AGAIN_S: Final = 1.0
REQUEST_S: Final = 10.0
_IDS: Final = UUID("6f2e6a0c-5f0e-5a55-9c55-8f6b0d8f5a21")  # the name space of ids made of places
_SKIPPED: Final = ("penstock-", "webhook-")  # ours to write

# Takes events of a source of a pipe, and says of each whether it is stored. Raises RefusalError if none can be now.
Take = Callable[[str, str, list[Event]], Awaitable[Sequence[int]]]


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


def event_of(message: Message, want: Wanted) -> Event:
    """A record as an event: its own time and key, its headers without those that are ours to write."""
    body = message.value() or b"null"
    try:
        value = parse(body)
    except RefusalError:
        value = None  # kept as it is: steps that need JSON say so, with the event as a dead letter
    place = f"{want.cluster}/{message.topic()}/{message.partition()}/{message.offset()}"
    key = (message.key() or b"").decode("utf-8", "replace") or None
    origin = Origin(str(uuid5(_IDS, f"{want.pipe}/{want.source}/{place}")), key)
    return Event(body, value, _headers(message.headers() or []), message.timestamp()[1], origin)


def _headers(given: Iterable[tuple[str, bytes | None]]) -> Headers:
    known = [(name, value) for name, value in given if value is not None and not name.startswith(_SKIPPED)]
    kept = [pair for pair in known if pair[0].startswith(CE_PREFIX) or pair[0] in ("content-type", TRACEPARENT)]
    return kept if any(name == "content-type" for name, _ in kept) else [("content-type", b"application/json"), *kept]


class Feed:
    """Reads one source until told to end. All calls of its client are made in threads, one at a time."""

    def __init__(self, want: Wanted, settings: dict[str, str], take: Take) -> None:
        self.want = want
        self._settings = settings
        self._take = take
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
            finally:
                await asyncio.to_thread(consumer.close)

    async def _turn(self, consumer: Any) -> None:
        messages = [_good(one) for one in await asyncio.to_thread(consumer.consume, BATCH, WAIT_S)]
        if messages and await self._all_taken([event_of(one, self.want) for one in messages]):
            ends = {(one.topic(), one.partition()): one.offset() + 1 for one in messages}
            offsets = [TopicPartition(*place, offset) for place, offset in ends.items()]
            await asyncio.to_thread(consumer.commit, offsets=offsets, asynchronous=False)

    async def _all_taken(self, events: list[Event]) -> bool:
        """Offer them until each is ACKed; False if the end came first. Raises FeedStoppedError."""
        while not self._ending:
            try:
                statuses = await self._take(self.want.pipe, self.want.source, events)
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

    def __init__(self, clusters: Clusters, table: ControlTable, take: Take) -> None:
        self._clusters, self._table, self._take = clusters, table, take
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
            self._feeds[want] = Feed(want, self._clusters[want.cluster].settings, self._take)

    async def close(self) -> None:
        """End them all."""
        for feed in self._feeds.values():
            self._let_go(feed)
        self._feeds.clear()
        await asyncio.gather(*self._ending)

    def _let_go(self, feed: Feed) -> None:
        task = asyncio.create_task(feed.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
