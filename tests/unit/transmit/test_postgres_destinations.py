"""Rows of a database as destination: one insert for a batch, an outcome for each part, nothing without a password."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.fernet import Fernet

from dataplane.causes import Cause
from dataplane.ledger.meta import read_meta
from dataplane.names import Purpose
from dataplane.spec import PostgresDestination, RetryPolicy, RowSettings, endpoint_of
from dataplane.tables.records import DestinationRecord
from dataplane.tables.sealed import bind, credential_place
from dataplane.transmit import work as work_module
from dataplane.transmit.http.sender import HttpResponse, ResponsePart
from dataplane.transmit.policy.delivery_verdict import OK, DeliveryVerdict
from dataplane.transmit.policy.postgres_verdict import DATABASE_REFUSED, RESET, ROW_REFUSED
from dataplane.transmit.postgres.request import InsertRequest
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


def record_of(to: PostgresDestination, name: str = "crm", of: PostgresDestination | None = None) -> DestinationRecord:
    credential = msgspec.json.encode({"password": PASSWORD, "endpoint": endpoint_of(of or to)}).decode()
    text = bind(credential, credential_place("p", name)).encode()
    return DestinationRecord("p", name, 1, "active", to, [], Fernet(KEY).encrypt(text).decode())


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
