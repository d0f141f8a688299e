"""Alerts are acknowledged, snoozed, probed and resolved on their page; secrets are write-only."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from mgmt.alerts.services.alerts import FailureGroup, note_failures
from mgmt.deliveries.presenters import FIXES
from mgmt.models import Alert, AlertChannel, DeadLetter, Destination, OffsetSet, Pipe, Redrive, User
from mgmt.services import publish_revision
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf, go_live
from tests.db.console.undelivered import open_alert, store_dead

pytestmark = pytest.mark.django_db
SECRET = "very-secret-token-4711"

ONE_OPEN = '1<span class="visually-hidden"> open alert</span>'  # in the menu, on every page


@pytest.fixture
def alert(pipe: Pipe, now: datetime) -> Alert:
    go_live(pipe)
    store_dead(pipe, range(3), now - timedelta(minutes=5))
    return open_alert(pipe, now - timedelta(minutes=5))


def url_of(name: str, alert: Alert) -> str:
    return reverse(f"console:{name}", args=[alert.pipe_id, alert.id])


def test_open_alert_is_shown_on_every_page_and_in_the_list(alices: Client, alert: Alert):
    assert ONE_OPEN in alices.get("/").content.decode()
    page = alices.get(reverse("console:alerts")).content.decode()
    assert "crm: returned 401" in page
    assert url_of("alert", alert) in page
    assert "No resolved alerts" in alices.get(reverse("console:alerts"), {"state": "resolved"}).content.decode()


def test_alert_page_shows_cause_sample_curl_and_remedy(alices: Client, alert: Alert):
    page = alices.get(url_of("alert", alert)).content.decode()
    assert "crm: returned 401" in page
    assert "401 and 403 point to credentials" in page
    assert "curl -sS https://crm.example.com/in" in page
    assert "&lt;script&gt;alert(1)" in page
    assert reverse("console:message", args=[alert.pipe_id, "1-0-7"]) in page


def test_alert_about_a_rule_offers_to_run_its_dead_letters_again(alices: Client, pipe: Pipe, now: datetime):
    go_live(pipe)
    store_dead(pipe, range(3), now, cause="route", where="")
    failure = FailureGroup(pipe.id, "", "route", 3, now, {"reason": "route: rule 1: body.total is missing"})
    note_failures(failures=[failure], now=now)
    page = alices.get(reverse("console:alert", args=[pipe.id, Alert.objects.get().id])).content.decode()
    assert f'href="{reverse("console:redrive", args=[pipe.id])}?cause=route"' in page
    assert "Run the dead letters again through @1" in page
    DeadLetter.objects.all().delete()
    OffsetSet.objects.all().delete()
    page = alices.get(reverse("console:alert", args=[pipe.id, Alert.objects.get().id])).content.decode()
    assert "Run the dead letters again" not in page


@pytest.mark.parametrize(("cause", "label"), [("route", "Fix rule"), ("step", "Fix steps"), ("dead-rate", "Edit pipe")])
def test_alert_about_steps_leads_to_the_editor_until_a_fix_is_live(
    alices: Client, pipe: Pipe, now: datetime, cause: str, label: str
):
    go_live(pipe)
    pipe.revisions.update(live_at=now - timedelta(hours=1))
    note_failures(failures=[FailureGroup(pipe.id, "", cause, 3, now, {})], now=now)
    url = reverse("console:alert", args=[pipe.id, Alert.objects.get().id])
    link = f'href="{reverse("console:edit_pipe", args=[pipe.id])}">{label}<'
    assert link in alices.get(url).content.decode()
    pipe.revisions.update(live_at=now + timedelta(minutes=1))
    assert link not in alices.get(url).content.decode()


def test_alert_about_a_destination_has_no_link_to_fix_steps(alices: Client, alert: Alert):
    page = alices.get(url_of("alert", alert)).content.decode()
    assert not any(f">{label}<" in page for label in FIXES.values())


def test_acknowledgement_names_the_user_and_clears_the_badge(alices: Client, alert: Alert, alice: User):
    assert alices.post(url_of("acknowledge_alert", alert)).status_code == 302
    alert.refresh_from_db()
    assert (alert.state, alert.acknowledged_by) == ("acknowledged", alice)
    page = alices.get(url_of("alert", alert)).content.decode()
    assert "by alice" in page
    assert ONE_OPEN not in page


def test_snooze_always_ends(alices: Client, alert: Alert, now: datetime):
    alices.post(url_of("snooze_alert", alert), {"for": "4 h"})
    alert.refresh_from_db()
    assert alert.state == "snoozed"
    assert alert.snoozed_until
    assert timedelta(hours=3) < alert.snoozed_until - now < timedelta(hours=5)
    alices.post(url_of("snooze_alert", alert), {"for": "for ever"})
    alert.refresh_from_db()
    assert alert.snoozed_until < now + timedelta(hours=2)


def test_alert_probe_sends_exactly_one_message(alices: Client, alert: Alert):
    assert alices.post(url_of("probe_alert", alert)).status_code == 302
    move = Redrive.objects.get()
    assert (move.probe, move.total) == (True, 1)
    assert "Waiting for the response" in alices.get(url_of("alert", alert)).content.decode()
    page = alices.post(url_of("probe_alert", alert), follow=True).content.decode()
    assert "Wait for its result" in page
    assert Redrive.objects.count() == 1


def test_resolved_alert_refuses_further_actions(alices: Client, alert: Alert):
    alices.post(url_of("resolve_alert", alert))
    page = alices.get(url_of("alert", alert)).content.decode()
    assert "Resolved by alice" in page
    assert "Send one message, then release the rest" not in page
    again = alices.post(url_of("acknowledge_alert", alert), follow=True).content.decode()
    assert "This alert is resolved" in again


def test_viewer_reads_an_alert_and_may_not_act_on_it(browser_of: BrowserOf, viewer: User, charlie: User, alert: Alert):
    vera = browser_of(viewer)
    assert "Send one message, then release the rest" not in vera.get(url_of("alert", alert)).content.decode()
    for action in ("acknowledge_alert", "snooze_alert", "resolve_alert", "probe_alert"):
        assert vera.post(url_of(action, alert)).status_code == 403
    charlies = browser_of(charlie)
    assert charlies.get(url_of("alert", alert)).status_code == 404
    assert "crm" not in charlies.get(reverse("console:alerts")).content.decode()


def test_channels_are_added_listed_and_removed(alices: Client, pipe: Pipe):
    url = reverse("console:channels")
    assert "No channels yet" in alices.get(url).content.decode()
    assert alices.post(url, {"kind": "mail", "target": "ops@example.com"}).status_code == 302
    page = alices.post(url, {"kind": "webhook", "target": "https://ops.example.com/hook"}).content.decode()
    assert page.count("whsec_") == 1
    assert "whsec_" not in alices.get(url).content.decode()
    refused = alices.post(url, {"kind": "mail", "target": "nobody"})
    assert refused.status_code == 422
    assert "needs an e-mail address" in refused.content.decode()
    row = AlertChannel.objects.get(kind="mail")
    alices.post(url, {"remove": row.id})
    assert list(AlertChannel.objects.values_list("kind", flat=True)) == ["webhook"]


def test_other_tenant_cannot_remove_a_channel(alices: Client, browser_of: BrowserOf, charlie: User, pipe: Pipe):
    alices.post(reverse("console:channels"), {"kind": "mail", "target": "ops@example.com"})
    row = AlertChannel.objects.get()
    assert browser_of(charlie).post(reverse("console:channels"), {"remove": row.id}).status_code == 404
    assert AlertChannel.objects.exists()


@pytest.fixture
def bearer(pipe: Pipe, alice: User, a_spec: MakeSpec) -> str:
    """Credential URL of a destination with a bearer token."""
    spec: dict[str, Any] = a_spec()
    spec["destinations"]["crm"]["auth"] = {"type": "bearer"}
    publish_revision(pipe=pipe, spec=spec, based_on=1, author=alice)
    go_live(pipe)
    return reverse("console:credential", args=[pipe.id, "crm"])


def test_secret_is_stored_and_never_shown(alices: Client, pipe: Pipe, bearer: str):
    page = reverse("console:destination", args=[pipe.id, "crm"])
    assert "requests fail until you enter it" in alices.get(page).content.decode()
    assert alices.post(bearer, {"value": SECRET}).status_code == 302
    row = Destination.objects.get()
    assert row.credential
    assert SECRET not in row.credential
    shown = alices.get(page).content.decode()
    assert SECRET not in shown
    assert "cannot be shown again" in shown


def test_secret_that_is_invalid_in_a_header_is_refused_and_not_echoed(alices: Client, bearer: str):
    answer = alices.post(bearer, {"value": f"{SECRET}\u00e9"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "needs printable ASCII" in page
    assert SECRET not in page
    assert not Destination.objects.get().credential


def test_viewer_cannot_store_a_secret(browser_of: BrowserOf, viewer: User, bearer: str):
    assert browser_of(viewer).post(bearer, {"value": SECRET}).status_code == 403
