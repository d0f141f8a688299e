"""The alert `rejecting` names type, reason, path and sender of events that keep being rejected, and resolves."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.mail import EmailMessage
from django.test import Client
from django.urls import reverse

from controlplane.observer.incidents import watch_incidents
from controlplane.observer.notices import send_due
from controlplane.observer.rejecting import watch_rejections
from controlplane.observer.rejections import add_rejections
from dataplane.ledger.rejections import RejectionReport
from mgmt.alerts.rejecting import MOST_LISTED, RejectingPolicy
from mgmt.alerts.services.alerts import NOTIFY_AFTER
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Alert, ApiKey, Incident, Pipe, Rejection, Tenant, User
from mgmt.services import close_pipe, create_api_key, create_pipe, create_tenant
from tests.db.cast import MakeSpec
from tests.db.channels import add_active_channel

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
POLICY = RejectingPolicy()
DETAIL = "/total: needs double, got a text"


@pytest.fixture
def key(pipe: Pipe) -> ApiKey:
    return create_api_key(source=pipe.sources.get(), label="checkout")[0]


def reject(pipe: Pipe, now: datetime, *, sender: str = "gone", pointer: str = "/total", events: int = 10) -> None:
    report = RejectionReport(pipe.id, "shop", "order", "schema", pointer, sender, bucket_at(now), events, detail=DETAIL)
    add_rejections([report])


def persist(pipe: Pipe, now: datetime = NOON, sender: str = "gone", pointer: str = "/total") -> None:
    for minute in range(3):
        reject(pipe, now - timedelta(minutes=minute), sender=sender, pointer=pointer)


def test_persisting_rejections_are_named_and_sent_to_the_tenants_channels(
    pipe: Pipe, tenant: Tenant, key: ApiKey, mailoutbox: list[EmailMessage]
):
    add_active_channel(tenant=tenant, kind="mail", target="alice@example.com")
    persist(pipe, sender=key.digest[:16])
    assert watch_rejections(NOON, POLICY) == 1
    assert watch_rejections(NOON, POLICY) == 1
    alert = Alert.objects.get()
    assert (alert.cause, alert.pipe, alert.destination, alert.count) == ("rejecting", pipe, "", 30)
    assert alert.figures == {
        "window_min": 10,
        "more": 0,
        "rejections": [
            {
                "id": Rejection.objects.get().pk, "source": "shop", "event_type": "order", "code": "schema",
                "reason": "does not fit the schema", "detail": DETAIL, "pointer": "/total",
                "sender": f"checkout ({key.prefix}...)", "events": 30,
            }
        ],
    }  # fmt: skip
    send_due(NOON + NOTIFY_AFTER)
    (mail,) = mailoutbox
    assert mail.subject == "[Penstock] Events of orders are rejected"
    for text in (
        "30 events within 10 minutes of type order",
        DETAIL,
        "field: /total",
        f"sender: checkout ({key.prefix}",
    ):
        assert text in str(mail.body)


def test_alert_lasts_while_single_events_are_rejected_and_resolves_when_none_is(pipe: Pipe):
    persist(pipe)
    watch_rejections(NOON, POLICY)
    later = NOON + timedelta(minutes=9)
    reject(pipe, later, events=1)
    assert watch_rejections(later + timedelta(minutes=9), POLICY) == 1
    assert watch_rejections(later + timedelta(minutes=10), POLICY) == 0
    alert = Alert.objects.get()
    assert (alert.state, alert.resolution) == ("resolved", "no event was rejected for 10 minutes")
    persist(pipe, later + timedelta(minutes=30))
    assert watch_rejections(later + timedelta(minutes=30), POLICY) == 1
    assert Alert.objects.count() == 2


def test_single_bad_batch_opens_no_alert(pipe: Pipe):
    reject(pipe, NOON, events=5_000)
    assert watch_rejections(NOON, POLICY) == 0
    assert not Alert.objects.exists()


def test_alert_of_a_closed_pipe_is_resolved(pipe: Pipe):
    persist(pipe)
    watch_rejections(NOON, POLICY)
    close_pipe(pipe=pipe)
    assert watch_rejections(NOON, POLICY) == 0
    assert Alert.objects.get().resolution == "the pipe is closed"


def test_one_alert_of_a_pipe_lists_the_most_frequent_kinds(pipe: Pipe, alice: User, client: Client):
    for number in range(MOST_LISTED + 2):
        persist(pipe, pointer=f"/f{number}x")
    watch_rejections(NOON, POLICY)
    alert = Alert.objects.get()
    assert (len(alert.details["rejections"]), alert.details["more"]) == (MOST_LISTED, 2)
    client.force_login(alice)
    page = client.get(reverse("console:alert", args=[pipe.id, alert.id])).content.decode()
    first = alert.details["rejections"][0]["id"]
    assert reverse("console:rejection", args=[pipe.id, first]) in page
    assert "Most events rejected in 10 min" in page
    assert "And 2 more." in page
    assert "Latest failure" not in page
    assert "Accept with a new version" in client.get(reverse("console:cause", args=["rejecting"])).content.decode()


def test_senders_of_several_tenants_are_no_incident_of_the_platform(alice: User, a_spec: MakeSpec):
    for name in "abc":
        tenant = create_tenant(name=name, owner=alice)
        persist(create_pipe(tenant=tenant, name=name, spec=a_spec(), author=alice))
    assert watch_rejections(NOON, POLICY) == 3
    assert watch_incidents(NOON) == 0
    assert not Incident.objects.exists()
