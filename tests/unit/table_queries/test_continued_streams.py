"""Clients that continue a stream, on any host: none misses a row or gets an earlier version after a later one."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.table_queries import change_stream
from dataplane.table_queries.change_stream import ChangeStream
from dataplane.table_queries.requests import QueryRefusedError, parse_query
from dataplane.tables.access_tokens import TableAccess
from dataplane.tables.lookups import decode_row
from dataplane.tables.query_protocol import changes_path
from tests.support.change_client import StreamEvent, parsed
from tests.unit.table_queries.test_app import MINE, NOW_S, OTHERS, Service, row

TOPIC: Final = "id-1"
Record = tuple[int, tuple[bytes, bytes]]  # offset, key and value


class Host:
    """Store of a host, which reads a topic."""

    def __init__(self, folder: Path, topic: str = TOPIC) -> None:
        self.service = Service(folder)
        self.store = self.service.store
        self.begin(topic)
        self.next_offset = 0

    def begin(self, topic: str) -> None:
        """Read a topic from its beginning."""
        self.store.begin_topic(topic)
        self.store.index_changes()

    def read(self, records: Sequence[Record], end: int) -> None:
        """Read the records before the offset `end` that have not been read."""
        found = [one for one in records if self.next_offset <= one[0] < end]
        if found:
            self.next_offset = found[-1][0] + 1
            self.store.apply([one for _, one in found], self.next_offset, [offset for offset, _ in found])


class Client:
    """Copy of a table that a client keeps across connections. It has the last id that it got, and nothing else."""

    def __init__(self, query: bytes = b"from=snapshot") -> None:
        self.rows: dict[str, Any] = {}
        self.versions: dict[str, int] = {}
        self.events: list[StreamEvent] = []
        self._query, self._last_id = query, ""

    def connect(self, host: Host, table: str = MINE) -> ChangeStream:
        query = parse_query(changes_path(table).encode(), self._query, self._last_id.encode())
        access = TableAccess("ten" if table == MINE else "another", table, "users", NOW_S + 1)
        return ChangeStream(host.service.app.streams._reader, query, access)  # type: ignore[arg-type]

    def take(self, stream: ChangeStream, turns: int = 1_000) -> None:
        """Take events until the stream has no more, or for some turns."""
        while stream.is_due and turns:
            turns -= 1
            for event in parsed(iter(stream.turn().splitlines(keepends=True)), self._last_id):
                self._last_id = event.id
                self.events.append(event)
                if event.name == "message":
                    self._note(event.data)

    def follow(self, host: Host, table: str = MINE) -> ChangeStream:
        """Connect, and take all events."""
        stream = self.connect(host, table)
        self.take(stream)
        return stream

    @property
    def keys(self) -> list[str]:
        """Keys of the changes so far."""
        return [one.data["key"] for one in self.events if one.name == "message"]

    def _note(self, change: Any) -> None:
        key, version = change["key"], int(change["version"])
        assert version >= self.versions.get(key, -1), "never back to an earlier version"
        self.versions[key] = version
        self.rows[key] = change["row"]
        if change["operation"] == "delete":
            del self.rows[key]


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[list[Host]]:
    made = [Host(tmp_path / name) for name in ("first", "second")]
    yield made
    for one in made:
        one.service.lookups.close()


@contextmanager
def small_turns() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(change_stream, "MOST_ROWS", 1)
        yield


def woken(stream: ChangeStream, host: Host) -> ChangeStream:
    stream.wake(host.service.app.streams._reader.last_changes([MINE])[MINE])
    return stream


def test_row_is_sent_although_only_the_other_host_has_read_the_record_that_compaction_removed(hosts: list[Host]):
    """The second host's topic has lost the first record of `a`, which the last one repeats: it sends `a` after `b`."""
    repeat = row("a", '{"n":1}', 5)
    hosts[0].read([(0, repeat), (1, row("b", "{}", 5)), (2, row("c", "{}", 5)), (3, repeat)], 4)
    hosts[1].read([(1, row("b", "{}", 5)), (2, row("c", "{}", 5)), (3, repeat)], 4)
    client = Client()
    with small_turns():
        client.take(client.connect(hosts[1]), turns=1)
        assert client.keys == ["b"]
    client.follow(hosts[0])
    assert client.keys == ["b", "c", "a"]


def test_row_is_sent_although_the_host_reads_the_record_that_repeats_it_only_later(hosts: list[Host]):
    topic = [(0, row("a", "{}", 5)), (1, row("b", "{}", 5)), (2, row("c", "{}", 5)), (3, row("a", "{}", 5))]
    hosts[0].read(topic, 4)
    hosts[1].read(topic, 3)
    client = Client()
    with small_turns():
        client.take(client.connect(hosts[0]), turns=1)
    stream = client.follow(hosts[1])
    assert client.keys == ["b", "c"]
    hosts[1].read(topic, 4)
    client.take(woken(stream, hosts[1]))
    assert client.keys == ["b", "c", "a"]


