"""The Observer's periodic task sends alerts by mail and webhook, judges probes and watches incidents."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from pyroaring import BitMap64
from pytest_django import Settings
from standardwebhooks import Webhook

from controlplane.observer import incidents, notices
from controlplane.observer.incidents import RETRY, send_incident_mails, watch_incidents
from controlplane.observer.long_held import warn_of_long_held
from controlplane.observer.notices import MOST_TRIES, send_due
from controlplane.observer.tasks import notify, tend
from controlplane.provisioner import snapshot_queries
from loadgen.scripted import Receiver
from mgmt.alerts.services.alerts import FailureGroup, note_failures, resolve_released
from mgmt.alerts.services.probes import PROBE_FOR, judge_probes
from mgmt.deliveries.queries.message_selection import HOUR_S
from mgmt.deliveries.services.destinations import change_destination_state
from mgmt.deliveries.services.offset_sets import OffsetSetKey, StoredPosition, add_places
from mgmt.models import (
    Alert,
    Cell,
    DeadLetter,
    DeliveryAttempt,
    Destination,
    FactRow,
    Incident,
    Notification,
    Pipe,
    Redrive,
    Tenant,
)
from mgmt.models import Heartbeat as HeartbeatRow
from mgmt.models import User as UserRow
from mgmt.services import (
    NothingToProbeError,
    NotOpenError,
    create_pipe,
    create_tenant,
    probe_alert,
    resolve_alert,
)
from tests.db.cast import MakeSpec
from tests.db.channels import add_active_channel
from tests.db.provisioning import snapshot

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(seconds=15)
DEAD = "penstock.c1.dead.g1"


@pytest.fixture
def hook(settings: Settings) -> Iterator[Receiver]:
    settings.PENSTOCK_DESTINATION_ALLOW = "127.0.0.0/8"
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def placed(pipe: Pipe) -> Pipe:
    pipe.cell = Cell.objects.create(id="c1")
    pipe.save()
    return pipe


def fail(pipe: Pipe, *, cause: str = "rejected", suspended: bool = False, at: datetime = NOW) -> Alert:
    sample = {"status": 401, "message_id": "m1", "reason": "rejected: returned 401", "curl": "curl -X POST x"}
    note_failures(failures=[FailureGroup(pipe.id, "crm", cause, 3, at, sample, suspended)], now=at)
    return Alert.objects.filter(pipe=pipe, cause=cause).latest("id")


def letter(pipe: Pipe, offset: int, at: datetime = NOW) -> DeadLetter:
    at_s = int(at.timestamp())
    add_places(
        [StoredPosition(OffsetSetKey(pipe.id, "crm", "dead", "rejected", DEAD, 0, at_s // HOUR_S), offset, at_s)]
    )
    return DeadLetter.objects.create(
        pipe_id=pipe.id,
        destination="crm",
        node="transmit:crm",
        cause="rejected",
        message_id=f"m{offset}",
        position=offset,
        bucket=100,
        revision=1,
        attempts=0,
        at=at,
        topic=DEAD,
        partition=0,
        offset=offset,
    )


def tried(pipe: Pipe, position: int, outcome: str, at: datetime) -> None:
    DeliveryAttempt.objects.create(
        pipe_id=pipe.id,
        destination="crm",
        message_id=f"m{position}",
        position=position,
        revision=1,
        bucket=100,
        number=2,
        at=at,
        status=401,
        outcome=outcome,
        reason="rejected: returned 401",
        timing_us={},
    )


def delivered(pipe: Pipe, position: int) -> None:
    FactRow.objects.create(
        pipe_id=pipe.id,
        bucket=100,
        node="transmit:crm",
        fact="delivered",
        audit_partition=0,
        positions=BitMap64([position]).serialize(),
        count=1,
    )


def test_alert_is_mailed_once_within_a_minute_and_so_is_its_resolution(pipe: Pipe, tenant: Tenant):
    add_active_channel(tenant=tenant, kind="mail", target="alice@example.com")
    alert = fail(pipe, suspended=True)
    assert send_due(NOW) == 0
    assert [send_due(SOON), send_due(SOON)] == [1, 0]
    (message,) = mail.outbox
    assert message.to == ["alice@example.com"]
    for words in ("orders", "crm", "3 failures", "held; none is lost", "returned 401", "curl -X POST x", alert.id):
        assert words in message.body, words
    fail(pipe, at=SOON)
    assert send_due(SOON + timedelta(minutes=5)) == 0, "repeated failures send no notice"
    resolve_alert(alert=alert, now=NOW + timedelta(minutes=10), resolution="deliveries succeed again")
    assert send_due(NOW + timedelta(minutes=10)) == 1
    assert "0:10:00" in mail.outbox[1].body
    assert "6 failures" in mail.outbox[1].body


def test_alert_webhook_is_signed(pipe: Pipe, tenant: Tenant, hook: Receiver):
    url = hook.url("/")
    _row, secret = add_active_channel(tenant=tenant, kind="webhook", target=url)
    alert = fail(pipe, at=datetime.now(UTC))
    assert send_due(datetime.now(UTC) + timedelta(seconds=20)) == 1
    said = Webhook(secret).verify(hook.got["/"][0].body, hook.got["/"][0].headers)
    assert said == json.loads(hook.got["/"][0].body)
    assert (said["type"], said["alert"], said["count"]) == ("alert.opened", alert.id, 3)


def test_failing_webhook_is_retried_a_bounded_number_of_times(pipe: Pipe, tenant: Tenant, hook: Receiver):
    add_active_channel(tenant=tenant, kind="webhook", target=hook.url("/"))
    hook.answers["/"] = 500
    fail(pipe)
    at = SOON
    for _ in range(MOST_TRIES + 3):
        send_due(at)
        at += timedelta(days=1)
    notice = Notification.objects.get()
    assert (notice.state, notice.error, len(hook.got["/"])) == ("failed", "returned 500", MOST_TRIES)


def test_webhook_is_not_called_once_its_address_is_forbidden(
    pipe: Pipe, tenant: Tenant, hook: Receiver, settings: Settings
):
    add_active_channel(tenant=tenant, kind="webhook", target=hook.url("/"))
    settings.PENSTOCK_DESTINATION_ALLOW = ""
    fail(pipe)
    assert send_due(SOON) == 0
    assert not hook.got
    assert "address refused" in Notification.objects.get().error


def test_undecryptable_channel_secret_silences_no_other_channel(pipe: Pipe, tenant: Tenant, hook: Receiver):
    broken, _ = add_active_channel(tenant=tenant, kind="webhook", target=hook.url("/a"))
    other, _ = add_active_channel(tenant=tenant, kind="webhook", target=hook.url("/b"))
    broken.secret = other.secret
    broken.save()
    fail(pipe)
    assert send_due(SOON) == 1
    assert "another row or field" in Notification.objects.get(channel=broken).error


def test_accepted_probe_redrives_the_remaining_messages_and_resolves_the_alert(placed: Pipe, alice: UserRow):
    for offset in range(3):
        letter(placed, offset)
    change_destination_state(row=placed.destinations.get(), was=["active"], becomes="suspended", cause="storm")
    alert = fail(placed, suspended=True)
    move = probe_alert(alert=alert, by=alice, now=NOW)
    assert (move.total, move.probe, placed.destinations.get().probe) == (1, True, "m0")
    assert placed.destinations.get().state == "suspended"
    with pytest.raises(NotOpenError):
        probe_alert(alert=alert, by=alice, now=NOW)
    assert judge_probes(now=NOW) == 0
    delivered(placed, 0)
    assert judge_probes(now=SOON) == 1
    row = placed.destinations.get()
    assert (row.state, row.probe) == ("active", "")
    rest = Redrive.objects.get(probe=False)
    assert (rest.what, rest.total, rest.alert_id) == ("redrive", 2, alert.id)
    assert resolve_released(now=SOON) == 0
    Redrive.objects.update(state="done", finished_at=SOON, moved=1)
    assert resolve_released(now=SOON) == 1
    alert.refresh_from_db()
    assert (alert.state, alert.probe) == ("resolved", "accepted")


@pytest.mark.parametrize("between", ["_revisions", "_cells", "_heartbeats", "recently_ramped_units"])
def test_snapshot_with_a_probes_redrive_has_the_destination_version_that_admits_it(
    placed: Pipe, alice: UserRow, monkeypatch: pytest.MonkeyPatch, between: str
):
    """The Provisioner reads its tables one after another while users change rows."""
    letter(placed, 0)
    change_destination_state(row=placed.destinations.get(), was=["active"], becomes="suspended", cause="storm")
    alert, before = fail(placed, suspended=True), placed.destinations.get().version
    asked = getattr(snapshot_queries, between)

    def meanwhile(*args: Any) -> Any:
        if not Redrive.objects.exists():
            probe_alert(alert=alert, by=alice, now=NOW)
        return asked(*args)

    monkeypatch.setattr(snapshot_queries, between, meanwhile)
    for _ in range(2):  # the second snapshot certainly has the redrive
        seen = snapshot(now=NOW)
        (version,) = [row.version for row in seen.destinations if row.name == "crm"]
        assert not seen.redrives or version > before
    assert seen.redrives


def test_refused_probe_changes_nothing_and_reports_the_reason(placed: Pipe, alice: UserRow):
    letter(placed, 0)
    change_destination_state(row=placed.destinations.get(), was=["active"], becomes="suspended", cause="storm")
    alert = fail(placed, suspended=True)
    tried(placed, 0, "dead", NOW - timedelta(minutes=1))
    probe_alert(alert=alert, by=alice, now=NOW)
    assert judge_probes(now=SOON) == 0
    tried(placed, 0, "dead", SOON)
    assert judge_probes(now=SOON) == 1
    alert.refresh_from_db()
    assert (alert.probe, alert.probe_says, alert.state) == ("refused", "rejected: returned 401", "opened")
    assert (placed.destinations.get().state, placed.destinations.get().probe) == ("suspended", "")


def test_unanswered_probe_ends_automatically(placed: Pipe, alice: UserRow):
    letter(placed, 0)
    alert = fail(placed)
    probe_alert(alert=alert, by=alice, now=NOW)
    assert judge_probes(now=NOW + PROBE_FOR + timedelta(seconds=1)) == 1
    alert.refresh_from_db()
    assert alert.probe_says == "no response within 120 s"


def test_probe_without_a_message_is_refused(placed: Pipe, alice: UserRow):
    with pytest.raises(NothingToProbeError):
        probe_alert(alert=fail(placed), by=alice, now=NOW)


def test_one_cause_at_three_tenants_is_one_incident(alice: UserRow, a_spec: MakeSpec, settings: Settings):
    settings.PENSTOCK_OPERATOR_MAIL = "ops@example.com"
    alerts = []
    for number in range(3):
        tenant = create_tenant(name=f"T{number}", owner=alice)
        alerts.append(fail(create_pipe(tenant=tenant, name="p", spec=a_spec(), author=alice), cause="tls"))
        assert watch_incidents(NOW) == (1 if number == 2 else 0)
    assert watch_incidents(NOW) == 0
    assert [send_incident_mails(NOW) for _ in range(2)] == [1, 0]
    assert (Incident.objects.get().cause, Incident.objects.get().tenants, len(mail.outbox)) == ("tls", 3, 1)
    resolve_alert(alert=alerts[0], now=SOON)
    watch_incidents(SOON)
    assert Incident.objects.get().resolved_at == SOON


def test_mail_about_an_incident_is_sent_again_if_the_mail_server_refused_it(
    alice: UserRow, a_spec: MakeSpec, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> int:
        raise ConnectionRefusedError(111, "Connection refused")

    settings.PENSTOCK_OPERATOR_MAIL = "ops@example.com"
    for number in range(3):
        tenant = create_tenant(name=f"T{number}", owner=alice)
        fail(create_pipe(tenant=tenant, name="p", spec=a_spec(), author=alice), cause="tls")
    assert watch_incidents(NOW) == 1
    with monkeypatch.context() as without:
        without.setattr(incidents, "send_mail", refuse)
        assert send_incident_mails(NOW) == 0
    assert send_incident_mails(NOW + RETRY / 2) == 0, "an attempt may block for seconds"
    assert mail.outbox == []
    assert [send_incident_mails(NOW + RETRY) for _ in range(2)] == [1, 0]
    assert len(mail.outbox) == 1


def test_blocked_lane_is_an_incident_until_it_recovers(placed: Pipe, settings: Settings):
    settings.PENSTOCK_OPERATOR_MAIL = "ops@example.com"
    refuses = "penstock.c1.dead.g1 refuses records: too large (3 wait)"
    beat = HeartbeatRow(
        cell=placed.cell_id or "", writer="transmit-0", kind="transmit", epoch=1, table_offset=0, at=NOW
    )
    for detail, opened in (("", 0), (refuses, 1)):
        HeartbeatRow.objects.all().delete()
        beat.body, beat.pk = {"detail": detail}, None
        beat.save()
        assert watch_incidents(NOW) == opened
    assert (Incident.objects.get().cause, Incident.objects.get().tenants) == ("lane-blocked", 1)
    assert send_incident_mails(NOW) == 1
    assert f"transmit-0 of cell {placed.cell_id}: {refuses}" in mail.outbox[0].body
    watch_incidents(SOON)  # the lane is silent, or no longer reports the block
    assert Incident.objects.get().resolved_at == SOON


def test_message_held_for_half_its_retention_raises_one_alert(placed: Pipe):
    at_s = int((NOW - timedelta(days=8)).timestamp())
    add_places(
        [StoredPosition(OffsetSetKey(placed.id, "crm", "held", "", "penstock.c1.held.g1", 0, at_s // HOUR_S), 1, at_s)]
    )
    assert warn_of_long_held(NOW - timedelta(days=2), timedelta(days=14)) == 0
    assert [warn_of_long_held(NOW, timedelta(days=14)) for _ in range(2)] == [1, 0]
    assert (Alert.objects.get().cause, Alert.objects.get().count) == ("held-too-long", 1)


@pytest.mark.usefixtures("db")
def test_task_runs_with_nothing_to_do():
    assert tend() == "nothing to do"
    assert not Destination.objects.exists()


def test_tenant_with_many_slow_webhooks_does_not_delay_the_notices_of_others(
    pipe: Pipe, tenant: Tenant, alice: UserRow, a_spec: MakeSpec, hook: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(notices, "AT_ONCE", 3)
    for number in range(5):
        add_active_channel(tenant=tenant, kind="webhook", target=hook.url(f"/{number}"))
    other = create_tenant(name="Other", owner=alice)
    add_active_channel(tenant=other, kind="mail", target="bob@example.com")
    later = create_pipe(tenant=other, name="later", spec=a_spec(), author=alice)
    fail(pipe)
    fail(later, at=NOW + timedelta(seconds=5))
    assert send_due(SOON + timedelta(seconds=10)) == 3
    assert [message.to for message in mail.outbox] == [["bob@example.com"]]


@pytest.mark.usefixtures("db")
def test_task_that_judges_cells_calls_no_webhook(pipe: Pipe, tenant: Tenant, hook: Receiver):
    add_active_channel(tenant=tenant, kind="webhook", target=hook.url("/"))
    fail(pipe)
    tend()
    assert not hook.got
    assert notify() == "notices 1"
    assert len(hook.got["/"]) == 1
