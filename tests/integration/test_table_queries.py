"""Table queries with a real broker and the real process: rows appear, removed ones end, and a kill loses nothing."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from controlplane.settings import control_settings
from controlplane.topics import TopicCreator, cluster_plans
from dataplane.ledger.meta import MessageMeta
from dataplane.names import LOOKUP_TOPIC, WIRE_VERSION
from dataplane.spec import TableDestination
from dataplane.tables.lookups import TableRecord, encode_row, encode_table, row_key, table_key
from dataplane.tables.query_protocol import changed_at, row_path, rows_path, table_path
from dataplane.transmit.records.table_row import RowMaker
from tests.support.broker import Broker
from tests.support.kafka import admin_producer
from tests.support.patience import Patience
from tests.support.table_service import TableService

TABLE, TENANT, NAME = "tab_01", "ten_1", "users"
OTHER_TABLE, OTHER_TENANT = "tab_02", "ten_2"
SEEN_S = 5.0


class Topic:
    """Producer to the look-up topic: rows as a table destination writes them, and the records of tables."""

    def __init__(self, kafka: str) -> None:
        self._producer = admin_producer({"bootstrap.servers": kafka, "acks": "all"})
        self._to_row = RowMaker(TableDestination(table=NAME, key="body.id", remove_when="has(body.deleted)"))
        self.sent = 0

    def event(self, body: bytes, table: str = TABLE) -> int:
        """Write the row of an event; return its version."""
        self.sent += 1
        now_us = time.time_ns() // 1_000
        meta = MessageMeta(WIRE_VERSION, f"msg_{self.sent}", "pipe_1", 1, "shop", now_us, now_us, 1, position=self.sent)
        row = self._to_row(body, meta)
        self._producer.produce(LOOKUP_TOPIC, encode_row(row.version, row.row), row_key(table, row.key))
        return row.version

    def late(self, key: str, version: int, table: str = TABLE) -> None:
        """Write a row with a version of an earlier event."""
        self.sent += 1
        self._producer.produce(LOOKUP_TOPIC, encode_row(version, b'{"late": true}'), row_key(table, key))

    def table(self, table: str = TABLE, tenant: str = TENANT) -> None:
        self._producer.produce(LOOKUP_TOPIC, encode_table(TableRecord(table, 1, tenant, NAME)), table_key(table))

    def flush(self) -> None:
        assert self._producer.flush(20) == 0


def wait_until(is_so: Callable[[], bool], limit_s: float, what: str) -> None:
    patience = Patience(limit_s)
    while not is_so():
        assert not patience.is_over, f"{what}: not within {limit_s} s"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("tables") / "broker")
    broker.start()
    plans = cluster_plans(control_settings().topics)
    TopicCreator(broker.address).ensure(plan for plan in plans if plan.name == LOOKUP_TOPIC)
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def topic(broker: Broker) -> Topic:
    topic = Topic(broker.address)
    topic.table()
    topic.table(OTHER_TABLE, OTHER_TENANT)
    topic.flush()
    return topic


@pytest.fixture
def service(broker: Broker, topic: Topic, tmp_path: Path) -> Iterator[TableService]:
    service = TableService(tmp_path, broker.address)
    service.start()
    yield service
    service.kill()


@pytest.fixture
def token(service: TableService) -> str:
    return service.token(TABLE, TENANT, NAME)


def test_row_of_an_event_appears_and_a_removed_one_is_not_found(service: TableService, topic: Topic, token: str):
    version = topic.event(b'{"id": "u/1", "name": "Ada"}')
    topic.flush()
    target = row_path(TABLE, "u/1")
    wait_until(lambda: service.get(target, token)[0] == 200, SEEN_S, "the row")
    expected = {"key": "u/1", "row": {"id": "u/1", "name": "Ada"}, "version": str(version)}
    assert service.get(target, token)[1] == expected | {"changed_at": changed_at(version)}
    topic.event(b'{"id": "u/1", "deleted": true}')
    topic.flush()
    wait_until(lambda: service.get(target, token)[0] == 404, SEEN_S, "its removal")


def test_state_shows_rows_last_change_and_a_lag_that_stays_small(service: TableService, topic: Topic, token: str):
    before = service.get(table_path(TABLE), token)[1]["rows"]
    version = topic.event(b'{"id": "one more"}')
    topic.flush()
    wait_until(lambda: service.get(table_path(TABLE), token)[1]["rows"] == before + 1, SEEN_S, "the count")
    time.sleep(2.5)  # an idle topic: the lag is the time since the last comparison with its end
    state = service.get(table_path(TABLE), token)[1]
    assert state["changed_at"] == changed_at(version)
    assert state["lag_s"] < 2.5


def test_other_tenants_table_and_expired_token_are_refused(service: TableService, topic: Topic, token: str):
    topic.event(b'{"id": "secret"}', OTHER_TABLE)
    topic.flush()
    theirs = service.token(OTHER_TABLE, OTHER_TENANT, NAME)
    target = row_path(OTHER_TABLE, "secret")
    wait_until(lambda: service.get(target, theirs)[0] == 200, SEEN_S, "the row of the other tenant")
    assert service.get(target, token)[0] == 403
    assert service.get(row_path(TABLE, "secret"), token)[0] == 404
    assert "secret" not in str(service.get(rows_path(TABLE), token))
    assert service.get(target, service.token(OTHER_TABLE, OTHER_TENANT, NAME, lasts_s=-1))[0] == 401
    assert service.get(target)[0] == 401


def test_pages_by_prefix_are_complete_while_rows_are_written(service: TableService, topic: Topic, token: str):
    for n in range(500):
        topic.event(b'{"id": "p%04d"}' % (n * 2))
    topic.flush()
    wait_until(lambda: service.get(row_path(TABLE, "p0998"), token)[0] == 200, SEEN_S, "the last row")
    ended = threading.Event()

    def write() -> None:
        n = 0
        while not ended.is_set():
            topic.event(b'{"id": "p%04d"}' % (n % 500 * 2 + 1))  # new rows between those that must be found
            topic.event(b'{"id": "p%04d", "n": %d}' % (n % 500 * 2, n))
            n += 1
            if n % 50 == 0:
                topic.flush()
                time.sleep(0.01)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for limit in (1_000, 97, 20):
            found, after = list[str](), ""
            while True:
                status, body = service.get(f"{rows_path(TABLE)}?prefix=p&limit={limit}&after={after}", token)
                assert status == 200
                found += [one["key"] for one in body["rows"]]
                after = body["after"]
                if not after:
                    break
            assert found == sorted(set(found)), "in order, none twice"
            assert {f"p{n * 2:04d}" for n in range(500)} <= set(found)
    finally:
        ended.set()
        writer.join()


def test_killed_service_continues_with_its_rows_and_those_written_meanwhile(
    service: TableService, topic: Topic, token: str
):
    topic.event(b'{"id": "before"}')
    topic.flush()
    wait_until(lambda: service.get(row_path(TABLE, "before"), token)[0] == 200, SEEN_S, "the row")
    service.kill()
    topic.event(b'{"id": "meanwhile"}')
    topic.flush()
    service.start()
    assert service.get(row_path(TABLE, "before"), token)[0] == 200, "at once, from disk"
    wait_until(lambda: service.get(row_path(TABLE, "meanwhile"), token)[0] == 200, SEEN_S, "the row written meanwhile")


def test_rows_stay_available_without_kafka_and_the_lag_grows(
    service: TableService, broker: Broker, topic: Topic, token: str
):
    topic.event(b'{"id": "kept"}')
    topic.flush()
    wait_until(lambda: service.get(row_path(TABLE, "kept"), token)[0] == 200, SEEN_S, "the row")
    broker.kill()
    try:
        wait_until(lambda: service.get(table_path(TABLE), token)[1]["lag_s"] > 4, 30, "a lag")
        assert service.get(row_path(TABLE, "kept"), token)[0] == 200
        service.kill()
        service.start()
        assert service.get(row_path(TABLE, "kept"), token)[0] == 200, "also after a restart"
    finally:
        broker.start()
    wait_until(lambda: service.get(table_path(TABLE), token)[1]["lag_s"] < 2.5, 30, "the lag after Kafka came back")


def test_clients_that_read_nothing_delay_no_other(service: TableService, topic: Topic, token: str):
    filler = b"x" * 15_000
    for n in range(40):
        topic.event(b'{"id": "large%02d", "text": "%s"}' % (n, filler))
    topic.flush()
    wait_until(lambda: service.get(row_path(TABLE, "large39"), token)[0] == 200, SEEN_S, "the rows")
    request = f"GET {rows_path(TABLE)}?prefix=large HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\r\n"
    with ExitStack() as clients:
        for _ in range(300):
            client = clients.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.connect(("127.0.0.1", service.port))
            client.sendall(request.encode())
        patience = Patience(SEEN_S)
        for _ in range(20):
            assert service.get(row_path(TABLE, "large00"), token)[0] == 200
        assert not patience.is_over


def test_bytes_that_are_no_request_are_refused(service: TableService, token: str):
    for line in (b"GET /v1/\xff HTTP/1.1", b"GET /v1/tables/%ff/rows/%zz HTTP/1.1", b"\x00\x01", b"GET / HTTP/9"):
        with socket.create_connection(("127.0.0.1", service.port), timeout=10) as client:
            client.sendall(line + b"\r\nhost: a\r\nauthorization: Bearer \xff\r\nconnection: close\r\n\r\n")
            answer = client.recv(1_000)
        assert not answer or answer.split()[1] in (b"400", b"404", b"505"), answer
    assert service.get(row_path(TABLE, "none"), token)[0] == 404
