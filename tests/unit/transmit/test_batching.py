"""A destination with batches: one request for several messages, each of which is settled separately."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from standardwebhooks import Webhook

from dataplane.ledger.audit import decode_attempts
from dataplane.ledger.meta import read_meta
from dataplane.spec import BatchSettings, RetryPolicy
from dataplane.transmit.deliveries.batches import batch_id
from tests.support.memory_lane import MemoryLane, message
from tests.support.transmitting import NODE, SECRET, Clock, MemorySender, destination, opened, without_kafka


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    without_kafka(monkeypatch)
    return Clock(monkeypatch)


def batching(tmp_path: Path, *, local_tries: int = 1, **fields: Any) -> Any:
    batch = BatchSettings(**{"max_events": 4, "max_wait_ms": 1_000, **fields})
    return opened(tmp_path, destination(batch=batch, retry=RetryPolicy(local_tries=local_tries)))


def header(sender: MemorySender, number: int, name: str) -> str:
    return next(line for line in sender.requests[number][1] if line.startswith(f"{name}: ")).partition(": ")[2]


def bodies(sender: MemorySender) -> list[Any]:
    return [msgspec.json.decode(request[2]) for request in sender.requests]


def take(lane: MemoryLane, *numbers: int) -> None:
    lane.take(*(message(n, b'{"n":%d}' % n) for n in numbers))
    lane.work.poll()


def positions_in(lane: MemoryLane, purpose: str) -> list[int]:
    records = lane.producer.of(lane.cell.topics[purpose].name)  # type: ignore[index]
    return [read_meta(record["headers"]).position for record in records]


def test_full_batch_is_sent_immediately_and_the_rest_after_its_maximum_wait(tmp_path: Path, clock: Clock):
    lane, work, sender = batching(tmp_path)
    take(lane, 1, 2, 3, 4, 5, 6)
    assert bodies(sender) == [[{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}]]
    clock.advance(1.01)
    work.poll()
    assert bodies(sender)[1:] == [[{"n": 5}, {"n": 6}]]
    sender.answer(204)
    work.poll()
    assert lane.unsettled() == 0
    assert lane.filed() == {(NODE, "delivered", ""): 6}
    work.close()


def test_batch_has_one_signature_and_an_id_derived_from_its_members(tmp_path: Path):
    lane, work, sender = batching(tmp_path)
    lane.take(*(message(n, b'{"n":%d}' % n) for n in range(4)))
    work.poll()
    headers = dict(line.split(": ", 1) for line in sender.requests[0][1] if ": " in line)
    assert headers["webhook-id"] == batch_id([f"id-0-{n}" for n in range(4)])
    assert (headers["penstock-batch"], headers["Content-Type"]) == ("4", "application/json")
    at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
    signed = Webhook(SECRET).sign(headers["webhook-id"], at, sender.requests[0][2].decode())
    assert headers["webhook-signature"] == signed
    work.close()


def test_retried_batch_is_the_same_batch(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dataplane.transmit.outcomes.responses.local_pause_s", lambda *_: 0.5)
    lane, work, sender = batching(tmp_path, local_tries=3)
    take(lane, 1, 2)
    clock.advance(1.01)
    work.poll()
    sender.answer(503)
    work.poll()
    take(lane, 3, 4, 5, 6)
    clock.advance(0.51)
    work.poll()
    assert header(sender, 0, "webhook-id") == header(sender, 2, "webhook-id")
    assert bodies(sender)[2] == [{"n": 1}, {"n": 2}]
    work.close()


def test_members_of_a_failed_batch_are_scheduled_for_retry_one_by_one(tmp_path: Path):
    lane, work, sender = batching(tmp_path)
    take(lane, 1, 2, 3, 4)
    sender.answer(503)
    work.poll()
    lane.store()
    assert lane.filed() == {(NODE, "parked", "1"): 4}
    assert positions_in(lane, "retry-in") == [1, 2, 3, 4]
    work.close()


def test_partial_failure_is_settled_item_by_item(tmp_path: Path):
    lane, work, sender = batching(tmp_path)
    take(lane, 1, 2, 3, 4)
    items = [{"status": 200}, {"status": 422}, {"status": 503}, {"status": 201}]
    sender.answer(207, body=msgspec.json.encode({"items": items}))
    work.poll()
    work.report()
    lane.store()
    assert lane.filed() == {(NODE, "delivered", ""): 2, (NODE, "dead", "rejected"): 1, (NODE, "parked", "1"): 1}
    assert (positions_in(lane, "dead"), positions_in(lane, "retry-in")) == ([2], [3])
    (told,) = lane.producer.of(lane.cell.topics["attempts"].name)
    assert sorted((a.position, a.status) for a in decode_attempts(told["value"]).attempts) == [
        (1, 200), (2, 422), (3, 503), (4, 201),
    ]  # fmt: skip
    work.close()


def test_413_halves_the_batch_down_to_the_oversized_message(tmp_path: Path):
    lane, work, sender = batching(tmp_path)
    take(lane, 1, 2, 3, 4)
    while sender.begun:
        batch = sender.begun.pop(0)
        others, sender.begun = sender.begun, [batch]
        sender.answer(413 if 3 in (send.meta.position for send in batch.members) else 204)
        sender.begun = others
        work.poll()
        work.poll()
    lane.store()
    assert lane.filed() == {(NODE, "delivered", ""): 3, (NODE, "dead", "rejected"): 1}
    assert positions_in(lane, "dead") == [3]
    assert [len(body) for body in bodies(sender)] == [4, 2, 2, 1, 1]
    work.close()


def test_refused_batch_is_dead_lettered_and_not_split(tmp_path: Path):
    lane, work, sender = batching(tmp_path)
    take(lane, 1, 2, 3, 4)
    sender.answer(400, body=b"no")
    work.poll()
    lane.store()
    assert len(sender.requests) == 1
    assert lane.filed() == {(NODE, "dead", "rejected"): 4}
    work.close()


def test_message_of_a_lost_partition_is_not_in_the_batch(tmp_path: Path, clock: Clock):
    lane, work, sender = batching(tmp_path)
    lane.take(message(1, partition=0), message(2, partition=1))
    work.poll()
    lane.lose(0)
    clock.advance(1.01)
    work.poll()
    assert [len(body) for body in bodies(sender)] == [1]
    assert header(sender, 0, "webhook-id") == batch_id(["id-1-2"])
    work.close()


def test_drain_schedules_a_retry_for_the_members_of_a_batch_in_flight(tmp_path: Path):
    lane, work, _sender = batching(tmp_path)
    take(lane, 1, 2, 3, 4, 5)
    work.on_drain_timeout()
    lane.store()
    assert lane.filed() == {(NODE, "parked", "1"): 4}
    assert work.in_flight() == 0
    work.close()


def test_batch_may_wait_longer_than_the_queue_limit_of_other_messages(tmp_path: Path, clock: Clock):
    lane, work, sender = batching(tmp_path, max_wait_ms=30_000)
    lane.table.apply(destination("lake"))
    lane.take(message(1), message(2, destination="lake"))
    work.poll()
    clock.advance(20)
    work.poll()
    assert not positions_in(lane, "retry-in")
    clock.advance(10.1)
    work.poll()
    assert sender.requests[-1][0] == "http://crm.example/"
    work.close()
