"""A destination that fails or falls behind opens one alert, which is resolved once it has recovered."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail
from pyroaring import BitMap64

from controlplane.observer.attempt_counts import add_attempt_counts
from controlplane.observer.attempts import SuccessSampler
from controlplane.observer.batch import AuditBatch
from controlplane.observer.health import watch_destinations
from controlplane.observer.merge import AttemptCountId
from controlplane.observer.notices import send_due
from controlplane.observer.store import LedgerStore
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, FactSet, encode
from dataplane.names import AUDIT_TOPIC
from mgmt.deliveries.health import HealthPolicy
from mgmt.ledger.queries.bucket_range import bucket_at, start_of
from mgmt.models import (
    Alert,
    AttemptCount,
    AuditOffset,
    DeliveryAttempt,
    Destination,
    DestinationHealth,
    FactRow,
    LaneSignal,
    Notification,
    OffsetSet,
    Pipe,
    Redrive,
    Tenant,
)
from mgmt.services import pause_destination
from tests.db.channels import add_active_channel
from tests.db.console.truth import Truth, go_live
from tests.db.controlplane.test_observer_storage import AUDIT, Message

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
POLICY = HealthPolicy()


@pytest.fixture
def truth(pipe: Pipe, tenant: Tenant) -> Truth:
    go_live(pipe)
    pipe.refresh_from_db()
    add_active_channel(tenant=tenant, kind="mail", target="alice@example.com")
    return Truth(pipe)


def attempts(pipe: Pipe, at: datetime, *, delivered: int = 0, failed: int = 0) -> None:
    """Count deliveries and failed attempts of one minute."""
    key = AttemptCountId(pipe.id, "crm", bucket_at(at))
    truth = Truth(pipe)
    start = 1_000 * (bucket_at(at) % 1_000)
    for n in range(failed):
        truth.attempt(bucket_at(at), start + n, "parked", status=500, reason="server-error: returned 500")
    rows = DeliveryAttempt.objects.filter(pipe_id=pipe.id, bucket=bucket_at(at))
    add_attempt_counts({key: delivered} if delivered else {}, rows)


def waits(truth: Truth, at: datetime, offsets: list[int]) -> int:
    """Store messages of one minute that were sent once and wait for a retry."""
    bucket = bucket_at(at)
    truth.moved(bucket, offsets)
    truth.fact(bucket, "transmit:crm", "parked", offsets, "1")
    truth.passed(max(offsets) + 1)
    return bucket


def open_alerts() -> list[tuple[str, int]]:
    return list(Alert.objects.exclude(state="resolved").order_by("cause").values_list("cause", "count"))


def test_destination_that_answers_500_for_four_minutes_opens_one_alert_with_its_figures(truth: Truth):
    pipe = truth.pipe
    waits(truth, NOW - 4 * MINUTE, [0, 1, 2])
    for ago in range(4, -1, -1):
        attempts(pipe, NOW - ago * MINUTE, failed=2)
        watch_destinations(NOW - ago * MINUTE, POLICY)
    assert open_alerts() == [("failing", 3)]
    alert = Alert.objects.get()
    oldest_at = start_of(bucket_at(NOW - 4 * MINUTE)).isoformat()
    assert alert.details == {"attempts": 6, "failed": 6, "waiting": 3, "oldest_at": oldest_at}
    assert (alert.sample["status"], alert.sample["reason"]) == (500, "server-error: returned 500")
    assert "webhook-signature" in alert.sample["curl"]
    assert Notification.objects.filter(what="opened").count() == 1


def test_mail_of_a_failing_destination_has_the_ratio_the_oldest_message_and_the_response(truth: Truth):
    waits(truth, NOW - 4 * MINUTE, [0, 1, 2])
    attempts(truth.pipe, NOW, delivered=2, failed=6)
    watch_destinations(NOW, POLICY)
    send_due(NOW + MINUTE)
    (sent,) = mail.outbox
    assert sent.subject == "[Penstock] crm is failing"
    for text in ("6 of the last 8 attempts failed", "3 messages wait", "the oldest since 2026-01-01 11:56 UTC",
                 "Latest failure: Returned 500"):  # fmt: skip
        assert text in sent.body
    assert "release the rest" not in sent.body


def test_observer_counts_all_deliveries_of_a_minute_and_its_failed_attempts_once():
    AuditOffset.objects.create(topic=AUDIT_TOPIC, partition=0, next_offset=0)
    store = LedgerStore()
    store.offsets = {AUDIT: 0}
    delivered = FactSet("p1", "transmit:crm", 7, "delivered", "", 0, BitMap64(range(40)).serialize())
    others = [FactSet("p1", "transmit:crm", 7, "dead", "rejected", 0, BitMap64([99]).serialize())]
    for offset, sequence in enumerate((1, 2, 2)):  # the last one is a repeat
        batch = AuditBatch(SuccessSampler(5), store.counted)
        audit = AuditRecord(
            version=AUDIT_VERSION, cell="c1", writer="transmit-0", kind="transmit",
            at_us=int(NOW.timestamp()) * 1_000_000, inputs=[], outputs=[], facts=[delivered, *others], lags=[],
            run="r1", sequence=sequence,
        )  # fmt: skip
        batch.add(Message(AUDIT, offset, encode(audit)))
        store.save(batch, maybe_sealed_before=0, now=NOW)
    failed = [DeliveryAttempt(pipe_id="p1", destination="crm", outcome=name, at=NOW) for name in
              ("retry", "parked", "dead", "delivered")]  # fmt: skip
    add_attempt_counts({}, failed)
    row = AttemptCount.objects.get()
    assert (row.minute, row.delivered, row.failed) == (bucket_at(NOW), 80, 2)


def test_few_failures_among_many_deliveries_open_no_alert(truth: Truth):
    attempts(truth.pipe, NOW, delivered=100, failed=20)
    watch_destinations(NOW, POLICY)
    assert open_alerts() == []
    assert DestinationHealth.objects.get().failed == 20


def test_open_breaker_opens_the_alert_although_earlier_successes_outweigh_the_failures(truth: Truth):
    attempts(truth.pipe, NOW - 2 * MINUTE, delivered=1_000)
    attempts(truth.pipe, NOW, failed=1)
    waits(truth, NOW - 2 * MINUTE, [0])
    LaneSignal.objects.create(
        pipe_id=truth.pipe.id, destination="crm", writer="transmit-1", at=NOW, breaker="open", reason="timeout"
    )
    watch_destinations(NOW, POLICY)
    assert open_alerts() == [("failing", 1)]


def test_alert_is_resolved_after_five_minutes_of_success_and_a_flapping_destination_sends_no_second_mail(truth: Truth):
    pipe = truth.pipe
    attempts(pipe, NOW, failed=5)
    watch_destinations(NOW, POLICY)
    Notification.objects.update(state="sent", tries=1)
    for minute in range(3, 9):
        attempts(pipe, NOW + minute * MINUTE, delivered=10)
        watch_destinations(NOW + minute * MINUTE, POLICY)
        assert bool(open_alerts()) == (minute < 8)
    assert Alert.objects.get().resolution == "deliveries succeed again"
    attempts(pipe, NOW + 12 * MINUTE, failed=9)
    watch_destinations(NOW + 12 * MINUTE, POLICY)
    assert open_alerts() == [("failing", 0)]
    again = Notification.objects.filter(state="due", what="opened").get()
    assert again.next_at == NOW + 38 * MINUTE  # half an hour after the end of the first


def test_message_that_waits_for_ten_minutes_opens_an_alert_although_most_attempts_succeed(truth: Truth):
    waits(truth, NOW - 11 * MINUTE, [7])
    attempts(truth.pipe, NOW, delivered=50)
    watch_destinations(NOW - 3 * MINUTE, POLICY)
    assert open_alerts() == []
    watch_destinations(NOW, POLICY)
    assert open_alerts() == [("delayed", 1)]
    send_due(NOW + MINUTE)
    assert mail.outbox[0].subject == "[Penstock] Messages to crm are delayed"
    assert "since 2026-01-01 11:49 UTC" in mail.outbox[0].body


def test_slow_destination_whose_messages_queue_without_any_failure_is_delayed(truth: Truth):
    bucket = bucket_at(NOW - 12 * MINUTE)
    truth.moved(bucket, [0, 1])
    truth.passed(0)
    truth.fact(bucket, "transmit:crm", "delivered", [0])
    watch_destinations(NOW, POLICY)
    assert open_alerts() == [("delayed", 1)]


def test_delivered_dead_and_held_messages_do_not_wait(truth: Truth):
    bucket = bucket_at(NOW - 11 * MINUTE)
    truth.moved(bucket, [0, 1, 2])
    truth.passed(3)
    truth.fact(bucket, "transmit:crm", "delivered", [0])
    truth.fact(bucket, "transmit:crm", "dead", [1], "rejected")
    truth.fact(bucket, "transmit:crm", "held", [2], "1")
    watch_destinations(NOW, POLICY)
    assert open_alerts() == []


def test_oldest_message_is_found_hours_later_and_the_alert_ends_when_it_is_delivered(truth: Truth):
    bucket = waits(truth, NOW - 11 * MINUTE, [7])
    watch_destinations(NOW, POLICY)
    later = NOW + timedelta(hours=5)
    watch_destinations(later, POLICY)
    assert DestinationHealth.objects.get().oldest_at == start_of(bucket)
    truth.fact(bucket, "transmit:crm", "delivered", [7])
    watch_destinations(later, POLICY)
    watch_destinations(later + 5 * MINUTE, POLICY)
    assert open_alerts() == []
    assert FactRow.objects.exists()


def test_messages_of_a_redrive_are_old_and_open_no_alert(truth: Truth):
    waits(truth, NOW - 11 * MINUTE, [7])
    Redrive.objects.create(
        pipe=truth.pipe, destination="crm", what="release", chosen={}, taken=[], total=1, rate_per_s=1
    )
    watch_destinations(NOW, POLICY)
    assert open_alerts() == []
    assert not OffsetSet.objects.exists()


def test_paused_destination_is_not_failing_and_its_alert_is_resolved(truth: Truth):
    attempts(truth.pipe, NOW, failed=5)
    watch_destinations(NOW, POLICY)
    assert open_alerts() == [("failing", 0)]
    pause_destination(destination=Destination.objects.get(pipe=truth.pipe))
    watch_destinations(NOW, POLICY)
    assert open_alerts() == []
    assert DestinationHealth.objects.get().failing_since is None
