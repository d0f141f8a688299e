"""Feed of a source of type table: the changes of a look-up table's rows, from this host's index of changes.

Kafka's group protocol chooses the one replica that reads: the replicas subscribe to the look-up topic, which has one
partition, without fetching it. The committed offset is the position in that topic up to which every change is ACKed;
its metadata has the id of the topic. Positions are the same on every host, so any replica continues, under the same
ids of events. A replica that replaces a killed one waits until its own host has every record before that position.
"""

import asyncio
import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self
from uuid import UUID, uuid5

import msgspec
from confluent_kafka import OFFSET_END, KafkaException, TopicPartition
from msgspec import Raw, Struct

from dataplane.ingest.events import ReceivedEvent, RecordOrigin
from dataplane.ingest.feed import REQUEST_S, Feed, FeedStoppedError, Intake, checked, group_settings
from dataplane.kafka_clients import make_consumer
from dataplane.ledger.meta import CONTENT_TYPE
from dataplane.names import LOOKUP_TOPIC
from dataplane.runtime.lookups import Lookups
from dataplane.spec import SourceSpec, TableSource
from dataplane.tables.change_cursor import ChangeCursor
from dataplane.tables.lookup_store import lookup_folder
from dataplane.tables.optional_files import OptionalFiles
from dataplane.tables.pinned_tables import ChangeLog, PinnedTables, TableChange
from dataplane.tables.query_protocol import change_event

POLL_S: Final = 0.2
SCAN_REST_S: Final = 0.02  # between reads that find no event: other feeds need the CPU, too
SESSION_MS: Final = 10_000  # after which another replica takes the place of a killed one
LONGEST_TURN_MS: Final = 30_000  # a replica that does not poll for so long is replaced, too
PREFIX_DIGITS: Final = 16  # of the hash of a prefix, whose own characters a group's name may not have
MOST_BYTES: Final = 1024 * 1024  # of the rows of one turn
MOST_READ: Final = 10_000  # entries of the index that one turn reads
_IDS: Final = UUID("0f4c3c53-6e6b-5d0b-9f6a-5f6f4a2a7c11")  # namespace of the ids made from row and version


class TableFeedKey(NamedTuple):
    """Identity of a feed: one source of one pipe, and the table whose changes it reads."""

    pipe: str
    source: str
    tenant: str
    table: str
    start: str
    prefix: str

    @property
    def origin(self) -> str:
        """Return what is read, for the log."""
        return f"changes of table {self.table}"

    @property
    def group_parts(self) -> list[str]:
        """Return the last parts of the consumer group's name: another table or prefix begins at `from` again."""
        digest = hashlib.sha256(self.prefix.encode()).hexdigest()[:PREFIX_DIGITS]
        return [self.table, digest] if self.prefix else [self.table]

    def reads(self, source: SourceSpec) -> bool:
        """Return True if a revision's source has the rows that this feed reads.

        Another revision of a ramp may read another table under the same name, and may even write this one.
        """
        return isinstance(source, TableSource) and (source.table, source.prefix) == (self.table, self.prefix)


class TableChangeEvent(Struct, frozen=True):
    """Body of an event. `row`: None if the row was removed."""

    table: str
    key: str
    operation: Literal["upsert", "delete"]
    row: Raw | None
    version: str
    changed_at: str | None


_encode = msgspec.json.Encoder().encode


class FeedPosition(Struct, array_like=True, frozen=True):
    """Committed position of a feed. Its text is the metadata of the committed offset.

    log:    id of the look-up topic
    since:  offset at which the source began: rows that were removed before it are left out of a snapshot
    offset: next offset in that topic; 0: all rows, also those of an earlier topic
    """

    log: str
    since: int
    offset: int = 0

    @classmethod
    def committed(cls, partition: TopicPartition) -> Self | None:
        """Return the position of a committed offset; None if there is none.

        An offset without our metadata, as Kafka's tools write it, is one of an unknown topic: all rows are read again.
        """
        if partition.offset < 0:
            return None
        try:
            stored: Self = msgspec.json.decode(partition.metadata or "", type=cls)
        except msgspec.DecodeError:
            return cls("", 0)
        return msgspec.structs.replace(stored, offset=partition.offset)

    def partition(self) -> TopicPartition:
        """Return the offset to commit."""
        return TopicPartition(LOOKUP_TOPIC, 0, self.offset, _encode((self.log, self.since)).decode())

    def cursor(self, log: ChangeLog, *, is_first: bool) -> ChangeCursor | None:
        """Return what a reader gets after this position; None while the host lacks earlier records.

        is_first: the source begins; otherwise a row that was repeated may have changed before, on another host
        """
        if self.log != log.topic_id:  # recreated
            return ChangeCursor.again()
        if log.end < log.base + max(self.offset, self.since):
            return None
        first = log.base + self.offset if self.offset else 0
        return ChangeCursor(first, log.base + self.since, continues=not is_first)

    def at(self, cursor: ChangeCursor, log: ChangeLog) -> Self:
        """Return the position at which a cursor is. Rows of an earlier topic have none: reading begins again there."""
        since = self.since if self.log == log.topic_id else 0
        return type(self)(log.topic_id, since, max(0, cursor.next - log.base))


