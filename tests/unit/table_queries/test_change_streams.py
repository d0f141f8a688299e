"""Streams of changes over a real store: what is sent, when a stream ends, and how many there may be."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dataplane.table_queries import change_stream, open_streams
from dataplane.table_queries.app import TableQueries
from dataplane.table_queries.change_stream import TURN_BYTES
from dataplane.table_queries.requests import ChangeQuery
from dataplane.tables.access_tokens import TableAccess
from dataplane.tables.query_protocol import changes_path
from tests.support.change_client import StreamEvent, parsed
from tests.unit.table_queries.test_app import MINE, NOW_S, OTHERS, VERSION, Service, record, row, token_for

PATH = changes_path(MINE)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    yield made
    made.lookups.close()


class Client:
    """One stream within the test's event loop.

    takes:    False for a client that reads nothing any more
    received: message that the server receives again and again; None for a request without a body
    """

    def __init__(self, app: TableQueries, scope: dict[str, Any], received: Any = None) -> None:
        self._received = received
        self.status, self.text, self.takes = 0, b"", True
        self._gone = asyncio.Event()
        self.task = asyncio.create_task(app(scope, self._receive, self._take))

    async def leave(self) -> None:
        """Disconnect, and wait until the server has noticed it."""
        self._gone.set()
        async with asyncio.timeout(10):
            await self.task

    async def _receive(self) -> Any:
        if self._received is not None:
            await asyncio.sleep(0)
            return self._received
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _take(self, message: Any) -> None:
        if not self.takes:
            await asyncio.Event().wait()
        self.status = message.get("status", self.status)
        self.text += message.get("body", b"")

    @property
    def events(self) -> list[StreamEvent]:
        """The events so far."""
        return list(parsed(iter(self.text.splitlines(keepends=True))))

    @property
    def changes(self) -> list[tuple[str, Any]]:
        """Key and row of each change so far."""
        return [(one.data["key"], one.data["row"]) for one in self.events if one.name == "message"]

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait, for up to ten seconds."""
        async with asyncio.timeout(10):
            while not is_so():
                await asyncio.sleep(0.01)


def opened(service: Service, query: str = "", last_event_id: str = "", **token: Any) -> Client:
    scope = service.scope(f"{PATH}{query}", token_for(**token) if token else None)
    if last_event_id:
        scope["headers"].append((b"last-event-id", last_event_id.encode()))
    return Client(service.app, scope)


async def caught_up(service: Service, query: str = "", last_event_id: str = "") -> Client:
    client = opened(service, query, last_event_id)
    await client.until(lambda: b"caught-up" in client.text)
    return client


def test_snapshot_is_followed_by_changes_without_a_gap_or_a_repeat(service: Service):
    async def scenario() -> None:
        service.store.apply([row("a", '{"n":1}'), row("b", "{}"), row("gone", "{}"), row("gone", None, VERSION + 1)], 5)
        client = await caught_up(service, "?from=snapshot")
        assert client.changes == [("a", {"n": 1}), ("b", {})], "a row that is removed already is not in a snapshot"
        service.store.apply([row("a", '{"n":2}', VERSION + 1), row("b", None, VERSION + 1)], 7)
        await client.until(lambda: len(client.changes) == 4)
        assert client.changes[2:] == [("a", {"n": 2}), ("b", None)]
        assert client.events[-1].data == {
            "key": "b", "operation": "delete", "row": None, "version": str(VERSION + 1),
            "changed_at": "2027-01-15T07:59:59.250000Z",
        }  # fmt: skip
        assert [one.name for one in client.events].count("caught-up") == 1
        await client.leave()
        assert service.app.streams.count == 0

    asyncio.run(scenario())


def test_stream_from_now_has_only_later_changes(service: Service):
    async def scenario() -> None:
        service.store.apply([row("a", "{}")], 2)
        client = await caught_up(service)
        service.store.apply([row("other", "{}", table=OTHERS), row("b", "{}")], 4)
        await client.until(lambda: bool(client.changes))
        assert client.changes == [("b", {})]

    asyncio.run(scenario())


