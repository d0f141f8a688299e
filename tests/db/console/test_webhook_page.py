"""Webhook settings of a source in the console: sender, secret and headers; the URL is shown once."""

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from controlplane.observer.rejections import add_rejections
from dataplane.ledger.rejections import SENDER_CHARS, RejectionReport
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import ApiKey, Pipe, SourceWebhook, User
from mgmt.services import close_pipe, create_api_key, set_webhook
from tests.db.console.truth import BrowserOf, plain

pytestmark = pytest.mark.django_db
SECRET = "shared-with-the-sender"


@pytest.fixture
def url(pipe: Pipe) -> str:
    return reverse("console:webhook", args=[pipe.id, "shop"])


def typed(**more: str) -> dict[str, str]:
    return {"preset": "github", "secret": SECRET, "headers": "X-Extra x-more", "action": "save"} | more


def test_sender_is_set_up_then_its_url_is_shown_once(alices: Client, url: str, pipe: Pipe):
    page = plain(alices.get(url).text)
    assert "not set up" in page
    assert "Create a URL" not in page
    answer = alices.post(url, typed(), follow=True)
    page = plain(answer.text)
    assert "Sender saved" in page
    assert "In the repository or organization" in page
    assert SECRET not in answer.text
    row = SourceWebhook.objects.get()
    assert (row.preset, row.headers, len(row.secrets)) == ("github", ["x-extra", "x-more"], 1)
    made = alices.post(url, {"action": "url"}).text
    key = ApiKey.objects.get()
    assert f"{settings.PENSTOCK_INGEST_URL}/v1/hooks/{key.prefix}" in made
    assert "shown only once" in made
    [part] = set(re.findall(rf"{key.prefix}\w+", made))
    assert part not in alices.get(url).text
    listed = plain(alices.get(reverse("console:settings", args=[pipe.id])).text)
    assert "webhook URL" in listed


def test_mistake_is_shown_at_its_field_without_the_secret(alices: Client, url: str):
    answer = alices.post(url, typed(preset="standard-webhooks"))
    assert answer.status_code == 422
    assert "It needs whsec_ and 24 to 64 bytes in base64" in plain(answer.text)
    assert SECRET not in answer.text
    assert "X-Extra x-more" in answer.text
    assert not SourceWebhook.objects.exists()
    alices.post(url, typed())
    other = plain(alices.post(url, typed(preset="stripe", secret="")).text)
    assert "It needs the signing secret that Stripe shows" in other
    assert SourceWebhook.objects.get().preset == "github"


def test_missing_secret_is_named_until_it_is_entered(alices: Client, url: str):
    page = plain(alices.post(url, typed(preset="stripe", secret=""), follow=True).text)
    assert "Signing secret missing Ingest returns 503 to Stripe until you enter it: create a URL" in page
    page = plain(alices.post(url, typed(preset="stripe"), follow=True).text)
    assert "Signing secret missing" not in page


def test_page_lists_urls_that_work_and_why_deliveries_were_refused(alices: Client, url: str, pipe: Pipe, alice: User):
    source = pipe.sources.get()
    set_webhook(source=source, preset="github", secret=SECRET, by=alice)
    assert "Refused deliveries" not in alices.get(url).text
    key, _ = create_api_key(source=source, use="url", by=alice, label="shop app")
    old, _ = create_api_key(source=source, use="url", by=alice)
    ApiKey.objects.filter(id=old.id).update(expires_at=timezone.now())
    page = plain(alices.get(url).text)
    assert f"/v1/hooks/{key.prefix}… shop app" in page
    assert old.prefix not in page
    assert "Refused deliveries of the last 24h None." in page
    detail = "the signature fits neither the body nor the secret of this source"
    minute = bucket_at(timezone.now() - timedelta(minutes=2))
    for name, sender in (("shop", key.digest[:SENDER_CHARS]), ("other", "0" * SENDER_CHARS)):
        report = RejectionReport(pipe.id, name, "", "signature-invalid", "", sender, minute, 3, detail, [])
        with transaction.atomic():
            add_rejections([report])
    page = plain(alices.get(url).text)
    assert page.count(detail.capitalize()) == 1
    assert re.search(rf"Signature is invalid ?: 3, last \d+\s?(s|min) ago from shop app \({key.prefix}\.\.\.\)", page)
    assert "Enter the same secret here and at the sender." in page


def test_rotation_of_the_secret_is_explained_and_ended(alices: Client, url: str, pipe: Pipe, alice: User):
    for secret in (SECRET, "the-secret-after-it"):
        set_webhook(source=pipe.sources.get(), preset="github", secret=secret, by=alice)
    assert "one of two secrets" in plain(alices.get(url).text)
    alices.post(url, typed(secret="", keep_previous=""))
    assert len(SourceWebhook.objects.get().secrets) == 1


def test_rotated_url_is_shown_as_a_url(alices: Client, url: str, pipe: Pipe):
    alices.post(url, typed())
    alices.post(url, {"action": "url"})
    old = ApiKey.objects.get()
    page = alices.post(reverse("console:rotate_key", args=[pipe.id, old.id]), {"hours": "24"}).text
    new = ApiKey.objects.exclude(id=old.id).get()
    assert f"/v1/hooks/{new.prefix}" in page
    assert "Webhook URL of source shop" in plain(page)


def test_only_editors_change_senders_and_other_tenants_see_nothing(
    browser_of: BrowserOf, viewer: User, charlie: User, url: str
):
    seen = browser_of(viewer).get(url)
    assert seen.status_code == 200
    assert 'name="secret"' not in seen.text
    for action in ("save", "url"):
        assert browser_of(viewer).post(url, typed(action=action)).status_code == 403
        assert browser_of(charlie).post(url, typed(action=action)).status_code == 404
    assert browser_of(charlie).get(url).status_code == 404


def test_url_without_a_sender_and_changes_of_a_closed_pipe_are_refused(
    alices: Client, url: str, pipe: Pipe, alice: User
):
    assert alices.post(url, {"action": "url"}).status_code == 409
    close_pipe(pipe=pipe, by=alice)
    assert alices.post(url, typed()).status_code == 409
    assert "Reopen it" in plain(alices.get(url).text)