@pytest.mark.parametrize("query", [b"from=snapshot", b"from=now", b"from=snapshot&key=a"])
def test_repeated_and_late_records_are_not_sent_in_the_stream_that_has_sent_the_row(hosts: list[Host], query: bytes):
    hosts[0].read([(0, row("a", "{}", 5))], 1)
    client = Client(query)
    stream = client.follow(hosts[0])
    before = list(client.keys)
    hosts[0].read([(1, row("a", "{}", 5)), (2, row("a", "{}", 3))], 3)
    client.take(woken(stream, hosts[0]))
    assert client.keys == before
    hosts[0].read([(3, row("a", "{}", 6))], 4)
    client.take(woken(stream, hosts[0]))
    assert client.keys == [*before, "a"]


def test_row_removed_while_the_client_was_away_is_sent_also_if_the_row_was_of_an_earlier_topic(hosts: list[Host]):
    host, client = hosts[0], Client()
    host.read([(0, row("a", "{}", 5)), (1, row("b", "{}", 5)), (2, row("c", "{}", 5))], 3)
    host.begin("id-2")
    host.next_offset = 0
    with small_turns():
        client.take(client.connect(host), turns=2)
    assert set(client.rows) == {"a", "b"}
    host.read([(0, row("a", None, 6))], 1)
    client.follow(host)
    assert set(client.rows) == {"b", "c"}
    host.read([(1, row("b", None, 6))], 2)
    client.follow(host)
    assert set(client.rows) == {"c"}


def test_idle_table_continues_at_the_end_of_the_log(hosts: list[Host]):
    hosts[0].read([(0, row("a", "{}", 5)), (1, row("b", "{}", 5, table=OTHERS))], 2)
    client = Client()
    client.follow(hosts[0])
    assert client.events[-1].name == "caught-up"
    assert client.events[-1].id.endswith("-2")


def test_position_in_another_table_gives_all_rows(hosts: list[Host]):
    hosts[0].read([(0, row("a", "{}", 5)), (1, row("b", "{}", 5, table=OTHERS))], 2)
    client = Client()
    client.follow(hosts[0], OTHERS)
    client.follow(hosts[0])
    assert client.keys == ["b", "a"]


def test_position_beyond_the_end_is_one_that_the_host_has_not_reached(hosts: list[Host]):
    topic = [(n, row("a", "{}", 5 + n)) for n in range(4)]
    hosts[0].read(topic, 3)
    hosts[1].read(topic, 1)
    client = Client()
    client.follow(hosts[0])
    stream = client.follow(hosts[1])
    for end in (2, 3):
        hosts[1].read(topic, end)
        client.take(woken(stream, hosts[1]))
    assert client.versions == {"a": 7}
    hosts[1].read(topic, 4)
    client.take(woken(stream, hosts[1]))
    assert client.versions == {"a": 8}


def test_largest_position_ends_no_stream(hosts: list[Host]):
    hosts[0].read([(0, row("a", "{}", 5))], 1)
    client = Client()
    client.follow(hosts[0])
    name = client.events[-1].id.partition("-")[0]
    client._last_id = f"{name}-{'9' * 19}"
    client.follow(hosts[0])
    assert client.keys == ["a"]


def test_open_stream_ends_while_an_earlier_release_writes(hosts: list[Host]):
    stream = Client().follow(hosts[0])
    with hosts[0].store._env.begin(write=True) as txn:
        txn.put(b"offset", (9).to_bytes(8), db=hosts[0].store._meta)
    with pytest.raises(QueryRefusedError) as refused:
        stream.heartbeat()
    assert refused.value.code == "not-ready"


WRITES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5), st.booleans()), min_size=1, max_size=12)
STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 3), st.booleans()), max_size=12)


def compacted(records: Sequence[Record]) -> list[Record]:
    """Return the last record of each key; of a key whose last record is a late one all, whose newest would be lost."""
    last = {key: (offset, decode_row(value).version) for offset, (key, value) in records}
    late = {key for _, (key, value) in records if decode_row(value).version > last[key][1]}
    return [one for one in records if one[0] == last[one[1][0]][0] or one[1][0] in late]


@settings(max_examples=60, deadline=None)
@given(writes=WRITES, steps=STEPS)
def test_client_that_changes_hosts_at_any_position_ends_with_the_rows_of_the_table(
    writes: list[tuple[str, int, bool]], steps: list[tuple[int, int, int, bool]]
):
    """Records repeat rows and arrive late. Each step a host reads on, up to an offset, from a topic that may have been
    compacted up to there; the client takes some turns there. Finally it has exactly the rows of each host."""
    of_version = {(key, version): is_live for key, version, is_live in writes}  # repeats are equal
    records = [
        (offset, row(key, "{}" if of_version[key, version] else None, version))
        for offset, (key, version, _) in enumerate(writes)
    ]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack, small_turns():
        hosts = [Host(Path(folder) / str(n)) for n in range(3)]
        for one in hosts:
            stack.callback(one.service.lookups.close)
        client, streams = Client(), dict[int, ChangeStream]()
        for n, end, turns, is_compacted in steps:
            hosts[n].read(compacted(records[:end]) if is_compacted else records, end)
            if n not in streams:
                streams = {n: client.connect(hosts[n])}
            client.take(woken(streams[n], hosts[n]), turns)
        for host in hosts:
            host.read(records, len(records))
            client.follow(host)
            pinned = host.store.pin()
            stored = {key: found.version for key in "abc" if (found := pinned.stored_row(MINE, key))}
            pinned.close()
            assert {key: client.versions[key] for key in client.rows} == stored
