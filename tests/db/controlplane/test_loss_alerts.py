"""A sealed minute with a loss above the pipe's threshold alerts the customer with nodes and ids."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail

from controlplane.observer.notices import notification_text, send_due
from controlplane.observer.sealing import Sealer
from dataplane.ledger.units import format_position, position_of
from mgmt.alerts.services.losses import note_losses, resolve_found_losses
from mgmt.ledger.queries.bucket_range import bucket_at, start_of
from mgmt.models import Alert, Notification, Pipe, Seal, Tenant, User
from mgmt.services import InvalidValue, acknowledge_alert, set_loss_threshold
from tests.db.channels import add_active_channel
from tests.db.console.truth import Truth, go_live

NOW = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
BUCKET = bucket_at(NOW) - 10


@pytest.fixture
def truth(pipe: Pipe, tenant: Tenant) -> Truth:
    go_live(pipe)
    pipe.refresh_from_db()
    add_active_channel(tenant=tenant, kind="mail", target="alice@example.com")
    return Truth(pipe)


def lose(truth: Truth, lost: list[int], delivered: list[int], *, bucket: int = BUCKET, now: datetime = NOW) -> None:
    """Store a minute of which transmit has passed every message and reported only some, and seal it."""
    truth.moved(bucket, [*delivered, *lost])
    truth.fact(bucket, "transmit:crm", "delivered", delivered)
    truth.passed(1_000)
    sealer = Sealer(grace_s=60)
    sealer.remember({(truth.pipe.id, bucket): "c1"})
    assert sealer.step(now, lambda _: (0, 1_000)) == 1


def test_one_lost_message_alerts_by_mail_with_its_node_percentage_and_id(truth: Truth):
    lose(truth, [7], list(range(7)))
    alert = Alert.objects.get()
    assert (alert.cause, alert.destination, alert.count, alert.state) == ("lost", "", 1, "opened")
    send_due(NOW + timedelta(minutes=1))
    (sent,) = mail.outbox
    assert sent.subject == "[Penstock] Messages of orders were lost"
    position = format_position(position_of(1, 0, 7))
    for text in ("1 message of orders was lost: 12.5 % end to end", "transmit:crm: 1 of 8 (12.5 %)",
                 "ingest: 0 of 8 (0.0 %)", f"{position} to crm, last seen at transform:crm"):  # fmt: skip
        assert text in sent.body
    body = notification_text(Notification.objects.get())
    assert body["details"]["end_to_end"] == {"due": 8, "lost": 1, "percent": 12.5}
    assert [one["position"] for one in body["details"]["messages"]] == [position]
    assert "buckets" not in body["details"]


def test_loss_up_to_the_threshold_opens_no_alert_and_a_higher_one_does(truth: Truth):
    set_loss_threshold(pipe=truth.pipe, percent=20)
    lose(truth, [7], list(range(7)))
    assert not Alert.objects.exists()
    lose(truth, [20, 21], list(range(10, 15)), bucket=BUCKET + 1)
    assert Alert.objects.get().count == 2


def test_minutes_of_one_loss_share_an_alert_and_a_repeated_minute_counts_once(truth: Truth):
    lose(truth, [7], list(range(7)))
    lose(truth, list(range(20, 50)), [10], bucket=BUCKET + 1)
    note_losses(seals=Seal.objects.all(), now=NOW)
    alert = Alert.objects.get()
    assert (alert.count, alert.details["minutes"], len(alert.details["messages"])) == (31, 2, 20)
    assert alert.details["more_messages"] == 11
    assert alert.details["from"] == start_of(BUCKET).isoformat()


def test_alert_is_resolved_when_each_lost_message_has_an_outcome(truth: Truth):
    lose(truth, [7, 8], list(range(7)))
    truth.fact(BUCKET, "transmit:crm", "delivered", [7], "late")
    assert resolve_found_losses(now=NOW) == 0
    truth.fact(BUCKET, "transmit:crm", "delivered", [8], "later")
    assert resolve_found_losses(now=NOW) == 1
    assert Alert.objects.get().resolution == "every lost message has an outcome now"


def test_acknowledging_resolves_it_and_the_next_loss_opens_a_new_one(truth: Truth, alice: User):
    lose(truth, [7], list(range(7)))
    assert acknowledge_alert(alert=Alert.objects.get(), by=alice, now=NOW)
    first = Alert.objects.get()
    assert (first.state, first.resolution) == ("resolved", "acknowledged by alice")
    lose(truth, [30], [20], bucket=BUCKET + 1, now=NOW + timedelta(minutes=1))
    assert list(Alert.objects.exclude(state="resolved").values_list("count", flat=True)) == [1]


@pytest.mark.parametrize("percent", [-1, 100, float("nan")])
def test_threshold_is_a_percentage(pipe: Pipe, percent: float):
    with pytest.raises(InvalidValue):
        set_loss_threshold(pipe=pipe, percent=percent)