def started(start: str, topic_end: int, log: ChangeLog) -> FeedPosition | None:
    """Return the first position of a source; None while the host lacks records that the topic has. Pure.

    start:     `now` or `snapshot`
    topic_end: offset after the last record of the look-up topic
    """
    if log.end - log.base < topic_end:
        return None
    return FeedPosition(log.topic_id, topic_end, topic_end if start == "now" else 0)


def event_of(change: TableChange, want: TableFeedKey, table_id: str) -> ReceivedEvent:
    """Return a change as an event. Its id names a version of a row, so every repeat of the change has the same one."""
    sent = change_event(change)
    body = _encode(TableChangeEvent(want.table, sent.key, sent.operation, sent.row, sent.version, sent.changed_at))
    name = f"{want.pipe}/{want.source}/{table_id}/{change.version}/{change.key}"
    origin = RecordOrigin(str(uuid5(_IDS, name)), change.key)
    return ReceivedEvent(body, None, [(CONTENT_TYPE, b"application/json")], sent.changed_at, origin)


class HostTables:
    """This host's copy of the tables, opened with the first feed that needs it."""

    def __init__(self, var: Path, kafka: str, files: OptionalFiles) -> None:
        self.kafka = kafka
        self._folder, self._files = lookup_folder(var), files
        self._lookups: Lookups | None = None

    def open(self) -> None:
        """Open the store, and start its replication if no other process of the host does it."""
        if self._lookups is None:
            self._lookups = Lookups(self._folder, self.kafka, self._files)

    @contextmanager
    def pinned(self) -> Iterator[PinnedTables | None]:
        """Pin a snapshot of all tables; None while the disk cannot take them."""
        store = self._lookups.opened() if self._lookups is not None else None
        pinned = store.pin() if store is not None else None
        try:
            yield pinned
        finally:
            if pinned is not None:
                pinned.close()

    def close(self) -> None:
        """Close the store, if it is open."""
        if self._lookups is not None:
            self._lookups.close()


class _Turn(NamedTuple):
    """Changes to offer, and where reading continues after them. `caught_up`: end of the log, if none follow.

    cursor:          the one they were read with
    is_position_new: entries of the index were read: with the prefix or not, they are not to be read again
    """

    events: Sequence[ReceivedEvent]
    next: int
    caught_up: int | None
    log: ChangeLog
    cursor: ChangeCursor
    is_position_new: bool