def test_stream_continues_after_the_last_event_with_the_last_value_of_each_row(service: Service):
    async def scenario() -> None:
        service.store.apply([row("a", '{"n":1}'), row("b", "{}")], 3)
        first = await caught_up(service, "?from=snapshot")
        await first.leave()
        later = [row("a", '{"n":2}', VERSION + 1), row("a", '{"n":3}', VERSION + 2), row("b", None, VERSION + 1)]
        service.store.apply(later, 6)
        second = await caught_up(service, "?from=snapshot", first.events[-1].id)
        assert second.changes == [("a", {"n": 3}), ("b", None)]
        middle = await caught_up(service, "", first.events[0].id)
        assert middle.changes == [("a", {"n": 3}), ("b", None)]

    asyncio.run(scenario())


def test_position_of_another_topic_gives_all_rows_and_removals(service: Service):
    async def scenario() -> None:
        service.store.apply([row("a", "{}"), row("gone", "{}"), row("gone", None, VERSION + 1)], 4)
        client = await caught_up(service, "", "0000000a-900")
        assert client.changes == [("a", {}), ("gone", None)]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("query", "expected"),
    [("?key=u-1&from=snapshot", ["u-1", "u-1"]), ("?prefix=u-&from=snapshot", ["u-1", "u-2", "u-1"]), ("?key=v", [])],
)
def test_stream_of_a_key_or_a_prefix_has_no_other_rows(service: Service, query: str, expected: list[str]):
    async def scenario() -> None:
        service.store.apply([row("u-1", "{}"), row("u-2", "{}"), row("v", "{}")], 4)
        client = await caught_up(service, query)
        service.store.apply([row("w", "{}"), row("u-1", "{}", VERSION + 1)], 6)
        await asyncio.sleep(3 * open_streams.WATCH_S)
        assert [key for key, _ in client.changes] == expected

    asyncio.run(scenario())


def test_row_with_line_breaks_is_one_event(service: Service):
    async def scenario() -> None:
        service.store.apply([row("a", '{"n":\r\n1,\n\n"text": "x\\ny"}')], 2)
        client = await caught_up(service, "?from=snapshot")
        assert client.changes == [("a", {"n": 1, "text": "x\ny"})]

    asyncio.run(scenario())


def test_large_snapshot_is_sent_in_turns_between_which_rows_are_read(service: Service):
    async def scenario() -> None:
        filler = json.dumps({"text": "x" * 10_000})
        service.store.apply([row(f"k{n:03}", filler) for n in range(200)], 201)
        streams = [opened(service, "?from=snapshot") for _ in range(5)]
        await streams[0].until(lambda: streams[0].status == 200)
        reads = 0
        while not all(b"caught-up" in one.text for one in streams):
            query = Client(service.app, service.scope(f"/v1/tables/{MINE}/rows/k000"))
            await query.task
            reads += not all(b"caught-up" in one.text for one in streams)
        assert reads > 5
        assert all(len(one.changes) == 200 for one in streams)

    asyncio.run(scenario())


