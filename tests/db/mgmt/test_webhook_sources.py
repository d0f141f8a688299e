"""Webhook settings of sources: set in the API, secrets sealed and rotated, published so that ingest can verify."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone
from rest_framework.test import APIClient

from controlplane.provisioner.desired_state import wanted_versions
from controlplane.provisioner.records import desired_records
from dataplane.spec.keys import URL_PREFIX, key_digest, key_is_well_formed
from dataplane.tables.records import ApiKeyRecord, WebhookRecord
from dataplane.tables.sealed import opener, unbind, webhook_place
from mgmt.models import ApiKey, Pipe, SourceWebhook, User
from mgmt.services import close_pipe, create_api_key, rotate_api_key, set_webhook
from mgmt.tenancy.services.rotation import rotate_secrets
from tests.db.cast import MakeClient
from tests.db.console.truth import go_live
from tests.db.provisioning import snapshot

pytestmark = pytest.mark.django_db
SECRET = "shared-with-the-sender"
OTHER = "the-secret-after-it"
WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def editor(bob: User, pipe: Pipe, client_of: MakeClient) -> APIClient:
    return client_of(bob)


@pytest.fixture
def url(pipe: Pipe) -> str:
    return f"/api/v1/pipes/{pipe.id}/sources/shop/webhook/"


def put(client: APIClient, url: str, preset: str = "github", **more: Any) -> Any:
    return client.put(url, {"preset": preset} | more, format="json")


def opened(pipe: Pipe) -> list[str]:
    """Return the secrets as ingest decrypts them from the published record."""
    (record,) = desired_records([f"webhook/{pipe.id}/shop"]).records
    assert isinstance(record, WebhookRecord)
    open_ = opener(tuple(settings.PENSTOCK_FERNET_KEYS))
    return [unbind(open_(token), webhook_place(pipe.id, "shop")) for token in record.secrets]


def test_sender_is_set_and_its_secret_is_never_returned(editor: APIClient, url: str, pipe: Pipe):
    assert editor.get(url).status_code == 404
    made = put(editor, url, secret=SECRET, headers=["X-Extra", "x-extra", "x-more"])
    assert made.status_code == 200
    assert made.json() == editor.get(url).json()
    body = made.json()
    assert (body["preset"], body["headers"], body["secrets"], body["version"]) == (
        "github",
        ["x-extra", "x-more"],
        1,
        1,
    )
    assert (body["id_from"], body["type_from"]) == ("the header x-github-delivery", "the header x-github-event")
    assert SECRET not in made.text + str(SourceWebhook.objects.values())
    assert opened(pipe) == [SECRET]


def test_secret_rotates_with_an_overlap_that_a_person_ends(editor: APIClient, url: str, pipe: Pipe):
    put(editor, url, secret=SECRET)
    put(editor, url, secret=OTHER)
    assert opened(pipe) == [OTHER, SECRET]
    assert put(editor, url).json()["version"] == 2  # nothing changed
    put(editor, url, keep_previous=False)
    assert opened(pipe) == [OTHER]
    put(editor, url, secret="third-of-the-secrets", keep_previous=False)
    assert opened(pipe) == ["third-of-the-secrets"]


def test_another_sender_needs_its_own_secret(editor: APIClient, url: str, pipe: Pipe):
    put(editor, url, secret=SECRET)
    refused = put(editor, url, "stripe")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "#/secret")
    assert opened(pipe) == [SECRET]
    assert put(editor, url, "none").json()["secrets"] == 0
    assert put(editor, url, "cloudevents").status_code == 200


def test_url_may_be_created_before_the_secret_is_known(editor: APIClient, url: str, pipe: Pipe):
    """Stripe shows the signing secret only for an endpoint that it knows. Ingest answers 503 till then."""
    assert put(editor, url, "stripe").json()["secrets"] == 0
    made = editor.post(f"/api/v1/pipes/{pipe.id}/keys/", {"source": "shop", "use": "url"}, format="json")
    assert made.status_code == 201
    assert opened(pipe) == []
    assert put(editor, url, "stripe", secret=WHSEC).json()["secrets"] == 1
    assert opened(pipe) == [WHSEC]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"preset": "of-nobody", "secret": SECRET}, "preset"),
        ({"preset": "github", "secret": "short"}, "secret"),
        ({"preset": "github", "secret": "with\na line"}, "secret"),
        ({"preset": "standard-webhooks", "secret": SECRET}, "secret"),
        ({"preset": "twitch", "secret": "nine-long"}, "secret"),
        ({"preset": "none", "secret": SECRET}, "secret"),
        ({"preset": "none", "headers": ["authorization"]}, "headers"),
        ({"preset": "none", "headers": ["x y"]}, "headers"),
        ({"preset": "none", "headers": [f"x-{number}" for number in range(21)]}, "headers"),
    ],
)
def test_settings_that_could_not_work_are_refused(editor: APIClient, url: str, body: Any, field: str):
    refused = editor.put(url, body, format="json")
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["pointer"].startswith(f"#/{field}")
    assert not SourceWebhook.objects.exists()


def test_closed_pipe_keeps_its_sender(editor: APIClient, url: str, pipe: Pipe, bob: User):
    close_pipe(pipe=pipe, by=bob)
    assert put(editor, url, secret=SECRET).status_code == 409


def test_url_needs_a_sender_is_shown_once_and_is_no_api_key(editor: APIClient, url: str, pipe: Pipe):
    keys = f"/api/v1/pipes/{pipe.id}/keys/"
    refused = editor.post(keys, {"source": "shop", "use": "url"}, format="json")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "#/use")
    put(editor, url, secret=SECRET)
    made = editor.post(keys, {"source": "shop", "use": "url"}, format="json").json()
    part = made["key"]
    assert key_is_well_formed(part, URL_PREFIX)
    assert not key_is_well_formed(part)
    assert (made["use"], made["url"]) == ("url", f"{settings.PENSTOCK_INGEST_URL}/v1/hooks/{part}")
    assert part not in editor.get(keys).text
    assert [one["use"] for one in editor.get(keys).json()["results"]] == ["url"]
    plain = editor.post(keys, {"source": "shop"}, format="json").json()
    assert (plain["use"], plain["url"], plain["key"][:4]) == ("key", "", "psk_")


def test_rotated_url_is_a_url_again(pipe: Pipe, alice: User):
    set_webhook(source=pipe.sources.get(), preset="none", by=alice)
    row, _ = create_api_key(source=pipe.sources.get(), use="url", by=alice)
    new, part = rotate_api_key(key=row, by=alice, overlap=timedelta(hours=1), now=timezone.now())
    assert new.use == "url"
    assert key_is_well_formed(part, URL_PREFIX)


def test_settings_are_published_before_the_url(pipe: Pipe, alice: User):
    set_webhook(source=pipe.sources.get(), preset="github", secret=SECRET, headers=["x-extra"], by=alice)
    row, part = create_api_key(source=pipe.sources.get(), use="url", by=alice)
    go_live(pipe)
    versions = wanted_versions(snapshot())
    order, key = list(versions), f"webhook/{pipe.id}/shop"
    assert versions[key] == 1
    assert order.index(key) < order.index(f"pipe/{pipe.id}") < order.index(f"key/{row.digest}")
    settings_record, url_record = desired_records([key, f"key/{key_digest(part)}"]).records
    assert isinstance(settings_record, WebhookRecord)
    assert (settings_record.preset, settings_record.headers) == ("github", ["x-extra"])
    assert isinstance(url_record, ApiKeyRecord)
    assert (url_record.pipe, url_record.source) == (pipe.id, "shop")


def test_secrets_are_encrypted_again_with_a_new_first_key(pipe: Pipe, alice: User):
    row = set_webhook(source=pipe.sources.get(), preset="standard-webhooks", secret=WHSEC, by=alice)
    before = list(row.secrets)
    rotate_secrets()
    row.refresh_from_db()
    assert row.secrets != before
    assert row.version == 2
    assert opened(pipe) == [WHSEC]
    assert not ApiKey.objects.exists()
