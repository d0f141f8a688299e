"""Publisher of operational events: none is missed or lost, repeats have the same id, and two runs do not meet."""

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Event
from typing import Any

import pytest
from django.db import connection, transaction

from controlplane.kafka import KeyedRecord, RecordNotStoredError
from controlplane.operational_events import publish
from controlplane.operational_events.tasks import publish as task
from dataplane.ingest.operational_feed import OperationalFeedKey, event_of
from dataplane.names import OPERATIONAL_TOPIC
from mgmt.models import OperationalEvent, Pipe, Tenant, User
from mgmt.operational_events.services import emit_event
from mgmt.services import create_pipe, create_tenant
from tests.db.cast import MakeSpec

PAUSED = "penstock.pipe.paused"


class Topic:
    """Kafka clients that keep what is stored. `before`: runs before the next records are; `error`: refuses them."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.keys: list[str | bytes] = []
        self.before: Any = None
        self.error: Exception | None = None

    def store(self, _writer: str, topic: str, records: Iterable[KeyedRecord], **_settings: Any) -> None:
        assert topic == OPERATIONAL_TOPIC
        if self.before is not None:
            self.before()
        if self.error is not None:
            raise self.error
        for key, value in records:
            self.keys.append(key)
            self.events.append(json.loads(value or b""))

    @property
    def ids(self) -> list[str]:
        return [event["id"] for event in self.events]


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    made = Topic()
    monkeypatch.setattr(publish, "kafka_clients", lambda _kafka: made)
    return made


@pytest.fixture
def siem(pipe: Pipe, tenant: Tenant, alice: User, a_spec: MakeSpec) -> Pipe:
    spec = a_spec() | {"sources": {"events": {"type": "penstock"}}}
    return create_pipe(tenant=tenant, name="siem", spec=spec, author=alice)


def emit(pipe: Pipe, **data: Any) -> OperationalEvent:
    with transaction.atomic():
        event = emit_event(type_=PAUSED, pipe=pipe, data={"state": "paused", **data})
    assert event is not None
    return event


def in_thread(run: Any) -> Any:
    """Run on another connection."""

    def alone() -> Any:
        try:
            return run()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other:
        return other.submit(alone).result(30)


def test_events_are_published_in_their_order_under_the_key_of_their_tenant(siem: Pipe, pipe: Pipe, topic: Topic):
    rows = [emit(pipe, reason=str(number)) for number in range(5)]
    assert task() == "5 events"
    assert topic.ids == [row.id for row in rows]
    assert topic.keys == [pipe.tenant_id] * 5
    event = topic.events[0]
    assert datetime.fromisoformat(event.pop("time")) == rows[0].at
    assert event == {
        "id": rows[0].id,
        "type": PAUSED,
        "tenant": pipe.tenant_id,
        "pipe": {"id": pipe.id, "name": "orders"},
        "data": {"state": "paused", "reason": "0"},
    }
    assert not OperationalEvent.objects.exists()
    assert task() == "nothing to do"


def test_event_reaches_the_feeds_of_its_own_tenant_only(
    siem: Pipe, pipe: Pipe, charlie: User, a_spec: MakeSpec, topic: Topic
):
    """A feed reads the records of the publisher: each of two tenants gets its own event."""
    other = create_tenant(name="Other", owner=charlie)
    spec = a_spec() | {"sources": {"events": {"type": "penstock"}}}
    theirs = create_pipe(tenant=other, name="siem", spec=spec, author=charlie)
    watched = create_pipe(tenant=other, name="orders", spec=a_spec(), author=charlie)
    OperationalEvent.objects.all().delete()
    mine, foreign = emit(pipe), emit(watched)
    task()
    values = [json.dumps(event).encode() for event in topic.events]
    for receiver, event in ((siem, mine), (theirs, foreign)):
        want = OperationalFeedKey(receiver.id, "events", receiver.tenant_id, ("penstock.*",))
        taken = [one for value in values if (one := event_of(value, want)) is not None]
        assert [json.loads(one.body)["id"] for one in taken] == [event.id]


def test_more_events_than_one_chunk_are_published_in_one_run(
    siem: Pipe, pipe: Pipe, topic: Topic, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(publish, "CHUNK", 2)
    rows = [emit(pipe) for _ in range(5)]
    assert task() == "5 events"
    assert topic.ids == [row.id for row in rows]


def test_run_that_lasts_too_long_leaves_the_rest_to_the_next(
    siem: Pipe, pipe: Pipe, topic: Topic, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(publish, "CHUNK", 2)
    monkeypatch.setattr(publish, "TICK_S", -1.0)
    rows = [emit(pipe) for _ in range(3)]
    assert [task(), task(), task()] == ["2 events", "1 events", "nothing to do"]
    assert topic.ids == [row.id for row in rows]


def test_event_that_was_not_stored_is_published_again_with_the_same_id(siem: Pipe, pipe: Pipe, topic: Topic):
    row = emit(pipe)
    topic.error = RecordNotStoredError("no broker answers")
    assert task() == "waiting for Kafka"
    topic.error = None
    assert task() == "1 events"
    assert topic.ids == [row.id]


def test_publisher_that_is_killed_after_the_delivery_report_repeats_the_same_record(
    siem: Pipe, pipe: Pipe, topic: Topic, monkeypatch: pytest.MonkeyPatch
):
    emit(pipe)
    with monkeypatch.context() as patched:
        patched.setattr(OperationalEvent.objects, "filter", lambda **_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            task()
    task()
    first, again = topic.events
    assert first == again


@pytest.mark.django_db(transaction=True)
def test_event_whose_transaction_commits_late_is_published_after_newer_ones(siem: Pipe, pipe: Pipe, topic: Topic):
    stored, may_commit = Event(), Event()

    def commit_late() -> str:
        with transaction.atomic():
            row = emit(pipe)
            OperationalEvent.objects.filter(id=row.id).update(at=row.at - timedelta(hours=1))
            stored.set()
            assert may_commit.wait(30)
        connection.close()
        return row.id

    with ThreadPoolExecutor(1) as other:
        late = other.submit(commit_late)
        assert stored.wait(30)
        newer = emit(pipe).id
        assert task() == "1 events"
        may_commit.set()
        older = late.result(30)
    assert task() == "1 events"
    assert topic.ids == [newer, older]
    assert not OperationalEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_event_that_is_stored_while_others_are_published_is_kept(siem: Pipe, pipe: Pipe, topic: Topic):
    first, later = emit(pipe), []

    def store_another() -> None:
        topic.before = None
        later.append(in_thread(lambda: emit(pipe).id))

    topic.before = store_another
    assert task() == "2 events"
    assert topic.ids == [first.id, *later]


@pytest.mark.django_db(transaction=True)
def test_two_runs_at_once_publish_an_event_once(siem: Pipe, pipe: Pipe, topic: Topic):
    row, said = emit(pipe), []

    def run_another() -> None:
        topic.before = None
        said.append(in_thread(task))

    topic.before = run_another
    assert task() == "1 events"
    assert said == ["skipped: another tick is running"]
    assert topic.ids == [row.id]
