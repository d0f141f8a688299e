"""Streams of changes with a real broker and the real process: a client that follows a table has its rows."""

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from dataplane.names import LOOKUP_TOPIC
from dataplane.tables.lookups import decode_row, row_key
from dataplane.tables.query_protocol import MOST_STREAMS_OF_TENANT, changes_path, row_path
from tests.integration.test_table_queries import (
    NAME,
    OTHER_TABLE,
    OTHER_TENANT,
    SEEN_S,
    TABLE,
    TENANT,
    Topic,
    broker,
    topic,
    wait_until,
)
from tests.support.broker import Broker
from tests.support.change_client import ChangeClient, open_unread
from tests.support.kafka import admin_consumer
from tests.support.patience import Patience
from tests.support.table_service import TableService

__all__ = ["broker", "topic"]  # fixtures
SNAPSHOT = f"{changes_path(TABLE)}?from=snapshot"
KILLS = 2


@pytest.fixture(scope="module")
def service(broker: Broker, topic: Topic, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableService]:
    service = TableService(tmp_path_factory.mktemp("host"), broker.address)
    service.start()
    yield service
    service.kill()


@pytest.fixture
def token(service: TableService) -> str:
    return service.token(TABLE, TENANT, NAME)


def write(topic: Topic, key: str, number: int | None) -> None:
    """Write a row as an event does, or remove it."""
    more = {"deleted": True} if number is None else {"n": number}
    topic.event(json.dumps({"id": key, **more}).encode())


class Follower:
    """Copy of a table that a client keeps, across connections and kills of the service."""

    def __init__(self, service: TableService, token: str, target: str = SNAPSHOT) -> None:
        self.rows: dict[str, Any] = {}
        self.removals = self.connections = self.events = 0
        self._versions: dict[str, int] = {}
        self._service, self._token, self._target = service, token, target
        self._last_id = ""
        self._client: ChangeClient | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def has_connected(self, times: int) -> Callable[[], bool]:
        return lambda: self.connections >= times

    def end(self) -> None:
        self._ended.set()
        if self._client is not None:
            self._client.interrupt()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                with ChangeClient(self._service.port, self._target, self._token, self._last_id) as self._client:
                    if self._client.status == 200:
                        self.connections += 1
                        self._follow(self._client)
            except (OSError, StopIteration, ValueError):
                self._ended.wait(0.05)

    def _follow(self, client: ChangeClient) -> None:
        while not self._ended.is_set():
            event = client.next()
            self._last_id = event.id
            if event.name != "message":
                continue
            self.events += 1
            key, version = event.data["key"], int(event.data["version"])
            assert version >= self._versions.get(key, 0), "never back to an earlier version"
            self._versions[key] = version
            if event.data["operation"] == "delete":
                self.removals += self.rows.pop(key, None) is not None
            else:
                self.rows[key] = event.data["row"]


def rows_of(service: TableService, token: str, prefix: str) -> dict[str, Any]:
    body = service.get(f"/v1/tables/{TABLE}/rows?prefix={prefix}&limit=1000", token)[1]
    return {one["key"]: one["row"] for one in body["rows"]}


def test_copy_that_follows_a_table_through_kills_equals_it(service: TableService, topic: Topic, token: str):
    chance = random.Random(11)
    for n in range(50):
        write(topic, f"f{n:02}", 0)
    topic.flush()
    wait_until(lambda: service.get(row_path(TABLE, "f49"), token)[0] == 200, SEEN_S, "the rows")
    follower = Follower(service, token, f"{SNAPSHOT}&prefix=f")
    try:
        wait_until(lambda: len(follower.rows) == 50, SEEN_S, "the snapshot")
        for step in range(KILLS + 1):
            for n in range(300):
                write(topic, f"f{chance.randrange(60):02}", n if chance.random() < 0.8 else None)
            topic.flush()
            if step < KILLS:
                wait_until(follower.has_connected(step + 1), SEEN_S, "the connection")
                service.kill()
                write(topic, "f00", 1_000 + step)
                topic.flush()
                service.start()
        write(topic, "flast", 1)
        write(topic, "f01", None)
        topic.flush()
        wait_until(lambda: "flast" in follower.rows and "f01" not in follower.rows, 2 * SEEN_S, "the last changes")
        assert follower.rows == rows_of(service, token, "f")
        assert follower.removals > 0
        assert follower.connections > KILLS
        assert follower.events <= topic.sent, "each record is at most one change"
    finally:
        follower.end()


