"""Alerts reach chats and pagers over HTTP, and their URLs and keys are shown nowhere."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from smtplib import SMTPRecipientsRefused
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from controlplane.observer import channel_tests, notices, posting, tasks
from controlplane.observer.channel_tests import send_channel_tests
from controlplane.observer.notices import send_due
from dataplane.spec.channels import CHATS, PAGERS, shown_target
from loadgen.scripted import Receiver
from mgmt.alerts.services.alerts import FailureGroup, note_failures, wake_snoozed
from mgmt.alerts.services.channels import TESTS_PER_CHANNEL, TESTS_PER_TENANT
from mgmt.models import Alert, AlertChannel, AuditEntry, Notification, Pipe, Tenant, User
from mgmt.pipes.spec_check import DestinationForbidden
from mgmt.services import (
    InvalidValue,
    NameTakenError,
    TooManyTestsError,
    add_alert_channel,
    confirm_channel,
    request_channel_test,
    resolve_alert,
    snooze_alert,
)
from mgmt.tenancy.secrets import decrypt
from mgmt.tenancy.services.rotation import channel_place
from tests.db.cast import MakeClient

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(seconds=15)
CHAT, PAGER = "/services/T0/B0/verysecret", "/v2/enqueue"
OPS = "ops@example.com"
KEY = "0123456789abcdef0123456789ABCDEF"


@pytest.fixture
def hook(settings: Settings) -> Iterator[Receiver]:
    settings.PENSTOCK_DESTINATION_ALLOW = "127.0.0.0/8"
    receiver = Receiver()
    yield receiver
    receiver.close()


def fail(pipe: Pipe) -> Alert:
    sample = {"status": 401, "message_id": "m1", "reason": "rejected: returned 401 <!channel>"}
    note_failures(failures=[FailureGroup(pipe.id, "crm", "rejected", 3, NOW, sample, False)], now=NOW)
    return Alert.objects.get(pipe=pipe)


def add(tenant: Tenant, kind: str, target: str) -> AlertChannel:
    return add_alert_channel(tenant=tenant, kind=kind, target=target, now=NOW)[0]


@pytest.mark.parametrize("kind", CHATS)
def test_chat_gets_the_alert_and_its_resolution(hook: Receiver, tenant: Tenant, pipe: Pipe, alice: User, kind: str):
    channel = add(tenant, kind, hook.url(CHAT))
    alert = fail(pipe)
    assert send_due(SOON) == 1
    resolve_alert(alert=alert, by=alice, now=SOON)
    assert send_due(SOON + timedelta(seconds=15)) == 1
    assert set(hook.got) == {CHAT}
    opened, resolved = hook.got[CHAT]
    assert opened.headers["content-type"] == "application/json"
    assert "webhook-signature" not in opened.headers
    assert "crm" in json.dumps(json.loads(opened.body))
    assert "<!channel>" not in opened.body.decode()
    assert "Resolved: " in json.dumps(json.loads(resolved.body))
    assert channel.is_active


def test_pager_opens_one_incident_and_resolves_it(
    hook: Receiver, tenant: Tenant, pipe: Pipe, alice: User, monkeypatch: pytest.MonkeyPatch
):
    """PagerDuty cannot be reached from a test, so this server is in its place; the format is that of its reference."""
    monkeypatch.setattr(posting, "PAGER_URLS", {"pagerduty": hook.url(PAGER)})
    hook.answers[PAGER] = 202
    add(tenant, "pagerduty", KEY)
    alert = fail(pipe)
    send_due(SOON)
    resolve_alert(alert=alert, by=alice, now=SOON)
    send_due(SOON + timedelta(seconds=15))
    opened, resolved = (json.loads(one.body) for one in hook.got[PAGER])
    assert (opened["event_action"], resolved["event_action"]) == ("trigger", "resolve")
    assert opened["dedup_key"] == resolved["dedup_key"] == alert.id
    assert opened["routing_key"] == resolved["routing_key"] == KEY


def actions(hook: Receiver) -> list[str]:
    return [json.loads(one.body)["event_action"] for one in hook.got[PAGER]]


def test_no_late_trigger_follows_the_end_of_an_incident(
    hook: Receiver, tenant: Tenant, pipe: Pipe, alice: User, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(posting, "PAGER_URLS", {"pagerduty": hook.url(PAGER)})
    add(tenant, "pagerduty", KEY)
    alert = fail(pipe)
    hook.answers[PAGER] = 500
    assert send_due(SOON) == 0
    resolve_alert(alert=alert, by=alice, now=SOON)
    hook.answers[PAGER] = 202
    assert send_due(SOON + timedelta(seconds=1)) == 0, "a request that has begun may still arrive"
    for minute in range(1, 60):
        send_due(SOON + timedelta(minutes=minute))
    assert actions(hook) == ["trigger", "resolve"]
    opened = Notification.objects.get(what="opened")
    assert (opened.state, opened.error) == ("failed", "resolved before it was sent")


def test_result_of_a_request_after_the_end_does_not_repeat_it(hook: Receiver, tenant: Tenant, pipe: Pipe, alice: User):
    add(tenant, "slack", hook.url(CHAT))
    alert = fail(pipe)
    row = Notification.objects.select_related("alert__pipe__tenant", "channel").get()
    assert notices._claim(row, SOON)
    resolve_alert(alert=alert, by=alice, now=SOON)
    notices._store_result(row, "no response", SOON)
    assert Notification.objects.get(what="opened").state == "failed"
    notices._store_result(row, "", SOON)
    assert Notification.objects.get(what="opened").state == "sent"


def test_alert_that_ends_after_its_snooze_ends_its_incident(
    hook: Receiver, tenant: Tenant, pipe: Pipe, alice: User, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(posting, "PAGER_URLS", {"pagerduty": hook.url(PAGER)})
    add(tenant, "pagerduty", KEY)
    alert = fail(pipe)
    send_due(SOON)
    snooze_alert(alert=alert, until=SOON + timedelta(minutes=5), by=alice, now=SOON)
    later = SOON + timedelta(minutes=6)
    assert wake_snoozed(now=later) == 1
    resolve_alert(alert=alert, by=alice, now=later)
    send_due(later)
    assert actions(hook) == ["trigger", "resolve"]


def test_alert_notifies_again_when_its_snooze_ends(hook: Receiver, tenant: Tenant, pipe: Pipe, alice: User):
    add(tenant, "slack", hook.url(CHAT))
    alert = fail(pipe)
    send_due(SOON)
    snooze_alert(alert=alert, until=SOON + timedelta(minutes=5), by=alice, now=SOON)
    wake_snoozed(now=SOON + timedelta(minutes=6))
    assert send_due(SOON + timedelta(minutes=6)) == 1
    assert len(hook.got[CHAT]) == 2


@pytest.mark.parametrize(("kind", "one", "other_kind", "other"), [
    ("discord", "https://discord.example/api/webhooks/1/aaaaaaaaaaaaaa/slack",
     "discord", "https://discord.example/api/webhooks/2/bbbbbbbbbbbbbb/slack"),
    ("pagerduty", KEY, "pagerduty-eu", KEY),
])  # fmt: skip
def test_other_target_is_another_channel(tenant: Tenant, kind: str, one: str, other_kind: str, other: str):
    add(tenant, kind, one)
    add(tenant, other_kind, other)
    assert tenant.alert_channels.count() == 2


def test_refusal_of_a_chat_is_repeated_and_shown(hook: Receiver, tenant: Tenant, pipe: Pipe):
    add(tenant, "slack", hook.url(CHAT))
    fail(pipe)
    hook.answers[CHAT] = 404
    assert send_due(SOON) == 0
    row = Notification.objects.get()
    assert (row.state, row.error, row.tries) == ("due", "returned 404", 1)


def test_chat_at_a_forbidden_address_is_refused(tenant: Tenant, settings: Settings):
    settings.PENSTOCK_DESTINATION_ALLOW = ""
    with pytest.raises(DestinationForbidden):
        add(tenant, "slack", "http://169.254.169.254/services/x")


@pytest.mark.parametrize(("kind", "target"), [
    *[(kind, "https://chat.example.com/services/T0/B0/verysecret") for kind in CHATS],
    *[(kind, KEY) for kind in PAGERS],
])  # fmt: skip
def test_secret_target_is_stored_encrypted_and_shown_nowhere(
    tenant: Tenant, alice: User, client: Client, client_of: MakeClient, kind: str, target: str
):
    api = client_of(alice)
    made = api.post(f"/api/v1/tenants/{tenant.id}/alert-channels/", {"kind": kind, "target": target}, format="json")
    assert (made.status_code, made.data["secret"]) == (201, ""), made.data
    row = AlertChannel.objects.get()
    assert decrypt(row.secret, channel_place(row)) == target
    where = "PagerDuty" if kind in PAGERS else "chat.example.com"
    assert row.target == made.data["target"] == shown_target(kind, target)
    assert re.fullmatch(rf"{where} …{target[-4:]} \([0-9a-f]{{8}}\)", row.target)
    listed = api.get(f"/api/v1/tenants/{tenant.id}/alert-channels/").content.decode()
    client.force_login(alice)
    page = client.get(reverse("console:channels")).content.decode()
    audited = json.dumps([[one.target_name, one.before, one.after] for one in AuditEntry.objects.all()])
    for text in (row.target, listed, page, audited):
        assert target not in text
        assert target[-8:] not in text
    with pytest.raises(NameTakenError):
        add(tenant, kind, target)


@pytest.mark.parametrize("target", ["", "short", "https://events.pagerduty.com/x", KEY + "0", "ü" * 32])
def test_key_of_a_pager_is_checked(tenant: Tenant, target: str):
    with pytest.raises(InvalidValue, match="integration key"):
        add(tenant, "pagerduty", target)


@pytest.mark.parametrize("target", ["", "ops@example.com", "ftp://chat.example.com/x", KEY])
def test_url_of_a_chat_is_checked(tenant: Tenant, target: str):
    with pytest.raises(InvalidValue):
        add(tenant, "slack", target)


def test_page_offers_every_kind_and_adds_one(tenant: Tenant, alice: User, client: Client):
    client.force_login(alice)
    page = client.get(reverse("console:channels")).content.decode()
    for _, label in AlertChannel.Kind.choices:
        assert f">{label}</option>" in page
    added = client.post(reverse("console:channels"), {"kind": "pagerduty", "target": KEY}, follow=True)
    text: Any = added.content.decode()
    assert "Alerts are sent to PagerDuty …CDEF" in text
    assert "No channels yet" not in text


def shown(client: Client, **query: str) -> str:
    return client.get(reverse("console:channels"), query, headers={"HX-Request": "true"} if query else {}).text


@pytest.mark.parametrize("kind", [*CHATS, "webhook"])
def test_test_message_arrives_once_and_the_page_shows_the_answer(
    hook: Receiver, tenant: Tenant, alice: User, client: Client, kind: str
):
    """By the task that beat runs; the page asks for its list alone while a test is under way."""
    channel = add(tenant, kind, hook.url(CHAT))
    client.force_login(alice)
    url = reverse("console:channels")
    assert client.post(url, {"test": channel.id}).status_code == 302
    assert "Sending a test message" in shown(client)
    part = shown(client, part="list")
    assert part.lstrip().startswith('<section class="card" id="list"')
    assert "data-live" in part
    assert (tasks.test_channels(), tasks.test_channels()) == ("channel tests 1", "nothing to do")
    (got,) = hook.got[CHAT]
    assert tenant.name in got.body.decode() or json.loads(got.body)["tenant"] == tenant.id
    assert ("webhook-signature" in got.headers) == (kind == "webhook")
    page = shown(client)
    assert "Test message accepted" in page
    assert "data-live" not in page
    hook.answers[CHAT] = 410
    client.post(url, {"test": channel.id})
    assert "Test message accepted" not in shown(client), "the answer of the test before"
    assert tasks.test_channels() == "nothing to do"
    assert "Test failed: returned 410" in shown(client)


@pytest.fixture
def pager(hook: Receiver, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> AlertChannel:
    monkeypatch.setattr(posting, "PAGER_URLS", {"pagerduty": hook.url(PAGER)})
    hook.answers[PAGER] = 202
    return add(tenant, "pagerduty", KEY)


def test_test_of_a_pager_leaves_no_open_incident(hook: Receiver, pager: AlertChannel):
    request_channel_test(channel=pager, now=NOW)
    assert send_channel_tests(SOON) == 1
    opened, resolved = (json.loads(one.body) for one in hook.got[PAGER])
    assert (opened["event_action"], resolved["event_action"]) == ("trigger", "resolve")
    assert opened["payload"]["severity"] == "info"
    assert opened["dedup_key"] == resolved["dedup_key"]
    hook.answers[PAGER] = 400
    request_channel_test(channel=pager, now=SOON)
    assert send_channel_tests(SOON + timedelta(seconds=1)) == 0
    assert actions(hook) == ["trigger", "resolve", "trigger"]
    pager.refresh_from_db()
    assert pager.test_error == "returned 400"


def test_incident_that_may_be_open_is_ended(hook: Receiver, pager: AlertChannel, monkeypatch: pytest.MonkeyPatch):
    """The pager may have opened it although its answer is an error, or its sender was killed before the end."""
    hook.answers[PAGER] = 503
    request_channel_test(channel=pager, now=NOW)
    assert send_channel_tests(SOON) == 0
    assert actions(hook) == ["trigger", "resolve"]
    post, posts = posting.post_all, list[object]()

    def killed(requests: Any) -> dict[int, str]:
        posts.append(requests)
        if len(posts) == 2:
            raise KeyboardInterrupt
        return post(requests)

    hook.answers[PAGER] = 202
    with monkeypatch.context() as patched:
        patched.setattr(channel_tests, "post_all", killed)
        request_channel_test(channel=pager, now=SOON)
        with pytest.raises(KeyboardInterrupt):
            send_channel_tests(SOON)
    assert send_channel_tests(SOON + timedelta(seconds=61)) == 1
    bodies = [json.loads(one.body) for one in hook.got[PAGER]]
    assert [one["event_action"] for one in bodies[2:]] == ["trigger", "trigger", "resolve"]
    assert len({one["dedup_key"] for one in bodies}) == 1


def test_test_message_needs_a_confirmed_address_and_is_limited(
    tenant: Tenant, alice: User, client: Client, client_of: MakeClient, mailoutbox: list[EmailMessage]
):
    channel = add(tenant, "mail", "ops@example.com")
    path = f"/api/v1/tenants/{tenant.id}/alert-channels/{channel.id}/test/"
    api = client_of(alice)
    refused = api.post(path)
    assert (refused.status_code, refused.json()["code"]) == (409, "channel-not-confirmed")
    client.force_login(alice)
    assert client.post(reverse("console:channels"), {"test": channel.id}).status_code == 409
    confirm_channel(channel=channel, now=NOW)
    asked = [api.post(path) for _ in range(TESTS_PER_TENANT.most + 1)]
    assert [one.status_code for one in asked] == [202] * TESTS_PER_TENANT.most + [429]
    assert asked[0].json()["test_due_at"] is not None
    page = client.post(reverse("console:channels"), {"test": channel.id})
    assert (page.status_code, "Wait a minute" in page.text) == (429, True)
    assert send_channel_tests(timezone.now() + timedelta(seconds=1)) == 1
    (sent,) = mailoutbox
    assert (sent.to, tenant.name in str(sent.body)) == (["ops@example.com"], True)
    listed = api.get(f"/api/v1/tenants/{tenant.id}/alert-channels/").json()
    assert [(one["test_due_at"], one["test_error"], one["tested_at"] is None) for one in listed] == [(None, "", False)]
    assert AuditEntry.objects.filter(action="channel.tested").count() == 1


def test_one_channel_gets_a_limited_number_of_tests_a_day(tenant: Tenant):
    channel = add(tenant, "webhook", "https://hooks.example.com/x")
    for number in range(TESTS_PER_CHANNEL.most):
        request_channel_test(channel=channel, now=NOW + timedelta(minutes=number))
    with pytest.raises(TooManyTestsError, match="tomorrow"):
        request_channel_test(channel=channel, now=NOW + timedelta(hours=1))
    request_channel_test(channel=channel, now=NOW + timedelta(days=2))


def test_test_is_sent_again_under_its_id_after_its_sender_was_killed(
    hook: Receiver, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
):
    request_channel_test(channel=add(tenant, "webhook", hook.url(CHAT)), now=NOW)
    post = posting.post_all

    def killed(requests: Any) -> dict[int, str]:
        post(requests)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(channel_tests, "post_all", killed)
        with pytest.raises(KeyboardInterrupt):
            send_channel_tests(SOON)
    assert send_channel_tests(SOON + timedelta(seconds=59)) == 0
    assert send_channel_tests(SOON + timedelta(seconds=61)) == 1
    assert len({one.headers["webhook-id"] for one in hook.got[CHAT]}) == 1
    assert len(hook.got[CHAT]) == 2


def test_late_test_is_not_sent(hook: Receiver, tenant: Tenant, alice: User, client: Client):
    request_channel_test(channel=add(tenant, "slack", hook.url(CHAT)), now=timezone.now() - timedelta(minutes=11))
    client.force_login(alice)
    assert "Test message not sent yet: notifications are delayed" in shown(client)
    assert tasks.test_channels() == "nothing to do"
    assert not hook.got
    assert "Test failed: not sent in time" in shown(client)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SMTPRecipientsRefused({OPS: (550, b"no such user")}), "the address was refused with the status 550"),
        (ConnectionRefusedError(111, "Connection refused"), channel_tests.MAIL_FAILED),
    ],
    ids=["refused", "no server"],
)
def test_reason_names_nothing_of_the_installation(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
):
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(channel_tests, "send_mail", refuse)
    mail, chat = add(tenant, "mail", OPS), add(tenant, "slack", "https://hooks.slack.com/services/x")
    confirm_channel(channel=mail, now=NOW)
    AlertChannel.objects.filter(id=chat.id).update(secret="not sealed")
    mail.refresh_from_db()
    for one in (mail, chat):
        request_channel_test(channel=one, now=NOW)
    assert send_channel_tests(SOON) == 0
    errors = dict(AlertChannel.objects.values_list("kind", "test_error"))
    assert errors == {"mail": words, "slack": channel_tests.BAD_SECRET}
