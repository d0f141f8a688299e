"""Each destination and cause has one alert, reported once and resolved when deliveries succeed again."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.mail import EmailMessage

from controlplane.observer.notices import send_due
from mgmt.alerts.services.alerts import FailureGroup, note_failures, resolve_recovered, wake_snoozed
from mgmt.alerts.services.channels import MOST_CHANNELS
from mgmt.deliveries.queries.message_selection import MessageSelection
from mgmt.models import (
    Alert,
    DeliveryAttempt,
    Destination,
    Notification,
    OffsetSet,
    Pipe,
    Redrive,
    Tenant,
    User,
)
from mgmt.pipes.spec_check import DestinationForbidden
from mgmt.services import (
    InvalidValue,
    LimitReachedError,
    NotOpenError,
    acknowledge_alert,
    remove_alert_channel,
    resolve_alert,
    snooze_alert,
    start_redrive,
)
from tests.db.channels import add_active_channel
from tests.db.console.undelivered import store_dead
from tests.support.statements import meanwhile

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def fail(pipe: Pipe, *, count: int = 1, at: datetime = NOW, cause: str = "rejected", suspended: bool = False) -> Alert:
    failure = FailureGroup(pipe.id, "crm", cause, count, at, {"status": 401}, suspended)
    note_failures(failures=[failure], now=at)
    return Alert.objects.exclude(state="resolved").get(cause=cause)


@pytest.fixture
def mail(tenant: Tenant) -> None:
    add_active_channel(tenant=tenant, kind="mail", target="alice@example.com")


@pytest.mark.usefixtures("mail")
def test_many_failures_of_one_cause_are_one_alert_with_one_notice(pipe: Pipe):
    fail(pipe, count=3)
    alert = fail(pipe, count=17, at=NOW + timedelta(seconds=5), suspended=True)
    assert (alert.count, alert.opened_at, alert.last_at, alert.suspended) == (20, NOW, NOW + timedelta(seconds=5), True)
    notice = Notification.objects.get()
    assert notice.next_at - alert.opened_at < timedelta(seconds=60)


def test_two_causes_are_two_alerts(pipe: Pipe):
    fail(pipe)
    fail(pipe, cause="gave-up")
    assert Alert.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_failure_opens_its_own_alert_when_another_opens_and_resolves_concurrently(pipe: Pipe):
    opens = meanwhile(0, lambda: fail(pipe), after="mgmt_alert")
    ends = meanwhile(2, lambda: resolve_alert(alert=Alert.objects.get(), now=NOW), after="mgmt_alert")
    with opens, ends:
        alert = fail(pipe, count=7)
    assert list(Alert.objects.order_by("count").values_list("count", "state")) == [(1, "resolved"), (7, "opened")]
    assert alert.count == 7


@pytest.mark.usefixtures("mail")
def test_same_cause_soon_after_a_resolution_is_sent_only_if_it_outlasts_the_quiet_time(pipe: Pipe):
    first = fail(pipe)
    resolve_alert(alert=first, now=NOW)
    second = fail(pipe, at=NOW + timedelta(minutes=10))
    assert second.notices.get().next_at == NOW + timedelta(minutes=30)
    resolve_alert(alert=second, now=NOW + timedelta(minutes=11))
    assert not second.notices.exists()
    third = fail(pipe, at=NOW + timedelta(hours=2))
    assert third.notices.count() == 1


def test_acknowledged_alert_can_be_snoozed_and_reopens_after_the_snooze(pipe: Pipe, alice: User):
    alert = fail(pipe)
    assert acknowledge_alert(alert=alert, by=alice, now=NOW)
    assert not acknowledge_alert(alert=alert, by=alice, now=NOW)
    assert snooze_alert(alert=alert, until=NOW + timedelta(hours=1), now=NOW)
    assert wake_snoozed(now=NOW + timedelta(minutes=59)) == 0
    assert wake_snoozed(now=NOW + timedelta(hours=1)) == 1
    alert.refresh_from_db()
    assert (alert.state, alert.snoozed_until) == ("opened", None)


@pytest.mark.parametrize("until", [NOW, NOW - timedelta(days=1), NOW + timedelta(days=31)])
def test_snooze_must_end_within_the_next_month(pipe: Pipe, until: datetime):
    with pytest.raises(InvalidValue):
        snooze_alert(alert=fail(pipe), until=until, now=NOW)


def test_resolved_alert_cannot_be_acknowledged(pipe: Pipe, alice: User):
    alert = fail(pipe)
    assert resolve_alert(alert=alert, now=NOW, by=alice)
    assert not resolve_alert(alert=alert, now=NOW, by=alice)
    with pytest.raises(NotOpenError):
        acknowledge_alert(alert=alert, by=alice, now=NOW)


@pytest.mark.usefixtures("mail")
def test_resolution_is_sent_only_to_channels_that_got_the_alert(pipe: Pipe, tenant: Tenant):
    alert = fail(pipe)
    Notification.objects.update(state="sent", tries=1)
    add_active_channel(tenant=tenant, kind="mail", target="late@example.com")
    resolve_alert(alert=alert, now=NOW + timedelta(hours=1))
    assert [n.channel.target for n in Notification.objects.filter(what="resolved")] == ["alice@example.com"]


def test_alert_resolves_after_a_delivery_later_than_the_last_failure(pipe: Pipe):
    alert = fail(pipe)
    later = NOW + timedelta(minutes=10)
    assert resolve_recovered(now=later) == 0
    DeliveryAttempt.objects.create(
        pipe_id=pipe.id,
        destination="crm",
        message_id="m",
        position=1,
        revision=1,
        bucket=1,
        number=1,
        at=NOW + timedelta(minutes=1),
        status=200,
        outcome="delivered",
        timing_us={},
    )
    Destination.objects.update(state="suspended")
    assert resolve_recovered(now=later) == 0
    Destination.objects.update(state="active")
    assert resolve_recovered(now=later) == 1
    alert.refresh_from_db()
    assert (alert.state, alert.resolution) == ("resolved", "deliveries succeed again")


def test_alert_about_steps_resolves_when_its_dead_letters_have_run_again(pipe: Pipe, alice: User):
    note_failures(failures=[FailureGroup(pipe.id, "", "route", 3, NOW, {})], now=NOW)
    store_dead(pipe, range(3), NOW, cause="route", where="")
    later = NOW + timedelta(minutes=10)
    assert resolve_recovered(now=later) == 0
    move = start_redrive(pipe=pipe, chosen=MessageSelection("", cause="route"), by=alice)
    Redrive.objects.update(created_at=NOW + timedelta(minutes=1))
    assert resolve_recovered(now=later) == 0, "they are running"
    Redrive.objects.filter(id=move.id).update(state="done")
    store_dead(pipe, range(3, 4), NOW, cause="route", where="")
    assert resolve_recovered(now=later) == 0, "one is left"
    OffsetSet.objects.all().delete()
    assert resolve_recovered(now=later) == 1
    assert Alert.objects.get().resolution == "its dead letters ran again, and nothing failed since"


@pytest.mark.usefixtures("mail")
@pytest.mark.parametrize(
    ("destination", "cause", "words"),
    [
        ("crm", "rejected", 'choose "Send one message, then release the rest"'),
        ("", "route", "- Publish a revision whose rule handles such events."),
        ("", "dead-rate", "so Penstock paused the pipe: it accepts events and holds them unchanged"),
        ("", "dependency-missing", "- Usually nothing: the pipe resumes automatically once it is available"),
        ("", "admission", "The share was reduced; other events are accepted and held unchanged."),
    ],
)
def test_mail_names_a_next_step_that_the_page_of_the_alert_has(
    pipe: Pipe, mailoutbox: list[EmailMessage], destination: str, cause: str, words: str
):
    failure = FailureGroup(pipe.id, destination, cause, 3, NOW, {}, suspended=cause == "dead-rate")
    note_failures(failures=[failure], now=NOW)
    send_due(NOW + timedelta(minutes=1))
    (sent,) = mailoutbox
    assert words in sent.body


def test_channels_are_validated_and_limited(tenant: Tenant):
    for kind, target in [
        ("mail", "nobody"),
        ("mail", "a@b.example\nBcc: x@y.example"),
        ("webhook", "ftp://a.example/"),
    ]:
        with pytest.raises(InvalidValue):
            add_active_channel(tenant=tenant, kind=kind, target=target)
    with pytest.raises(DestinationForbidden):
        add_active_channel(tenant=tenant, kind="webhook", target="http://169.254.169.254/latest/")
    channel, secret = add_active_channel(tenant=tenant, kind="webhook", target="https://hooks.example.com/a")
    assert secret.startswith("whsec_")
    assert secret not in channel.secret
    remove_alert_channel(channel=channel)
    for n in range(MOST_CHANNELS):
        add_active_channel(tenant=tenant, kind="mail", target=f"a{n}@example.com")
    with pytest.raises(LimitReachedError):
        add_active_channel(tenant=tenant, kind="mail", target="more@example.com")