class TableChangeFeed(Feed):
    """Reader of a table's changes."""

    def __init__(self, want: TableFeedKey, tables: HostTables, intake: Intake) -> None:
        super().__init__(want, intake)
        self.want = want
        self._tables = tables
        self._is_assigned = False
        self._position: FeedPosition | None = None
        self._cursor: ChangeCursor | None = None
        self._polled_s = time.monotonic()
        tables.open()

    def open(self) -> Any:
        """Return a consumer that has joined the group of the source, which is one of the table."""
        self._is_assigned, self._cursor, self._polled_s = False, None, time.monotonic()
        settings = {
            "bootstrap.servers": self._tables.kafka,
            "session.timeout.ms": SESSION_MS,
            "max.poll.interval.ms": LONGEST_TURN_MS,
        }
        consumer = make_consumer(settings | group_settings(self.want, *self.want.group_parts))
        consumer.subscribe([LOOKUP_TOPIC], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
        return consumer

    async def turn(self, consumer: Any) -> None:
        """Offer the changes that follow, if this replica reads the source, and commit the position after them."""
        await self._poll(consumer)
        if not self._is_assigned:
            await self.rest(POLL_S)
            return
        if self._cursor is None:
            await asyncio.to_thread(self._begin, consumer)
        most = await self.wait_for_room(consumer)
        found = await asyncio.to_thread(self._read, most)
        if found is None:
            await self.rest(POLL_S)
            return
        if found.events and not await self.all_taken(consumer, list(found.events)):
            return
        if self._position is None or self._cursor is not found.cursor:  # another replica may have read on meanwhile
            return
        self._cursor.next = found.next
        if found.caught_up is not None:
            self._cursor.catch_up(found.caught_up)
        if found.is_position_new:
            self._position = self._position.at(self._cursor, found.log)
            await asyncio.to_thread(consumer.commit, offsets=[self._position.partition()], asynchronous=False)
        if found.caught_up is not None:
            await self.rest(POLL_S)
        elif not found.events:
            await self.rest(SCAN_REST_S)

    async def may_offer(self, consumer: Any) -> bool:
        """Return False if this replica is not the reader any more: older rows must not follow those of the next one."""
        await self._poll(consumer)
        return self._cursor is not None

    async def _poll(self, consumer: Any) -> None:
        """Let the consumer report that it was assigned, or lost, the source.

        Raises FeedStoppedError after a pause in which another replica may have become the reader unnoticed.
        """
        paused_s = time.monotonic() - self._polled_s
        if self._is_assigned and paused_s * 1_000 > SESSION_MS:
            raise FeedStoppedError(f"its consumer group was not polled for {paused_s:.0f} s")
        message = await asyncio.to_thread(consumer.poll, 0)
        if message is not None:
            checked(message)
        self._polled_s = time.monotonic()

    def _begin(self, consumer: Any) -> None:
        """Set the cursor, if this host has every record before it. A first position is committed before reading."""
        with self._tables.pinned() as pinned:
            log = pinned.change_log() if pinned is not None else None
        if log is None:
            return
        is_first = self._position is None
        if self._position is None:
            _, end = consumer.get_watermark_offsets(TopicPartition(LOOKUP_TOPIC, 0), timeout=REQUEST_S, cached=False)
            position = started(self.want.start, end, log)
            if position is None:
                return
            consumer.commit(offsets=[position.partition()], asynchronous=False)
            self._position = position
        self._cursor = self._position.cursor(log, is_first=is_first)

    def _read(self, most: int) -> _Turn | None:
        """Return the next changes; None while this host does not have the table, or its index is not complete."""
        with self._tables.pinned() as pinned:
            log = pinned.change_log() if pinned is not None else None
            if pinned is None or log is None or self._cursor is None or self._position is None:
                return None
            table = pinned.table(self.want.tenant, self.want.table)
            if table is None or table.state == "removed":
                return None
            is_recreated = self._position.log != log.topic_id
            if is_recreated:
                self._cursor = ChangeCursor.again()
            cursor = self._cursor
            newest = pinned.last_change(table.table)
            if newest < cursor.next and not is_recreated:
                return _Turn([], cursor.next, log.end, log, cursor, is_position_new=False)
            found = pinned.changes(
                table.table,
                prefix=self.want.prefix,
                first=cursor.next,
                most_rows=most,
                most_bytes=MOST_BYTES,
                most_read=MOST_READ,
            )
            caught_up = log.end if found.next_position > newest else None
        wanted = [event_of(one, self.want, table.table) for one in found.changes if cursor.wants(one)]
        return _Turn(wanted, found.next_position, caught_up, log, cursor, is_position_new=True)

    def _assigned(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Become the reader. The consumer fetches nothing."""
        if not partitions:
            return
        (known,) = consumer.committed(partitions, timeout=REQUEST_S)
        if known.error is not None:
            raise KafkaException(known.error)
        # Kafka forgets the offset with a deleted topic. This replica's own position is at worst an earlier one.
        self._position = FeedPosition.committed(known) or self._position
        self._cursor = None
        consumer.assign([TopicPartition(LOOKUP_TOPIC, 0, OFFSET_END)])
        consumer.pause([TopicPartition(LOOKUP_TOPIC, 0)])
        self._is_assigned = True

    def _revoked(self, _consumer: Any, _partitions: list[TopicPartition]) -> None:
        self._is_assigned, self._cursor = False, None
