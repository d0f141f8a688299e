"""Alert e-mail is sent to confirmed addresses only: mail, link, page, API, limits and older addresses."""

import re
from datetime import UTC, datetime, timedelta
from importlib import import_module
from smtplib import SMTPServerDisconnected

import pytest
from django.core import mail
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from controlplane.observer import confirmations
from controlplane.observer.confirmations import send_confirmations
from controlplane.observer.digest import send_digests
from controlplane.observer.notices import send_due
from mgmt.alerts.services.alerts import FailureGroup, note_failures
from mgmt.alerts.services.channels import CONFIRMATION_MAX_AGE, CONFIRMATIONS_PER_ADDRESS, CONFIRMATIONS_PER_TENANT
from mgmt.models import AlertChannel, Notification, Pipe, Tenant, User
from mgmt.services import (
    TooManyConfirmationsError,
    add_alert_channel,
    ask_for_confirmation,
    confirm_channel,
    create_tenant,
    remove_alert_channel,
)
from tests.db.cast import MakeClient
from tests.db.channels import add_active_channel

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(minutes=1)
OPS = "ops@example.com"


@pytest.fixture
def channel(tenant: Tenant) -> AlertChannel:
    row, _ = add_alert_channel(tenant=tenant, kind="mail", target=OPS, now=NOW)
    return row


@pytest.fixture
def browser() -> Client:
    """Client without a session that enforces CSRF tokens."""
    return Client(enforce_csrf_checks=True)


def fail(pipe: Pipe) -> None:
    note_failures(failures=[FailureGroup(pipe.id, "crm", "rejected", 1, NOW, {"status": 401})], now=NOW)


def link_in_the_mail() -> str:
    send_confirmations(NOW)
    found = re.search(r"https?://[^/\s]+(/\S+)", str(mail.outbox[-1].body))
    assert found is not None
    return found[1]


def confirm(browser: Client, path: str) -> None:
    page = browser.get(path).content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token is not None
    assert browser.post(path, {"csrfmiddlewaretoken": token[1]}).status_code == 200


def test_unconfirmed_address_gets_no_alert_and_no_digest(pipe: Pipe, channel: AlertChannel):
    fail(pipe)
    assert not Notification.objects.exists()
    assert send_due(SOON) == send_digests(NOW) == send_digests(NOW + timedelta(days=1)) == 0
    assert mail.outbox == []


def test_due_notice_to_an_unconfirmed_address_is_not_sent(pipe: Pipe, tenant: Tenant):
    row, _ = add_active_channel(tenant=tenant, kind="mail", target=OPS)
    fail(pipe)
    AlertChannel.objects.filter(id=row.id).update(confirmed_at=None)  # as stored by a release without confirmation
    assert send_due(SOON) == 0
    assert mail.outbox == []


def test_confirmed_address_gets_alerts(pipe: Pipe, channel: AlertChannel, browser: Client):
    path = link_in_the_mail()
    assert mail.outbox[0].to == [OPS]
    confirm(browser, path)
    fail(pipe)
    assert send_due(SOON) == 1
    assert mail.outbox[-1].to == [OPS]


def test_opening_the_link_confirms_nothing(channel: AlertChannel, browser: Client):
    page = browser.get(link_in_the_mail())
    assert (page.status_code, page["X-Robots-Tag"]) == (200, "noindex")
    assert "no-store" in page["Cache-Control"]
    channel.refresh_from_db()
    assert not channel.is_active


