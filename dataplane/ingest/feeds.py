"""Feeds: read sources of type kafka, from clusters of other owners, table and penstock like posted events.

All replicas read: Kafka's group protocol assigns the partitions to them. An offset is committed once everything below
it is ACKed, so the events that a killed replica leaves behind are read again, under the same ids.
"""

import asyncio
import logging
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

from confluent_kafka import Consumer, Message, TopicPartition

from dataplane.ingest.events import (
    MAX_ATTRIBUTES,
    ReceivedEvent,
    RecordOrigin,
    is_attribute_name,
    is_attribute_value,
)
from dataplane.ingest.feed import REQUEST_S, Feed, Intake, checked, group_settings
from dataplane.ingest.operational_feed import OperationalFeed, OperationalFeedKey
from dataplane.ingest.table_feed import HostTables, TableChangeFeed, TableFeedKey
from dataplane.ledger.meta import CE_PREFIX, CONTENT_TYPE, Headers
from dataplane.ledger.traceparent import TRACEPARENT, is_traceparent
from dataplane.spec import KafkaSource, PenstockSource, TableSource
from dataplane.spec.clusters import Clusters, why_not_readable
from dataplane.tables.control import ControlTable
from dataplane.tables.records import PipeRecord

log = logging.getLogger(__name__)

WAIT_S: Final = 0.5
_IDS: Final = UUID("6f2e6a0c-5f0e-5a55-9c55-8f6b0d8f5a21")  # namespace of the ids made from topic, partition and offset


class FeedKey(NamedTuple):
    """Identity of a feed: one source of one pipe, and the topic that it reads."""

    pipe: str
    source: str
    tenant: str
    topic: str
    cluster: str
    start: str

    @property
    def origin(self) -> str:
        """Return what is read, for the log."""
        return f"{self.topic} of {self.cluster}"


AnyFeedKey = FeedKey | TableFeedKey | OperationalFeedKey
TypeHeader = Callable[[FeedKey], str]  # the record header that names the event types of a source; "" if none does


def wanted(table: ControlTable, clusters: Clusters) -> set[AnyFeedKey]:
    """Return the feeds to run, by the newest revision with traffic of each pipe. Pure."""
    return set(_wanted(table, clusters))


def _wanted(table: ControlTable, clusters: Clusters) -> Iterator[AnyFeedKey]:
    for pipe in table:
        if not isinstance(pipe, PipeRecord) or pipe.state == "closed" or not pipe.weights:
            continue
        plan = table.plan(pipe.pipe, max(revision for revision, _ in pipe.weights))
        for name, source in plan.spec.sources.items() if plan is not None else ():
            match source:
                case TableSource():
                    yield TableFeedKey(pipe.pipe, name, pipe.tenant, source.table, source.from_, source.prefix)
                case PenstockSource():
                    yield OperationalFeedKey(pipe.pipe, name, pipe.tenant, source.events)
                case KafkaSource() if why_not_readable(clusters, source, pipe.tenant) is None:
                    yield FeedKey(pipe.pipe, name, pipe.tenant, source.topic, source.cluster, source.start)


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


class KafkaFeed(Feed):
    """Reader of a topic in another owner's cluster."""

    def __init__(
        self,
        want: FeedKey,
        settings: dict[str, str],
        intake: Intake,
        *,
        dropped: Callable[[int], None],
        type_header: TypeHeader,
    ) -> None:
        """Create the feed; `dropped` is called with the number of headers that could not be passed on."""
        super().__init__(want, intake)
        self.want = want
        self._settings = settings
        self._note_dropped = dropped
        self._type_header = type_header
        self._has_dropped = False

    def open(self) -> Any:
        """Return a consumer of the topic."""
        consumer = Consumer({**self._settings, **group_settings(self.want)})
        consumer.subscribe([self.want.topic], on_assign=self._assigned)
        return consumer

    async def turn(self, consumer: Any) -> None:
        """Read as many records as the tenant's quota allows now, and commit the offsets of those that are taken."""
        most = await self.wait_for_room(consumer)
        messages = [checked(one) for one in await asyncio.to_thread(consumer.consume, most, WAIT_S)]
        type_header = self._type_header(self.want)
        if messages and await self.all_taken(consumer, [self._read(one, type_header) for one in messages]):
            await self.commit_after(consumer, messages)

    def _read(self, message: Message, type_header: str) -> ReceivedEvent:
        event, dropped = record_of(message, self.want, type_header)
        if dropped:
            self._note_dropped(dropped)
            if not self._has_dropped:
                self._has_dropped = True
                where = (self.want.pipe, self.want.source, message.partition(), message.offset())
                log.warning("feed of pipe=%s source=%s drops headers, first at partition=%d offset=%d", *where)
        return event

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


class SourceFeeds:
    """Runs the feeds that the control table calls for. Used from one event loop."""

    def __init__(
        self,
        clusters: Clusters,
        table: ControlTable,
        intake: Intake,
        tables: HostTables,
        *,
        type_header: TypeHeader,
    ) -> None:
        self._clusters, self._table, self._intake, self._tables = clusters, table, intake, tables
        self._type_header = type_header
        self.dropped_headers = 0
        self._feeds: dict[AnyFeedKey, Feed] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._seen = -1

    def poll(self) -> None:
        """Start feeds that are wanted and not running, and end those that are no longer wanted."""
        if self._seen == self._table.changes:
            return
        self._seen = self._table.changes
        due = wanted(self._table, self._clusters)
        for want in self._feeds.keys() - due:
            self._let_go(self._feeds.pop(want))
        for want in due - self._feeds.keys():
            log.info("reading %s for pipe=%s source=%s", want.origin, want.pipe, want.source)
            self._feeds[want] = self._feed(want)
            self._feeds[want].start()

    async def close(self) -> None:
        """End all feeds."""
        for feed in self._feeds.values():
            self._let_go(feed)
        self._feeds.clear()
        await asyncio.gather(*self._ending)
        await asyncio.to_thread(self._tables.close)

    def _feed(self, want: AnyFeedKey) -> Feed:
        if isinstance(want, TableFeedKey):
            return TableChangeFeed(want, self._tables, self._intake)
        if isinstance(want, OperationalFeedKey):
            return OperationalFeed(want, self._tables.kafka, self._intake)
        settings = self._clusters[want.cluster].settings
        return KafkaFeed(want, settings, self._intake, dropped=self._note_dropped, type_header=self._type_header)

    def _note_dropped(self, count: int) -> None:
        self.dropped_headers += count

    def _let_go(self, feed: Feed) -> None:
        task = asyncio.create_task(feed.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