def test_stream_continues_on_another_host(
    service: TableService, broker: Broker, topic: Topic, token: str, tmp_path: Path
):
    write(topic, "moved", 1)
    topic.flush()
    target = f"{SNAPSHOT}&prefix=moved"
    with ChangeClient(service.port, target, token) as first:
        assert first.rows(1) == [("moved", {"id": "moved", "n": 1})]
        write(topic, "moved", 2)
        topic.flush()
        assert first.rows(1) == [("moved", {"id": "moved", "n": 2})]
    write(topic, "moved", None)
    write(topic, "moved-2", 1)
    topic.flush()
    another = TableService(tmp_path, broker.address)
    another.start()
    try:
        with ChangeClient(another.port, target, another.token(TABLE, TENANT, NAME), first.last_id) as second:
            assert second.rows(2) == [("moved", None), ("moved-2", {"id": "moved-2", "n": 1})]
    finally:
        another.kill()


def test_stream_from_now_has_every_later_row_of_the_tenant_and_no_other(
    service: TableService, topic: Topic, token: str
):
    with ChangeClient(service.port, f"{changes_path(TABLE)}?from=now", token) as client:
        assert client.until_caught_up() == []
        topic.event(b'{"id": "theirs"}', OTHER_TABLE)
        for n in range(20):
            write(topic, f"now{n:02}", n)
        topic.flush()
        assert [key for key, _ in client.rows(20)] == [f"now{n:02}" for n in range(20)]
        with ChangeClient(service.port, changes_path(OTHER_TABLE), token) as refused:
            assert refused.status == 403
    their_token = service.token(OTHER_TABLE, OTHER_TENANT, NAME)
    with ChangeClient(service.port, f"{changes_path(OTHER_TABLE)}?key=theirs&from=snapshot", their_token) as theirs:
        assert theirs.rows(1) == [("theirs", {"id": "theirs"})]


def test_newest_version_follows_a_late_record_in_the_topic_and_is_sent_once(
    service: TableService, broker: Broker, topic: Topic, token: str
):
    """Compaction keeps the last record of a key: a new host would have the late row."""
    with ChangeClient(service.port, f"{changes_path(TABLE)}?from=now", token) as client:
        client.until_caught_up()
        version = topic.event(b'{"id": "retried"}')
        topic.late("retried", version - 1)
        topic.flush()
        reader = admin_consumer(
            {"bootstrap.servers": broker.address, "group.id": "test", "auto.offset.reset": "earliest"}
        )
        reader.assign([TopicPartition(LOOKUP_TOPIC, 0, 0)])
        written = list[int]()

        def is_repeated() -> bool:
            for message in reader.consume(1_000, 0.2):
                if message.key() == row_key(TABLE, "retried"):
                    written.append(decode_row(message.value() or b"").version)
            return written == [version, version - 1, version]

        wait_until(is_repeated, 2 * SEEN_S, "the newest version")
        write(topic, "after", 1)
        topic.flush()
        assert client.rows(2) == [("retried", {"id": "retried"}), ("after", {"id": "after", "n": 1})]
        assert is_repeated(), "once"
        reader.close()


def test_streams_that_nobody_reads_delay_no_other(service: TableService, topic: Topic, token: str):
    filler = "x" * 15_000
    for n in range(100):
        topic.event(json.dumps({"id": f"wide{n:02}", "text": filler}).encode())
    topic.flush()
    wait_until(lambda: service.get(row_path(TABLE, "wide99"), token)[0] == 200, SEEN_S, "the rows")
    with ChangeClient(service.port, changes_path(TABLE), token) as client, ExitStack() as unread:
        client.until_caught_up()
        for _ in range(MOST_STREAMS_OF_TENANT - 10):
            unread.enter_context(open_unread(service.port, SNAPSHOT, token))
        patience = Patience(2 * SEEN_S)
        for n in range(5):
            write(topic, "quick", n)
            topic.flush()
            assert client.rows(1) == [("quick", {"id": "quick", "n": n})]
            assert service.get(row_path(TABLE, "quick"), token)[0] == 200
        assert not patience.is_over
    # the server has noticed that these clients are gone: they no longer count
    wait_until(lambda: all(_opens(service, token) for _ in range(20)), 2 * SEEN_S, "room for streams")


def _opens(service: TableService, token: str) -> bool:
    with ChangeClient(service.port, changes_path(TABLE), token) as client:
        return client.status == 200


def test_open_stream_ends_politely_when_the_service_stops(service: TableService, token: str):
    with ChangeClient(service.port, changes_path(TABLE), token) as client, ExitStack() as unread:
        for _ in range(20):
            unread.enter_context(open_unread(service.port, SNAPSHOT, token))
        client.until_caught_up()
        service.stop()
        assert client.rest() == [], "the response is complete"
        assert "CancelledError" not in service.log
    service.start()