def test_confirmation_mail_is_sent_once_and_retried_after_a_failure(
    channel: AlertChannel, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise SMTPServerDisconnected("gone")

    with monkeypatch.context() as patched:
        patched.setattr(confirmations, "send_mail", refuse)
        assert [send_confirmations(NOW), send_confirmations(SOON)] == [0, 0]
    later = NOW + timedelta(minutes=5)
    assert [send_confirmations(later), send_confirmations(later + timedelta(days=1))] == [1, 0]
    assert len(mail.outbox) == 1


def test_confirmation_mail_to_a_refusing_server_is_retried_for_one_hour(
    channel: AlertChannel, monkeypatch: pytest.MonkeyPatch
):
    tries = []

    def refuse(*_: object) -> None:
        tries.append(1)
        raise SMTPServerDisconnected("gone")

    monkeypatch.setattr(confirmations, "send_mail", refuse)
    for minute in range(0, 180, 5):
        send_confirmations(NOW + timedelta(minutes=minute))
    assert len(tries) == 12


@pytest.mark.parametrize("kind", ["made up", "expired", "of a removed channel", "of another address"])
def test_invalid_confirmation_link_confirms_nothing(
    channel: AlertChannel, browser: Client, monkeypatch: pytest.MonkeyPatch, kind: str
):
    path = link_in_the_mail()
    match kind:
        case "made up":
            path = reverse("console:confirm_channel", args=["made:up"])
        case "expired":
            beyond = timezone.now().timestamp() + CONFIRMATION_MAX_AGE.total_seconds() + 1
            monkeypatch.setattr("django.core.signing.time.time", lambda: beyond)
        case "of a removed channel":
            remove_alert_channel(channel=channel)
        case _:
            AlertChannel.objects.filter(id=channel.id).update(target="other@example.com")
    answer = browser.get(path)
    assert answer.status_code == 404
    assert "This link is not valid" in answer.content.decode()
    assert not AlertChannel.objects.filter(confirmed_at__isnull=False).exists()


def test_forged_confirmation_links_are_limited_by_client_address(browser: Client):
    path = reverse("console:confirm_channel", args=["made:up"])
    answers = [browser.get(path, REMOTE_ADDR="203.0.113.9").status_code for _ in range(31)]
    assert (answers.count(404), answers[-1]) == (30, 429)
    assert browser.get(path, REMOTE_ADDR="203.0.113.10").status_code == 404


def test_address_of_a_member_who_has_signed_in_needs_no_confirmation(tenant: Tenant, alice: User, charlie: User):
    User.objects.filter(id__in=[alice.id, charlie.id]).update(last_login=NOW)
    for user in (alice, charlie):
        User.objects.filter(id=user.id).update(email=f"{user.username}@example.com")
    own, _ = add_alert_channel(tenant=tenant, kind="mail", target="Alice@Example.com", now=NOW)
    foreign, _ = add_alert_channel(tenant=tenant, kind="mail", target="charlie@example.com", now=NOW)
    assert (own.is_active, foreign.is_active) == (True, False)


def test_member_who_never_signed_in_must_confirm(tenant: Tenant, bob: User):
    User.objects.filter(id=bob.id).update(email="bob@example.com")
    row, _ = add_alert_channel(tenant=tenant, kind="mail", target="bob@example.com", now=NOW)
    assert not row.is_active


def test_confirmations_to_one_address_are_limited_across_tenants(channel: AlertChannel, tenant: Tenant, charlie: User):
    for _ in range(CONFIRMATIONS_PER_ADDRESS.most - 1):
        ask_for_confirmation(channel=channel, now=NOW)
    with pytest.raises(TooManyConfirmationsError):
        ask_for_confirmation(channel=channel, now=NOW)
    with pytest.raises(TooManyConfirmationsError):
        add_alert_channel(
            tenant=create_tenant(name="Other", owner=charlie), kind="mail", target="OPS@example.com", now=NOW
        )
    assert not AlertChannel.objects.exclude(id=channel.id).exists()
    ask_for_confirmation(channel=channel, now=NOW + timedelta(days=1, seconds=1))


def test_adding_and_removing_addresses_does_not_evade_the_tenants_limit(tenant: Tenant):
    for number in range(CONFIRMATIONS_PER_TENANT.most):
        row, _ = add_alert_channel(tenant=tenant, kind="mail", target=f"a{number}@example.com", now=NOW)
        remove_alert_channel(channel=row)
    with pytest.raises(TooManyConfirmationsError):
        add_alert_channel(tenant=tenant, kind="mail", target="one-more@example.com", now=NOW)


def test_api_shows_the_confirmation_state_and_resends_the_mail(
    tenant: Tenant, alice: User, bob: User, charlie: User, client_of: MakeClient
):
    client: APIClient = client_of(alice)
    path = f"/api/v1/tenants/{tenant.id}/alert-channels/"
    made = client.post(path, {"kind": "mail", "target": OPS}).json()
    assert (made["is_active"], made["confirmed_at"]) == (False, None)
    again = f"{path}{made['id']}/confirmation/"
    assert client_of(charlie).post(again).status_code == 404
    for _ in range(CONFIRMATIONS_PER_ADDRESS.most - 1):
        assert client.post(again).status_code == 200
    refused = client.post(again)
    assert (refused.status_code, refused.json()["code"], refused["Retry-After"]) == (
        429,
        "too-many-confirmations",
        "3600",
    )
    confirm_channel(channel=AlertChannel.objects.get(), now=NOW)
    (shown,) = client.get(path).json()
    assert (shown["is_active"], shown["confirmed_at"]) == (True, "2026-01-01T12:00:00Z")
    assert client.post(again).status_code == 200, "an active channel needs no mail"
    hook = client.post(path, {"kind": "webhook", "target": "https://hooks.example.com/x"}).json()
    assert hook["is_active"] is True


def test_page_shows_the_confirmation_state_and_resends_the_mail(tenant: Tenant, alice: User, channel: AlertChannel):
    client = Client()
    client.force_login(alice)
    url = reverse("console:channels")
    assert "Waiting for confirmation" in client.get(url).content.decode()
    for _ in range(CONFIRMATIONS_PER_ADDRESS.most):
        assert client.post(url, {"resend": channel.id}).status_code == 302
    refused = client.post(url, {"resend": channel.id})
    assert refused.status_code == 429
    assert "try again tomorrow" in refused.content.decode()
    confirm_channel(channel=channel, now=NOW)
    page = client.get(url).content.decode()
    assert "Waiting for confirmation" not in page
    assert "Resend" not in page


def test_migration_confirms_existing_addresses_of_members_only(pipe: Pipe, tenant: Tenant, alice: User):
    User.objects.filter(id=alice.id).update(email="alice@example.com", last_login=NOW)
    known, _ = add_active_channel(tenant=tenant, kind="mail", target="ALICE@example.com")
    other, _ = add_active_channel(tenant=tenant, kind="mail", target=OPS)
    hook, _ = add_active_channel(tenant=tenant, kind="webhook", target="https://hooks.example.com/x")
    fail(pipe)
    AlertChannel.objects.update(confirmed_at=None, confirmation_due_at=None)
    name = "0035_confirmed_channels"
    then = MigrationLoader(connection).project_state(("mgmt", name)).apps  # models as of that migration
    import_module(f"mgmt.migrations.{name}").confirm_members_addresses(then, None)
    for row in (known, other, hook):
        row.refresh_from_db()
    assert (known.is_active, other.is_active, hook.is_active) == (True, False, True)
    assert {notice.channel for notice in Notification.objects.all()} == {known, hook}
    assert send_confirmations(timezone.now()) == 1
    assert mail.outbox[0].to == [OPS]
