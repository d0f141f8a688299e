"""Feed of a table's changes: it offers and commits only while its replica is the reader of the source."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from dataplane.ingest import table_feed
from dataplane.ingest.events import ReceivedEvent
from dataplane.ingest.feed import FeedStoppedError, Intake
from dataplane.ingest.table_feed import FeedPosition, HostTables, TableChangeFeed, TableFeedKey
from dataplane.names import LOOKUP_TOPIC
from dataplane.tables.lookup_store import LookupStore
from dataplane.tables.lookups import TableRecord, encode_row, encode_table, row_key, table_key
from dataplane.tables.optional_files import OptionalFiles
from dataplane.tables.pinned_tables import PinnedTables

TABLE, OTHER = "tab_01", "tab_02"
WANT = TableFeedKey("p", "users", "t1", "users", "snapshot", "")


class StoredTables(HostTables):
    """Tables of a store that the test fills, in place of the topic."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "", OptionalFiles())
        self.store = LookupStore(folder)
        self.end = 0

    def open(self) -> None:
        """Replicate nothing."""

    @contextmanager
    def pinned(self) -> Iterator[PinnedTables | None]:
        pinned = self.store.pin()
        try:
            yield pinned
        finally:
            pinned.close()

    def write(self, *keys: str, table: str = TABLE) -> None:
        """Write a row of each key."""
        for key in keys:
            self.end += 1
            self.store.apply([(row_key(table, key), encode_row(self.end, b"{}"))], self.end)


class Group:
    """Consumer of the source's group: it is assigned at the first poll, and each poll can be followed by an event."""

    def __init__(self, feed: TableChangeFeed, tables: StoredTables, committed: TopicPartition | None = None) -> None:
        self._feed, self._tables = feed, tables
        self.stored = committed or TopicPartition(LOOKUP_TOPIC, 0, -1001)
        self.commits: list[int] = []
        self.polls = 0
        self.on_poll: Callable[[int], None] = lambda _number: None

    def poll(self, _timeout: float) -> None:
        self.polls += 1
        if self.polls == 1:
            self._feed._assigned(self, [TopicPartition(LOOKUP_TOPIC, 0)])
        self.on_poll(self.polls)

    def lose(self) -> None:
        self._feed._revoked(self, [])

    def committed(self, _partitions: Any, **_limits: Any) -> list[TopicPartition]:
        return [self.stored]

    def commit(self, *, offsets: list[TopicPartition], **_modes: Any) -> None:
        (self.stored,) = offsets
        self.commits.append(self.stored.offset)

    def get_watermark_offsets(self, _partition: Any, **_limits: Any) -> tuple[int, int]:
        return 0, self._tables.end

    def assign(self, _partitions: Any) -> None: ...

    def pause(self, _partitions: Any) -> None: ...


