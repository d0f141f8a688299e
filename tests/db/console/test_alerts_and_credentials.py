"""Alerts are taken in hand, put aside, probed and resolved on their page; secrets are written and never shown."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from mgmt.models import Alert, AlertChannel, Destination, Move, Pipe, User
from mgmt.services import publish_revision
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf, go_live
from tests.db.console.undelivered import open_alert, store_dead

pytestmark = pytest.mark.django_db
SECRET = "very-secret-token-4711"


@pytest.fixture
def alert(pipe: Pipe, now: datetime) -> Alert:
    go_live(pipe)
    store_dead(pipe, range(3), now - timedelta(minutes=5))
    return open_alert(pipe, now - timedelta(minutes=5))


def url_of(name: str, alert: Alert) -> str:
    return reverse(f"console:{name}", args=[alert.pipe_id, alert.id])


def test_an_open_alert_rings_on_every_page_and_stands_in_the_list(alices: Client, alert: Alert):
    assert "1 alert<" in alices.get("/").content.decode()
    page = alices.get(reverse("console:alerts")).content.decode()
    assert "crm: answered 401" in page
    assert url_of("alert", alert) in page
    assert "None was resolved yet" in alices.get(reverse("console:alerts"), {"state": "resolved"}).content.decode()


def test_its_page_has_cause_sample_curl_and_what_to_do(alices: Client, alert: Alert):
    page = alices.get(url_of("alert", alert)).content.decode()
    assert "crm: answered 401" in page
    assert "401 and 403 speak of credentials" in page
    assert "curl -sS https://crm.example.com/in" in page
    assert "&lt;script&gt;alert(1)" in page
    assert reverse("console:message", args=[alert.pipe_id, "1-0-7"]) in page


def test_somebody_is_on_it(alices: Client, alert: Alert, alice: User):
    assert alices.post(url_of("acknowledge_alert", alert)).status_code == 302
    alert.refresh_from_db()
    assert (alert.state, alert.acknowledged_by) == ("acknowledged", alice)
    page = alices.get(url_of("alert", alert)).content.decode()
    assert "by alice" in page
    assert "1 alert<" not in page


def test_quiet_always_has_an_end(alices: Client, alert: Alert, now: datetime):
    alices.post(url_of("snooze_alert", alert), {"for": "4 h"})
    alert.refresh_from_db()
    assert alert.state == "snoozed"
    assert alert.snoozed_until
    assert timedelta(hours=3) < alert.snoozed_until - now < timedelta(hours=5)
    alices.post(url_of("snooze_alert", alert), {"for": "for ever"})
    alert.refresh_from_db()
    assert alert.snoozed_until < now + timedelta(hours=2)


def test_i_fixed_it_sends_one_message(alices: Client, alert: Alert):
    assert alices.post(url_of("probe_alert", alert)).status_code == 302
    move = Move.objects.get()
    assert (move.probe, move.total) == (True, 1)
    assert "We wait for its answer" in alices.get(url_of("alert", alert)).content.decode()
    page = alices.post(url_of("probe_alert", alert), follow=True).content.decode()
    assert "Wait for its answer" in page
    assert Move.objects.count() == 1


def test_what_is_over_is_over(alices: Client, alert: Alert):
    alices.post(url_of("resolve_alert", alert))
    page = alices.get(url_of("alert", alert)).content.decode()
    assert "It is over: resolved by alice" in page
    assert "I fixed it" not in page
    again = alices.post(url_of("acknowledge_alert", alert), follow=True).content.decode()
    assert "This alert is over" in again


def test_a_viewer_reads_and_handles_nothing(browser_of: BrowserOf, viewer: User, charlie: User, alert: Alert):
    vera = browser_of(viewer)
    assert "I fixed it" not in vera.get(url_of("alert", alert)).content.decode()
    for deed in ("acknowledge_alert", "snooze_alert", "resolve_alert", "probe_alert"):
        assert vera.post(url_of(deed, alert)).status_code == 403
    charlies = browser_of(charlie)
    assert charlies.get(url_of("alert", alert)).status_code == 404
    assert "crm" not in charlies.get(reverse("console:alerts")).content.decode()


def test_channels_are_added_shown_and_removed(alices: Client, pipe: Pipe):
    url = reverse("console:channels")
    assert "No channels yet" in alices.get(url).content.decode()
    assert alices.post(url, {"kind": "mail", "target": "ops@example.com"}).status_code == 302
    page = alices.post(url, {"kind": "webhook", "target": "https://ops.example.com/hook"}).content.decode()
    assert page.count("whsec_") == 1
    assert "whsec_" not in alices.get(url).content.decode()
    refused = alices.post(url, {"kind": "mail", "target": "nobody"})
    assert refused.status_code == 422
    assert "needs a mail address" in refused.content.decode()
    row = AlertChannel.objects.get(kind="mail")
    alices.post(url, {"remove": row.id})
    assert list(AlertChannel.objects.values_list("kind", flat=True)) == ["webhook"]


def test_another_tenants_channel_is_not_removed(alices: Client, browser_of: BrowserOf, charlie: User, pipe: Pipe):
    alices.post(reverse("console:channels"), {"kind": "mail", "target": "ops@example.com"})
    row = AlertChannel.objects.get()
    assert browser_of(charlie).post(reverse("console:channels"), {"remove": row.id}).status_code == 404
    assert AlertChannel.objects.exists()


@pytest.fixture
def bearer(pipe: Pipe, alice: User, a_spec: MakeSpec) -> str:
    """The URL that takes the secret of a destination with a bearer token."""
    spec: dict[str, Any] = a_spec()
    spec["destinations"]["crm"]["auth"] = {"type": "bearer"}
    publish_revision(pipe=pipe, spec=spec, based_on=1, author=alice)
    go_live(pipe)
    return reverse("console:credential", args=[pipe.id, "crm"])


def test_a_secret_is_stored_and_never_shown(alices: Client, pipe: Pipe, bearer: str):
    page = reverse("console:destination", args=[pipe.id, "crm"])
    assert "requests fail until it is entered" in alices.get(page).content.decode()
    assert alices.post(bearer, {"value": SECRET}).status_code == 302
    row = Destination.objects.get()
    assert row.credential
    assert SECRET not in row.credential
    shown = alices.get(page).content.decode()
    assert SECRET not in shown
    assert "never shown again" in shown


def test_a_secret_that_cannot_go_into_a_header_is_refused_and_not_echoed(alices: Client, bearer: str):
    answer = alices.post(bearer, {"value": f"{SECRET}\u00e9"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "needs printable ASCII" in page
    assert SECRET not in page
    assert not Destination.objects.get().credential


def test_a_viewer_enters_no_secret(browser_of: BrowserOf, viewer: User, bearer: str):
    assert browser_of(viewer).post(bearer, {"value": SECRET}).status_code == 403
