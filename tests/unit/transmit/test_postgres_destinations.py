"""Rows of a database as destination: one insert for a batch, an outcome for each part, nothing without a password."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.fernet import Fernet

from dataplane.causes import Cause
from dataplane.ledger.meta import read_meta
from dataplane.names import Purpose
from dataplane.plan.rows import MAX_ROW_BYTES
from dataplane.spec import PostgresDestination, RetryPolicy, RowSettings, endpoint_of
from dataplane.tables.records import DestinationRecord, PipeRecord
from dataplane.tables.sealed import bind, credential_place
from dataplane.transmit import work as work_module
from dataplane.transmit.http.sender import HttpResponse, ResponsePart
from dataplane.transmit.policy.delivery_verdict import OK, DeliveryVerdict
from dataplane.transmit.policy.postgres_verdict import DATABASE_REFUSED, RESET, ROW_REFUSED
from dataplane.transmit.postgres.request import MAX_BYTES, MAX_INSERT_BYTES, MAX_INSERTS, InsertRequest, room_for
from dataplane.transmit.work import TransmitWork
from tests.support.memory_lane import MemoryLane, message
from tests.support.transmitting import KEY, NODE, Clock, MemorySender, destination, opened, without_kafka

PASSWORD = "s3cret"


class MemoryDatabase(MemorySender):
    """Postgres sender whose batches end when and as the test says."""

    def __init__(self, policy: Any) -> None:
        super().__init__(policy)
        self.inserts: list[InsertRequest] = []
        self._done: list[HttpResponse] = []

    def room_for(self, tenant: str) -> int:
        return room_for(tenant, [one for one in self.inserts if one.token in self.begun])

    def begin(self, request: Any) -> None:
        self.begun.append(request.token)
        self.inserts.append(request)

    def poll(self, wait_s: float = 0.0) -> Any:
        assert not wait_s
        done, self._done = self._done, []
        return done

    def end(self, *parts: ResponsePart, verdict: DeliveryVerdict | None = None, message: str = "") -> None:
        for token in self.begun:
            self._done.append(HttpResponse(token, 0, 0, message, "", False, verdict=verdict, parts=parts))
        self.begun = []


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    without_kafka(monkeypatch)
    monkeypatch.setattr(work_module, "PostgresSender", MemoryDatabase)
    return Clock(monkeypatch)


def database(**fields: Any) -> PostgresDestination:
    batch = RowSettings(max_events=3, max_wait_ms=1_000)
    given = {"columns": {"at": "meta.position", "n": "body.n"}, "key": ("at",), "batch": batch, **fields}
    return PostgresDestination("db.example.com", "shop", "writer", "orders", retry=RetryPolicy(local_tries=1), **given)


def record_of(
    to: PostgresDestination, name: str = "crm", of: PostgresDestination | None = None, pipe: str = "p"
) -> DestinationRecord:
    credential = msgspec.json.encode({"password": PASSWORD, "endpoint": endpoint_of(of or to)}).decode()
    text = bind(credential, credential_place(pipe, name)).encode()
    return DestinationRecord(pipe, name, 1, "active", to, [], Fernet(KEY).encrypt(text).decode())


def given(tmp_path: Path, **fields: Any) -> tuple[MemoryLane, Any, MemoryDatabase]:
    lane, work, _ = opened(tmp_path, record_of(database(**fields)))
    return lane, work, sender_of(work)


def sender_of(work: TransmitWork) -> MemoryDatabase:
    sender: Any = work._senders.postgres
    assert isinstance(sender, MemoryDatabase)
    return sender


def take(lane: MemoryLane, *numbers: int) -> None:
    lane.take(*(message(n, b'{"n":%d}' % n) for n in numbers))


def positions(lane: MemoryLane, topic: Purpose) -> list[int]:
    return [read_meta(one["headers"]).position for one in lane.producer.of(lane.cell.topics[topic].name)]


def test_batch_is_one_insert_with_the_password_and_a_row_for_each_message(tmp_path: Path):
    lane, work, sender = given(tmp_path)
    take(lane, 1, 2, 3)
    work.poll()
    (request,) = sender.inserts
    assert request.rows == [b'{"at":1,"n":1}', b'{"at":2,"n":2}', b'{"at":3,"n":3}']
    assert (request.password, request.timeout_ms, request.to.table) == (PASSWORD, 8_000, "orders")
    assert work.poll_timeout_s() > 0, "the lane waits for messages meanwhile"
    sender.end(verdict=OK)
    work.poll()
    assert lane.filed() == {(NODE, "delivered", ""): 3}
    work.close()


def test_each_part_of_a_batch_has_its_own_outcome(tmp_path: Path):
    lane, work, sender = given(tmp_path)
    take(lane, 1, 2, 3)
    work.poll()
    sender.end(
        ResponsePart(0, 1, OK), ResponsePart(1, 2, ROW_REFUSED, "SQLSTATE 22P02"), ResponsePart(2, 3, RESET, "lost")
    )
    work.poll()
    lane.store()
    assert positions(lane, "dead") == [2]
    assert positions(lane, "retry-in") == [3]
    assert lane.filed()[NODE, "delivered", ""] == 1
    (letter,) = lane.producer.of(lane.cell.topics["dead"].name)
    assert b"row-refused: SQLSTATE 22P02" in b" ".join(value for _, value in letter["headers"])
    assert work._queues.in_place() == 0
    work.close()


def test_message_that_cannot_be_a_row_is_dead_and_the_others_are_inserted(tmp_path: Path):
    lane, work, sender = given(tmp_path)
    lane.take(message(1, b'{"n":1}'), message(2, b'{"m":1}'), message(3, b"plain"))
    work.poll()
    assert [request.rows for request in sender.inserts] == [[b'{"at":1,"n":1}']]
    assert positions(lane, "dead") == [2, 3]
    sender.end(verdict=OK)
    work.poll()
    assert lane.filed()[NODE, "delivered", ""] == 1
    work.close()


def test_refusal_of_the_database_dead_letters_nothing_and_opens_the_breaker(tmp_path: Path, clock: Clock):
    lane, work, sender = given(tmp_path, batch=RowSettings(max_events=1, max_wait_ms=0))
    for n in range(1, 13):
        take(lane, n)
        work.poll()
        sender.end(verdict=DATABASE_REFUSED, message="SQLSTATE 42P01")
        work.poll()
    target = work._targets.find("p", "crm")
    assert target.breaker.state == "open"
    assert not target.suspended
    assert target.last_reason == f"{Cause.DATABASE_REFUSED}: SQLSTATE 42P01"
    assert positions(lane, "dead") == []
    assert sorted(positions(lane, "retry-in")) == list(range(1, 13))
    work.close()


def test_destination_that_refuses_all_rows_is_suspended_and_holds_the_rest(tmp_path: Path):
    lane, work, sender = given(tmp_path, batch=RowSettings(max_events=30, max_wait_ms=0))
    take(lane, *range(1, 31))
    work.poll()
    parts = [ResponsePart(n, n + 1, ROW_REFUSED, "SQLSTATE 23502") for n in range(20)]
    sender.end(*parts, ResponsePart(20, 30, DATABASE_REFUSED, "20 rows in a row are refused"))
    work.poll()
    work.poll()
    assert len(positions(lane, "dead")) == 20
    assert work._targets.find("p", "crm").suspended == Cause.ROW_REFUSED
    take(lane, 31)
    work.poll()
    assert positions(lane, "held") == [31]
    work.close()


def test_nothing_is_inserted_without_the_password_of_this_host_and_user(tmp_path: Path, clock: Clock):
    moved = record_of(database(), of=PostgresDestination("evil.example.com", "shop", "writer", "orders"))
    lane, work, _ = opened(tmp_path, moved)
    take(lane, 1, 2, 3)
    clock.advance(11)
    work.poll()
    assert sender_of(work).inserts == []
    assert positions(lane, "retry-in") == [1, 2, 3]
    assert positions(lane, "dead") == []
    work.close()


def test_slow_database_does_not_delay_a_webhook(tmp_path: Path):
    lane, work, http = opened(tmp_path, record_of(database()), destination("hook"))
    take(lane, 1, 2, 3)
    work.poll()
    lane.take(message(4, destination="hook"))
    work.poll()
    http.answer(200)
    work.poll()
    assert lane.filed() == {("transmit:hook", "delivered", ""): 1}
    assert len(sender_of(work).begun) == 1
    work.close()


def test_batches_that_have_begun_are_retried_when_the_lane_must_end(tmp_path: Path):
    lane, work, sender = given(tmp_path)
    take(lane, 1, 2, 3, 4)
    work.poll()
    assert len(sender.begun) == 1
    work.on_drain_timeout()
    assert sender.begun == []
    assert positions(lane, "retry-in") == [1, 2, 3], "the fourth never began: the next lane reads it"
    assert work._targets.find("p", "crm").active == 0
    work.close()


def test_rows_that_are_larger_than_their_bodies_are_inserted_in_several_batches(tmp_path: Path):
    columns = {"at": "meta.position"} | {f"c{n}": "body" for n in range(90)}
    limits = RowSettings(max_events=20, max_bytes=1_024 * 1_024, max_wait_ms=0)
    lane, work, sender = given(tmp_path, columns=columns, batch=limits)
    lane.take(*(message(n, b'{"text":"%s"}' % (b"x" * 10_000)) for n in range(20)))
    for _ in range(20):
        work.poll()
        sender.end(verdict=OK)
    work.poll()
    sizes = [sum(map(len, request.rows)) for request in sender.inserts]
    assert max(sizes) < limits.max_bytes + MAX_ROW_BYTES
    assert [request.size_bytes for request in sender.inserts] == sizes
    rows = [msgspec.json.decode(row)["at"] for request in sender.inserts for row in request.rows]
    assert rows == list(range(20))
    assert lane.filed() == {(NODE, "delivered", ""): 20}
    work.close()


def test_messages_that_cannot_be_rows_suspend_the_destination_within_a_batch(tmp_path: Path):
    lane, work, sender = given(tmp_path, batch=RowSettings(max_events=30, max_wait_ms=0))
    lane.take(*(message(n, b"plain") for n in range(30)))
    work.poll()
    work.poll()
    assert positions(lane, "dead") == list(range(20))
    assert positions(lane, "held") == list(range(20, 30))
    assert sender.inserts == []
    work.close()


def insertions(tenant: str, count: int, size_bytes: int) -> list[InsertRequest]:
    return [InsertRequest(None, database(), "", [], 1_000, tenant, size_bytes) for _ in range(count)]


def test_tenant_leaves_inserts_and_bytes_for_others():
    for size_bytes in (1, MAX_INSERT_BYTES):
        begun: list[InsertRequest] = []
        while (room := room_for("big", begun)) > 0:
            begun += insertions("big", room, size_bytes)
        assert len(begun) <= MAX_INSERTS / 2
        assert sum(one.size_bytes for one in begun) <= MAX_BYTES / 2
        assert room_for("small", begun) > 0


def test_slow_databases_of_one_tenant_leave_inserts_for_another(tmp_path: Path):
    names = [f"slow{n}" for n in range(8)]
    records = [record_of(database(concurrency=16), name) for name in names]
    lane, work, _ = opened(tmp_path, *records, record_of(database(), pipe="q"))
    for pipe, tenant in (("p", "big"), ("q", "small")):
        lane.table.apply(PipeRecord(pipe, 1, tenant, pipe, "c1", "active", [(1, 100)]))
    for n, name in enumerate(names):
        lane.take(*(message(100 * n + at, b'{"n":1}', destination=name) for at in range(3 * 16)))
        work.poll()
    sender = sender_of(work)
    assert len(sender.begun) == MAX_INSERTS / 2
    lane.take(*(message(900 + at, b'{"n":1}', pipe="q") for at in range(3)))
    work.poll()
    assert sender.inserts[-1].tenant == "small"
    work.close()


def test_updates_of_a_key_wait_for_the_earlier_one(tmp_path: Path, clock: Clock):
    lane, work, sender = given(tmp_path, on_conflict="update", batch=RowSettings(max_events=9, max_wait_ms=0))
    lane.take(message(1, b'{"n":1}', key=b"a"), message(2, b'{"n":2}', key=b"a"), message(3, b'{"n":3}', key=b"b"))
    work.poll()
    clock.advance(1.1)  # by then the blocked keys are known
    work.poll()
    assert [request.rows for request in sender.inserts] == [[b'{"at":1,"n":1}', b'{"at":3,"n":3}']]
    sender.end(verdict=OK)
    work.poll()
    work.poll()
    assert sender.inserts[-1].rows == [b'{"at":2,"n":2}']
    work.close()