def test_client_that_reads_nothing_is_disconnected_and_delays_no_other(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(open_streams, "SEND_S", 0.5)

    async def scenario() -> None:
        slow, other = await caught_up(service), await caught_up(service)
        slow.takes = False
        service.store.apply([row("a", "{}")], 2)
        await other.until(lambda: other.changes == [("a", {})])
        await slow.until(slow.task.done)
        assert service.app.streams.ended["slow"] == 1
        assert service.app.streams.count == 1

    asyncio.run(scenario())


def test_client_that_reads_nothing_does_not_delay_the_stop_of_the_server(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(open_streams, "STOP_S", 0.2)

    async def scenario() -> None:
        slow, other = await caught_up(service), await caught_up(service)
        slow.takes = False
        service.app.stop()
        for client in (slow, other):
            await client.until(client.task.done)
            assert client.task.exception() is None
        assert service.app.streams.ended["stopped"] == 2

    asyncio.run(scenario())


def test_request_with_an_endless_body_is_ended(service: Service):
    async def scenario() -> None:
        client = Client(service.app, service.scope(PATH), {"type": "http.request", "body": b"x" * 1_000})
        await client.until(client.task.done)
        assert service.app.streams.ended["client"] == 1

    asyncio.run(scenario())


def test_turn_is_bounded_by_what_is_sent(service: Service):
    """Control characters of a key are escaped, so that an event may be longer than its row."""
    service.store.apply([row("\x01" * 300 + f"{n:03}", "{}") for n in range(200)], 201)
    stream = service.app.streams.open(
        ChangeQuery(MINE, None, "", "snapshot"), TableAccess("ten", MINE, "users", NOW_S + 1)
    )
    texts = list[bytes]()
    while stream.is_due:
        texts.append(stream.turn())
    assert max(map(len, texts)) < TURN_BYTES + 4_000
    assert b"".join(texts).count(b'data: {"key"') == 200


def test_stream_that_searches_many_rows_has_heartbeats_meanwhile(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(open_streams, "HEARTBEAT_S", 0.02)
    monkeypatch.setattr(change_stream, "MOST_READ", 1)

    async def scenario() -> None:
        service.store.apply([row(f"k{n}", "{}") for n in range(2_000)], 2_001)
        client = await caught_up(service, "?from=snapshot&prefix=none")
        assert b": keep-alive\nid: " in client.text.partition(b"caught-up")[0]

    asyncio.run(scenario())


def test_idle_stream_has_heartbeats_with_its_position(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(open_streams, "HEARTBEAT_S", 0.1)

    async def scenario() -> None:
        client = await caught_up(service)
        before = client.text
        await client.until(lambda: client.text.count(b": keep-alive\nid: ") >= 2)
        assert client.text.startswith(before)
        assert len(client.events) == 1, "a heartbeat is no event"

    asyncio.run(scenario())


def test_streams_are_woken_again_after_a_failed_check(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(open_streams, "HEARTBEAT_S", 0.1)
    reader = service.app.streams._reader
    check, failures = reader.last_changes, list[int]()

    def fail_once(tables: Iterable[str]) -> dict[str, int]:
        if not failures:
            failures.append(1)
            raise OSError("the disk has failed")
        return check(tables)

    async def scenario() -> None:
        client = await caught_up(service)
        monkeypatch.setattr(reader, "last_changes", fail_once)
        await client.until(lambda: bool(failures))
        service.store.apply([row("a", "{}")], 2)
        await client.until(lambda: client.changes == [("a", {})])

    asyncio.run(scenario())


def test_stream_ends_when_the_token_expires_the_table_is_removed_or_the_server_stops(service: Service):
    async def scenario() -> None:
        expiring = await caught_up(service)
        service.app.streams._reader._clock = lambda: NOW_S + 2
        service.store.apply([row("a", "{}")], 2)
        await expiring.until(expiring.task.done)
        assert b": the access token has expired: request a new one\n" in expiring.text
        assert expiring.changes == [], "nothing is sent after the end of the token"
        service.app.streams._reader._clock = lambda: NOW_S
        stopped = await caught_up(service)
        service.app.stop()
        await stopped.until(stopped.task.done)
        assert stopped.text.endswith(b": the server is stopping\n\n")
        refused = opened(service)
        await refused.task
        assert refused.status == 503

    asyncio.run(scenario())


def test_stream_of_a_removed_table_ends(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(open_streams, "HEARTBEAT_S", 0.1)

    async def scenario() -> None:
        client = await caught_up(service)
        service.store.apply([record(MINE, "ten", 2, state="removed")], 2)
        await client.until(client.task.done)
        assert b": the table was removed\n" in client.text

    asyncio.run(scenario())


def test_open_streams_of_a_tenant_are_limited(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(open_streams, "MOST_STREAMS_OF_TENANT", 2)

    async def scenario() -> None:
        first, _ = [await caught_up(service) for _ in range(2)]
        refused = opened(service)
        await refused.task
        assert (refused.status, json.loads(refused.text)["code"]) == (429, "too-many-streams")
        theirs = Client(service.app, service.scope(changes_path(OTHERS), token_for(OTHERS, "another")))
        await theirs.until(lambda: theirs.status == 200)
        await first.leave()
        assert (await caught_up(service)).status == 200

    asyncio.run(scenario())


def test_stream_of_another_table_is_refused(service: Service):
    async def scenario() -> None:
        foreign = Client(service.app, service.scope(changes_path(OTHERS)))
        await foreign.task
        assert (foreign.status, json.loads(foreign.text)["code"]) == (403, "table-not-allowed")
        expired = opened(service, until_s=NOW_S)
        await expired.task
        assert expired.status == 401

    asyncio.run(scenario())
