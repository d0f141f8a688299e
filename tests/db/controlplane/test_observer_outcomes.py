"""Dead letters, held messages, suspensions and redrive progress, from records to rows and alerts."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import pytest
from pyroaring import BitMap64

from controlplane.observer import trim as trimming
from controlplane.observer.attempts import SuccessSampler
from controlplane.observer.batch import AuditBatch
from controlplane.observer.common_fields import watch_common_fields
from controlplane.observer.failure_groups import LISTED_AN_HOUR
from controlplane.observer.fields import add_samples
from controlplane.observer.store import LedgerStore
from controlplane.observer.trim import trim
from dataplane.ledger.deadletter import DeadLetterReason, dead_headers, reference_headers
from dataplane.ledger.fields import FieldCount, FieldObservation
from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta, encode_meta
from dataplane.names import cell_topic
from dataplane.tables.redrives import REDRIVES_VERSION, RedriveProgress, encode_progress, format_place, redrive_key
from dataplane.tables.signals import SIGNAL_VERSION, DestinationSignal, encode_signal, signal_key
from mgmt.alerts.common_fields import in_words
from mgmt.deliveries.queries.message_selection import MessageSelection
from mgmt.models import (
    Alert,
    AlertChannel,
    AuditOffset,
    Cell,
    DeadLetter,
    Destination,
    HeldMessage,
    LaneSignal,
    Notification,
    OffsetSet,
    Pipe,
    Redrive,
)
from mgmt.services import start_redrive

DEAD, HELD, SIGNALS = (cell_topic("c1", purpose, 1) for purpose in ("dead", "held", "signals"))
AT = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)


class Message:
    """Record as the Kafka client returns it."""

    def __init__(
        self, topic: str, offset: int, *, headers: Headers | None = None, key: bytes | None = None, value: bytes = b"{}"
    ) -> None:
        self._topic, self._offset, self._headers, self._key, self._value = topic, offset, headers, key, value

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def headers(self) -> Headers | None:
        return self._headers

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return 2, int(AT.timestamp() * 1000)


@pytest.fixture
def placed(pipe: Pipe) -> Pipe:
    pipe.cell = Cell.objects.create(id="c1")
    pipe.save()
    return pipe


@pytest.fixture
def store(placed: Pipe) -> LedgerStore:
    store = LedgerStore()
    for topic in (DEAD, HELD, SIGNALS):
        AuditOffset.objects.create(topic=topic, partition=0, next_offset=0)
        store.offsets[topic, 0] = 0
    return store


def save(store: LedgerStore, *messages: Message) -> None:
    batch = AuditBatch(SuccessSampler(5))
    for message in messages:
        batch.add(message)
    store.save(batch, maybe_sealed_before=0, now=AT)


def meta_of(pipe: Pipe, number: int) -> MessageMeta:
    return MessageMeta(1, f"m{number}", pipe.id, 1, "shop", 0, 0, 29_000_000, position=number, destination="crm")


def dead(pipe: Pipe, number: int, cause: str = "rejected", node: str = "transmit:crm", **more: Any) -> Message:
    death = DeadLetterReason(node, cause, f"{cause}: returned 401", "401\nno such key")
    meta = meta_of(pipe, number)
    return Message(DEAD, number, headers=dead_headers(meta, [(META_HEADER, encode_meta(meta))], death), **more)


def refused(pipe: Pipe, number: int, answer: str, value: bytes = b"{}") -> Message:
    """Return a dead letter with this status and response."""
    death = DeadLetterReason("transmit:crm", "rejected", "rejected: answered", answer)
    meta = meta_of(pipe, number)
    return Message(DEAD, number, headers=dead_headers(meta, [(META_HEADER, encode_meta(meta))], death), value=value)


def held(pipe: Pipe, number: int) -> Message:
    return Message(HELD, number, headers=[(META_HEADER, encode_meta(meta_of(pipe, number)))])


def suspended(pipe: Pipe, of_version: int, cause: str = "storm") -> Message:
    signal = DestinationSignal(
        SIGNAL_VERSION,
        "c1",
        "transmit-0",
        pipe.id,
        "crm",
        int(AT.timestamp() * 1e6),
        suspended=cause,
        status=401,
        reason="rejected: returned 401",
        of_version=of_version,
    )
    return Message(SIGNALS, 0, key=signal_key(signal).encode(), value=encode_signal(signal))


def places(kind: str) -> list[int]:
    rows = OffsetSet.objects.filter(kind=kind)
    return sorted(offset for row in rows for offset in BitMap64.deserialize(bytes(row.offsets)))


def test_dead_letter_becomes_a_row_an_offset_and_an_alert(store: LedgerStore, placed: Pipe):
    save(store, dead(placed, 0, key=b"crm\0customer-7"))
    letter = DeadLetter.objects.get()
    assert (letter.message_id, letter.cause, letter.node, letter.key) == (
        "m0",
        "rejected",
        "transmit:crm",
        "customer-7",
    )
    assert (letter.at, letter.answer) == (AT, "401\nno such key")
    assert places("dead") == [0]
    alert = Alert.objects.get()
    assert (alert.pipe_id, alert.destination, alert.cause, alert.count) == (placed.id, "crm", "rejected", 1)
    assert alert.sample["status"] == 401
    assert "https://crm.example.com/in" in alert.sample["curl"]
    assert AuditOffset.objects.get(topic=DEAD).next_offset == 1


def ended_in_steps(pipe: Pipe, number: int, node: str, *, part: bool = False, destination: str = "") -> Message:
    meta = msgspec.structs.replace(meta_of(pipe, number), destination=destination)
    death = DeadLetterReason(node, "step", "$.total: missing", part=part)
    return Message(DEAD, number, headers=dead_headers(meta, [(META_HEADER, encode_meta(meta))], death))


def test_events_that_ended_in_the_steps_can_be_run_again_unless_an_explode_made_them(store: LedgerStore, placed: Pipe):
    save(
        store,
        ended_in_steps(placed, 0, "normalize"),
        ended_in_steps(placed, 1, "enrich"),
        ended_in_steps(placed, 2, "route"),
        ended_in_steps(placed, 3, "route", part=True),
        ended_in_steps(placed, 4, "transform:crm", destination="crm"),
    )
    assert DeadLetter.objects.count() == 5
    assert places("dead") == [0, 1, 2]
    assert set(OffsetSet.objects.values_list("destination", "cause")) == {("", "step")}


def test_dead_letter_without_its_message_is_listed_but_cannot_be_redriven(store: LedgerStore, placed: Pipe):
    meta = meta_of(placed, 0)
    headers = reference_headers(
        meta, DeadLetterReason("transmit:crm", "too-large", "too large"), "penstock.c1.egress.g1/0/5"
    )
    save(store, Message(DEAD, 0, headers=headers))
    assert DeadLetter.objects.get().cause == "too-large"
    assert places("dead") == []


def test_dead_letter_of_a_step_is_listed_but_cannot_be_redriven(store: LedgerStore, placed: Pipe):
    save(store, dead(placed, 0, cause="step", node="transform:crm"))
    assert DeadLetter.objects.get().node == "transform:crm"
    assert places("dead") == []
    assert Alert.objects.get().cause == "step"


def test_first_thousand_dead_letters_of_an_hour_are_listed_and_all_can_be_redriven(store: LedgerStore, placed: Pipe):
    count = LISTED_AN_HOUR + 5
    save(store, *(dead(placed, number) for number in range(10)))
    save(store, *(dead(placed, number) for number in range(10, count)))
    assert DeadLetter.objects.count() == LISTED_AN_HOUR
    assert len(places("dead")) == Alert.objects.get().count == count


def test_held_message_is_counted_and_opens_no_alert(store: LedgerStore, placed: Pipe):
    save(store, held(placed, 4), held(placed, 5))
    assert places("held") == [4, 5]
    assert list(HeldMessage.objects.values_list("offset", "destination")) == [(4, "crm"), (5, "crm")]
    assert not Alert.objects.exists()


def test_first_thousand_held_messages_of_an_hour_are_listed_and_expire_with_their_topic(
    store: LedgerStore, placed: Pipe
):
    save(store, *(held(placed, number) for number in range(LISTED_AN_HOUR + 5)))
    assert HeldMessage.objects.count() == LISTED_AN_HOUR
    assert len(places("held")) == LISTED_AN_HOUR + 5
    trim(AT + timedelta(days=15), attempts_keep_h=48, seals_keep_d=400, ends_keep=timedelta(days=14))
    assert not HeldMessage.objects.exists()


def test_suspension_by_a_lane_updates_the_destinations_row(store: LedgerStore, placed: Pipe):
    version = placed.destinations.get().version
    save(store, dead(placed, 0), suspended(placed, version))
    row = placed.destinations.get()
    assert (row.state, row.state_cause, row.state_reason, row.version) == (
        "suspended",
        "storm",
        "rejected: returned 401",
        version + 1,
    )
    alert = Alert.objects.get()
    assert (alert.cause, alert.count, alert.suspended) == ("rejected", 1, True)


def test_401_and_422_and_different_responses_are_separate_alerts_and_ids_make_no_difference(
    store: LedgerStore, placed: Pipe
):
    save(
        store,
        refused(placed, 0, '401\n{"error": "order 17 has no total", "request": "req_8f3a"}'),
        refused(placed, 1, '422\n{"error": "order 17 has no total", "request": "req_8f3a"}'),
        refused(placed, 2, '422\n{"error": "order 18 has no total", "request": "req_77b1"}'),
        refused(placed, 3, '422\n{"error": "currency is unknown", "request": "req_9"}'),
    )
    save(store, refused(placed, 4, '422\n{"error": "order 99 has no total", "request": "req_1"}'))
    assert sorted(Alert.objects.values_list("status", "count")) == [(401, 1), (422, 1), (422, 3)]


def test_further_kinds_of_failures_share_one_alert(store: LedgerStore, placed: Pipe):
    words = [f"{a}{b}" for a in "abcde" for b in "vwxyz"]
    save(store, *(refused(placed, number, f"422\n{word}") for number, word in enumerate(words)))
    save(store, refused(placed, 99, "500\nnone of them"), refused(placed, 100, "422\nav"))
    assert Alert.objects.count() == Alert.MOST_KINDS + 1
    rest = Alert.objects.get(fingerprint="other")
    assert (rest.status, rest.count) == (0, len(words) - Alert.MOST_KINDS + 1)


def test_alert_names_the_value_that_its_failing_messages_share_and_other_events_lack(store: LedgerStore, placed: Pipe):
    body = b'{"type": "order", "plan": "free", "user": {"id": %d}, "total": null}'
    save(store, *(refused(placed, number, "422\nno total", body % number) for number in range(6)))
    events = FieldObservation(placed.id, "shop", int(AT.timestamp()) // 60, 100, [
        FieldCount("type", 100, {"string": 100}, {"order": 100}),
        FieldCount("plan", 100, {"string": 100}, {"free": 12, "pro": 88}),
        FieldCount("user", 100, {"object": 100}),
        FieldCount("user.id", 100, {"number": 100}),
        FieldCount("total", 100, {"number": 97, "null": 3}),
    ])  # fmt: skip
    assert watch_common_fields(AT) == 0  # nothing is known about other events yet
    add_samples([events])
    assert watch_common_fields(AT) == 1
    alert = Alert.objects.get()
    assert alert.figures["common"] == [
        {"field": "total", "value": "(null)", "share": 0.03},
        {"field": "plan", "value": "free", "share": 0.12},
    ]
    assert in_words(alert.figures["common"])[1] == "All have plan = free, which 12% of the events have"
    save(store, refused(placed, 6, "422\nno total", b'{"type": "order", "plan": "pro", "total": 3}'))
    assert watch_common_fields(AT) == 0


def test_breaker_signal_replaces_the_previous_one_of_its_lane(store: LedgerStore, placed: Pipe):
    at_us = int(AT.timestamp() * 1e6)
    first = DestinationSignal(
        SIGNAL_VERSION, "c1", "transmit-0", placed.id, "crm", at_us, breaker="open", until_us=at_us + 5_000_000
    )
    other = msgspec.structs.replace(first, writer="transmit-1", breaker="closed", until_us=0)
    for offset, signal in enumerate((first, other, msgspec.structs.replace(first, breaker="half-open"))):
        save(store, Message(SIGNALS, offset, key=signal_key(signal).encode(), value=encode_signal(signal)))
        if not offset:
            assert LaneSignal.objects.get().until == AT + timedelta(seconds=5)
    assert dict(LaneSignal.objects.values_list("writer", "breaker")) == {
        "transmit-0": "half-open",
        "transmit-1": "closed",
    }


def test_signal_expires_after_an_hour_unless_it_marks_a_slow_destination(store: LedgerStore, placed: Pipe):
    quick = DestinationSignal(SIGNAL_VERSION, "c1", "transmit-0", placed.id, "crm", int(AT.timestamp() * 1e6))
    slow = msgspec.structs.replace(quick, writer="transmit-slow-0", slow=True)
    for offset, signal in enumerate((quick, slow)):
        save(store, Message(SIGNALS, offset, key=signal_key(signal).encode(), value=encode_signal(signal)))
    trim(AT + timedelta(hours=2), attempts_keep_h=48, seals_keep_d=400, ends_keep=timedelta(days=14))
    assert list(LaneSignal.objects.values_list("writer", "slow")) == [("transmit-slow-0", True)]


def test_suspension_based_on_an_older_record_is_ignored(store: LedgerStore, placed: Pipe):
    version = placed.destinations.get().version
    Destination.objects.update(version=version + 1)
    save(store, suspended(placed, version))
    assert placed.destinations.get().state == "active"
    assert not Alert.objects.exists()


def test_redrive_progress_is_read_from_the_signals_topic(store: LedgerStore, placed: Pipe):
    save(store, dead(placed, 0), dead(placed, 1))
    move = start_redrive(pipe=placed, chosen=MessageSelection("crm"))
    done = RedriveProgress(REDRIVES_VERSION, move.id, 2, 0, 2, True, 0, {format_place((DEAD, 0)): 2})
    save(store, Message(SIGNALS, 0, key=redrive_key(move.id).encode(), value=encode_progress(done)))
    move.refresh_from_db()
    assert (move.state, move.moved) == ("done", 2)


def test_unattributable_records_are_skipped(store: LedgerStore, placed: Pipe):
    save(store, Message(DEAD, 0), Message(HELD, 0, headers=[("a", b"b")]), Message(SIGNALS, 0, key=b"x", value=b"\xff"))
    assert AuditOffset.objects.get(topic=HELD).next_offset == 1
    assert not DeadLetter.objects.exists()


def test_rows_are_deleted_once_the_topics_no_longer_keep_their_records(store: LedgerStore, placed: Pipe):
    save(store, dead(placed, 0), held(placed, 1))
    start_redrive(pipe=placed, chosen=MessageSelection("crm"))
    Redrive.objects.update(finished_at=AT)
    for after, count in ((timedelta(days=13), 1), (timedelta(days=15), 0)):
        trim(AT + after, attempts_keep_h=1, seals_keep_d=400, ends_keep=timedelta(days=14))
        assert (DeadLetter.objects.count(), OffsetSet.objects.count(), Redrive.objects.count()) == (count,) * 3


def test_trim_reports_that_more_rows_wait_although_deletes_cascade(placed: Pipe, monkeypatch: pytest.MonkeyPatch):
    channel = AlertChannel.objects.create(
        tenant=placed.tenant, kind=AlertChannel.Kind.WEBHOOK, target="https://a.example"
    )
    for number in range(4):
        alert = Alert.objects.create(
            pipe=placed, destination=f"d{number}", cause="rejected", opened_at=AT, last_at=AT, resolved_at=AT
        )
        Notification.objects.create(alert=alert, channel=channel, what="opened", next_at=AT)
    monkeypatch.setattr(trimming, "AT_ONCE", 2)
    trim_slice = partial(
        trim,
        AT + timedelta(days=1_000),
        attempts_keep_h=1,
        seals_keep_d=400,
        audit_keep_d=2_000,
        ends_keep=timedelta(days=14),
    )
    assert [trim_slice() for _ in range(3)] == [True, True, False]
    assert not Alert.objects.exists()
