"""One alert for each destination and cause, told once, over when deliveries go well again."""

from datetime import UTC, datetime, timedelta

import pytest

from mgmt.models import Alert, Attempt, Destination, Notice, Pipe, Tenant, User
from mgmt.services import (
    InvalidValue,
    LimitReached,
    NotOpen,
    acknowledge_alert,
    remove_alert_channel,
    resolve_alert,
    snooze_alert,
)
from mgmt.services.alerts import Failure, note_failures, resolve_what_is_well, wake_snoozed
from mgmt.services.channels import MOST_CHANNELS
from mgmt.services.reach import DestinationForbidden
from tests.db.channels import add_active_channel
from tests.rig.statements import meanwhile

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def fail(pipe: Pipe, *, count: int = 1, at: datetime = NOW, cause: str = "rejected", suspended: bool = False) -> Alert:
    failure = Failure(pipe.id, "crm", cause, count, at, {"status": 401}, suspended)
    note_failures(failures=[failure], now=at)
    return Alert.objects.exclude(state="resolved").get(cause=cause)


@pytest.fixture
def mail(tenant: Tenant) -> None:
    add_active_channel(tenant=tenant, kind="mail", target="alice@example.com")


@pytest.mark.usefixtures("mail")
def test_many_failures_of_one_cause_are_one_alert_told_once(pipe: Pipe):
    fail(pipe, count=3)
    alert = fail(pipe, count=17, at=NOW + timedelta(seconds=5), suspended=True)
    assert (alert.count, alert.opened_at, alert.last_at, alert.suspended) == (20, NOW, NOW + timedelta(seconds=5), True)
    notice = Notice.objects.get()
    assert notice.next_at - alert.opened_at < timedelta(seconds=60)


def test_two_causes_are_two_alerts(pipe: Pipe):
    fail(pipe)
    fail(pipe, cause="gave-up")
    assert Alert.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_failure_whose_alert_begins_and_ends_just_then_opens_its_own(pipe: Pipe):
    opens = meanwhile(0, lambda: fail(pipe), after="mgmt_alert")
    ends = meanwhile(2, lambda: resolve_alert(alert=Alert.objects.get(), now=NOW), after="mgmt_alert")
    with opens, ends:
        alert = fail(pipe, count=7)
    assert list(Alert.objects.order_by("count").values_list("count", "state")) == [(1, "resolved"), (7, "opened")]
    assert alert.count == 7


@pytest.mark.usefixtures("mail")
def test_the_same_cause_soon_after_it_was_over_opens_a_quiet_one(pipe: Pipe):
    first = fail(pipe)
    resolve_alert(alert=first, now=NOW)
    second = fail(pipe, at=NOW + timedelta(minutes=10))
    assert not second.notices.exists()
    resolve_alert(alert=second, now=NOW + timedelta(minutes=11))
    third = fail(pipe, at=NOW + timedelta(hours=2))
    assert third.notices.count() == 1


def test_acknowledged_then_snoozed_then_awake_again(pipe: Pipe, alice: User):
    alert = fail(pipe)
    assert acknowledge_alert(alert=alert, by=alice, now=NOW)
    assert not acknowledge_alert(alert=alert, by=alice, now=NOW)
    assert snooze_alert(alert=alert, until=NOW + timedelta(hours=1), now=NOW)
    assert wake_snoozed(now=NOW + timedelta(minutes=59)) == 0
    assert wake_snoozed(now=NOW + timedelta(hours=1)) == 1
    alert.refresh_from_db()
    assert (alert.state, alert.snoozed_until) == ("opened", None)


@pytest.mark.parametrize("until", [NOW, NOW - timedelta(days=1), NOW + timedelta(days=31)])
def test_a_snooze_has_an_end_in_the_next_month(pipe: Pipe, until: datetime):
    with pytest.raises(InvalidValue):
        snooze_alert(alert=fail(pipe), until=until, now=NOW)


def test_what_is_over_cannot_be_acknowledged(pipe: Pipe, alice: User):
    alert = fail(pipe)
    assert resolve_alert(alert=alert, now=NOW, by=alice)
    assert not resolve_alert(alert=alert, now=NOW, by=alice)
    with pytest.raises(NotOpen):
        acknowledge_alert(alert=alert, by=alice, now=NOW)


@pytest.mark.usefixtures("mail")
def test_the_end_is_told_to_those_who_heard_of_the_beginning(pipe: Pipe, tenant: Tenant):
    alert = fail(pipe)
    Notice.objects.update(state="sent", tries=1)
    add_active_channel(tenant=tenant, kind="mail", target="late@example.com")
    resolve_alert(alert=alert, now=NOW + timedelta(hours=1))
    assert [n.channel.target for n in Notice.objects.filter(what="resolved")] == ["alice@example.com"]


def test_it_is_over_when_something_was_delivered_after_the_last_failure(pipe: Pipe):
    alert = fail(pipe)
    later = NOW + timedelta(minutes=10)
    assert resolve_what_is_well(now=later) == 0
    Attempt.objects.create(
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
    assert resolve_what_is_well(now=later) == 0
    Destination.objects.update(state="active")
    assert resolve_what_is_well(now=later) == 1
    alert.refresh_from_db()
    assert (alert.state, alert.resolution) == ("resolved", "deliveries go well again")


def test_channels_are_checked_and_bounded(tenant: Tenant):
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
    with pytest.raises(LimitReached):
        add_active_channel(tenant=tenant, kind="mail", target="more@example.com")