class Offers:
    """Intake that records the keys of each offer and answers with the next of `statuses`, then with 202."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.keys: list[list[str]] = []
        self.rooms: list[int] = []

    async def take(self, _want: Any, events: Iterable[ReceivedEvent], _count: int) -> Sequence[int]:
        keys = [one.origin.key or "" for one in events if one.origin]
        self.keys.append(keys)
        return [self.statuses.pop(0) if self.statuses else 202] * len(keys)

    def room(self, _tenant: str) -> int:
        return self.rooms.pop(0) if self.rooms else 100

    @property
    def intake(self) -> Intake:
        return Intake(self.take, self.room, 1_000)


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[StoredTables]:
    made = StoredTables(tmp_path)
    made.store.begin_topic("topic-1")
    made.store.index_changes()
    made.store.apply([(table_key(TABLE), encode_table(TableRecord(TABLE, 1, "t1", "users")))], 1)
    made.end = 1
    yield made
    made.store.close()


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataplane.ingest.feed.AGAIN_S", 0.01)
    monkeypatch.setattr("dataplane.ingest.feed.OVER_QUOTA_S", 0.01)
    monkeypatch.setattr(table_feed, "POLL_S", 0.01)


def test_rows_are_offered_until_they_are_taken_and_then_committed(tables: StoredTables):
    tables.write("a", "b")
    offers = Offers(503, 503)
    feed = TableChangeFeed(WANT, tables, offers.intake)
    group = Group(feed, tables)
    asyncio.run(feed.turn(group))
    assert offers.keys == [["a", "b"]] * 3
    assert group.commits == [0, 3]


def test_evicted_reader_offers_no_more_rows_and_commits_nothing(tables: StoredTables):
    tables.write("a")
    offers = Offers(*[503] * 100)
    feed = TableChangeFeed(WANT, tables, offers.intake)
    group = Group(feed, tables)
    group.on_poll = lambda number: group.lose() if number == 4 else None
    asyncio.run(asyncio.wait_for(feed.turn(group), 20))
    assert offers.keys == [["a"]] * 2, "polls 2 and 3 preceded an attempt each"
    assert group.commits == [0]


def test_reader_evicted_during_an_attempt_commits_nothing(tables: StoredTables):
    tables.write("a")
    offers = Offers()
    feed = TableChangeFeed(WANT, tables, offers.intake)
    group = Group(feed, tables)

    async def take(*given: Any) -> Sequence[int]:
        group.lose()
        return await offers.take(*given)

    feed._intake = offers.intake._replace(take=take)
    asyncio.run(feed.turn(group))
    assert (offers.keys, group.commits) == ([["a"]], [0])


def test_reader_evicted_while_it_waits_for_quota_reads_nothing(tables: StoredTables):
    tables.write("a")
    offers = Offers()
    offers.rooms = [0] * 5
    feed = TableChangeFeed(WANT, tables, offers.intake)
    group = Group(feed, tables)
    group.on_poll = lambda number: group.lose() if number == 3 else None
    asyncio.run(feed.turn(group))
    assert (offers.keys, len(offers.rooms)) == ([], 3)


def test_assignment_that_follows_a_loss_reads_again(tables: StoredTables):
    tables.write("a")
    offers = Offers(503)
    feed = TableChangeFeed(WANT, tables, offers.intake)
    group = Group(feed, tables)

    def lose_and_get(number: int) -> None:
        if number == 3:
            group.lose()
            group.stored = FeedPosition("topic-1", 0, tables.end).partition()
            feed._assigned(group, [TopicPartition(LOOKUP_TOPIC, 0)])

    group.on_poll = lose_and_get

    async def turns() -> None:
        for _ in range(3):
            await feed.turn(group)

    asyncio.run(turns())
    assert offers.keys == [["a"]], "the replica that read meanwhile has had it taken"


def test_reader_that_was_paused_for_its_session_offers_nothing(tables: StoredTables, monkeypatch: pytest.MonkeyPatch):
    tables.write("a")
    offers = Offers(503)
    feed = TableChangeFeed(WANT, tables, offers.intake)
    group = Group(feed, tables)
    monkeypatch.setattr(table_feed, "SESSION_MS", 300)
    take = offers.take

    async def pause(*given: Any) -> Sequence[int]:
        time.sleep(0.5)  # of the whole process, as a suspended VM
        return await take(*given)

    feed._intake = offers.intake._replace(take=pause)
    with pytest.raises(FeedStoppedError, match="not polled"):
        asyncio.run(feed.turn(group))
    assert (len(offers.keys), group.commits) == (1, [0])


def test_consumer_is_evicted_if_it_does_not_poll_for_half_a_minute():
    assert table_feed.SESSION_MS < table_feed.LONGEST_TURN_MS <= 30_000


def test_recreated_topic_is_committed_also_without_events(tables: StoredTables):
    """Otherwise a replica that replaces this one reads all rows of the new topic again."""
    feed = TableChangeFeed(WANT, tables, Offers().intake)
    group = Group(feed, tables, FeedPosition("topic-0", 4, 7).partition())
    asyncio.run(feed.turn(group))
    assert FeedPosition.committed(group.stored) == FeedPosition("topic-1", 0, tables.end)
    asyncio.run(feed.turn(group))
    assert len(group.commits) == 1, "the position is committed once"


def test_scan_that_finds_no_event_is_committed_once_and_not_repeated(
    tables: StoredTables, monkeypatch: pytest.MonkeyPatch
):
    tables.write("us-1", "us-2", "us-3")
    monkeypatch.setattr(table_feed, "MOST_READ", 2)
    offers = Offers()
    feed = TableChangeFeed(WANT._replace(prefix="eu-"), tables, offers.intake)
    group = Group(feed, tables)
    scans = list[int]()
    changes = PinnedTables.changes

    def counted(pinned: PinnedTables, table: str, **limits: Any) -> Any:
        scans.append(limits["first"])
        return changes(pinned, table, **limits)

    monkeypatch.setattr(PinnedTables, "changes", counted)

    async def turns() -> None:
        for _ in range(4):
            await feed.turn(group)
        tables.write("x", table=OTHER)
        await feed.turn(group)

    asyncio.run(turns())
    assert (group.commits, scans, offers.keys) == ([0, 3, 4], [0, 3], [])
    tables.write("eu-1")
    asyncio.run(feed.turn(group))
    assert (group.commits[2:], offers.keys) == ([4, 6], [["eu-1"]])
