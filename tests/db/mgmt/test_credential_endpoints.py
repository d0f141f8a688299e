"""A stored credential is sent to the address it was entered for and to no other, however that changes."""

import json
from importlib import import_module
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings
from rest_framework.test import APIClient

from dataplane.spec import destination_of
from dataplane.tables.records import DestinationRecord
from dataplane.tables.sealed import opener
from dataplane.transmit.http.secrets import OpenedSecrets, open_secrets
from dataplane.transmit.http.sender import AwsKey
from mgmt.models import Destination, Pipe, PipeRevision, User
from mgmt.pipes.services.revisions import take_over
from mgmt.services import (
    CredentialNeededError,
    InvalidValue,
    adopt_live_spec,
    clear_credential,
    create_pipe,
    publish_revision,
    set_credential,
)
from mgmt.tenancy.secrets import decrypt, encrypt
from tests.db.cast import MakeClient

pytestmark = pytest.mark.django_db
HERE, THERE = "https://crm.example.com/in", "https://evil.example.net/in"
SECRET = "canary-secret"
BEARER = {"type": "bearer"}


def spec(url: str = HERE, auth: dict[str, str] = BEARER, **more: Any) -> dict[str, Any]:
    return {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": url, "auth": auth, **more}}}


@pytest.fixture
def pipe(tenant: Any, alice: User) -> Pipe:
    """Live pipe whose destination authenticates with a stored credential."""
    made = create_pipe(tenant=tenant, name="orders", spec=spec(), author=alice)
    go_live(made.revisions.get())
    set_credential(destination=made.destinations.get(), credential={"value": SECRET})
    return made


def go_live(revision: PipeRevision) -> None:
    PipeRevision.objects.filter(id=revision.id).update(state="ramping")
    revision.refresh_from_db()
    adopt_live_spec(revision=revision)


def publish(pipe: Pipe, document: dict[str, Any], **more: Any) -> PipeRevision:
    author = User.objects.get(username="alice")
    return publish_revision(pipe=pipe, spec=document, based_on=pipe.revisions.count(), author=author, **more)


def test_access_key_is_published_with_a_secret_of_its_own(pipe: Pipe, settings: Settings):
    def bucket(access_key_id: str) -> dict[str, Any]:
        document = spec()
        to = {"type": "s3", "url": HERE, "region": "auto", "access_key_id": access_key_id}
        return document | {"destinations": {"crm": to}}

    with pytest.raises(CredentialNeededError):
        publish(pipe, bucket("AKIA1"))
    go_live(publish(pipe, bucket("AKIA1"), credentials={"crm": {"secret_access_key": SECRET}}))
    assert lanes_secrets(pipe, settings).identity == AwsKey("auto", "AKIA1", SECRET)
    with pytest.raises(CredentialNeededError) as refused:
        publish(pipe, bucket("AKIA2"))
    assert refused.value.needed[0].fields == ("secret_access_key",)
    with pytest.raises(InvalidValue, match="credentials: crm: "):
        publish(pipe, bucket("AKIA2"), credentials={"crm": {"password": SECRET}})


def test_password_of_a_database_does_not_follow_a_changed_host_or_user(pipe: Pipe, settings: Settings):
    def database(**fields: str) -> dict[str, Any]:
        to = {"type": "postgres", "host": "db.example.com", "database": "shop", "user": "w", "table": "t"} | fields
        return spec() | {"destinations": {"crm": to}}

    go_live(publish(pipe, database(), credentials={"crm": {"password": SECRET}}))
    assert lanes_secrets(pipe, settings).password == SECRET
    go_live(publish(pipe, database(table="u", database="other")))
    assert lanes_secrets(pipe, settings).password == SECRET
    for changed in ({"host": "evil.example.net"}, {"user": "other"}):
        with pytest.raises(CredentialNeededError) as refused:
            publish(pipe, database(**changed))
        assert refused.value.needed[0].fields == ("password",)
    assert refused.value.needed[0].url == "postgresql://db.example.com:5432/shop public.t"


def lanes_secrets(pipe: Pipe, settings: Settings) -> OpenedSecrets:
    """Open the secrets of the currently published record as a lane does."""
    row = pipe.destinations.get()
    record = DestinationRecord(pipe.id, "crm", 1, "active", destination_of(row.config), row.secrets, row.credential)
    return open_secrets(record, opener(tuple(settings.PENSTOCK_FERNET_KEYS)))


# -- publishing requires the credential again


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(spec(THERE), id="another host"),
        pytest.param(spec(HERE.replace("https", "http")), id="another scheme"),
        pytest.param(spec("https://crm.example.com:8443/in"), id="another port"),
        pytest.param(spec(auth={"type": "oauth2", "token_url": THERE, "client_id": "c"}), id="a token URL"),
    ],
)
def test_new_endpoint_is_published_only_with_its_credential(pipe: Pipe, document: dict[str, Any]):
    with pytest.raises(CredentialNeededError) as refused:
        publish(pipe, document)
    assert [one.destination for one in refused.value.needed] == ["crm"]
    assert pipe.revisions.count() == 1, "nothing is stored"


def test_settings_of_the_same_endpoint_are_published_without_the_credential(pipe: Pipe, settings: Settings):
    go_live(publish(pipe, spec("https://CRM.example.com:443/other?x=1", timeout_s=3)))
    assert lanes_secrets(pipe, settings).headers == (f"Authorization: Bearer {SECRET}",)


def test_new_credential_is_used_when_the_revision_is_live_and_the_old_one_until_then(pipe: Pipe, settings: Settings):
    revision = publish(pipe, spec(THERE), credentials={"crm": {"value": "for-there"}})
    assert lanes_secrets(pipe, settings).headers == (f"Authorization: Bearer {SECRET}",)
    go_live(revision)
    assert lanes_secrets(pipe, settings).headers == ("Authorization: Bearer for-there",)


def test_rolled_back_ramp_uses_the_old_credential_at_the_old_address(pipe: Pipe, settings: Settings):
    revision = publish(pipe, spec(THERE), credentials={"crm": {"value": "for-there"}})
    take_over(pipe.id, revision.spec["destinations"], remove=False)
    assert lanes_secrets(pipe, settings).headers == ("Authorization: Bearer for-there",)
    take_over(pipe.id, pipe.revisions.get(number=1).spec["destinations"], remove=False)
    assert lanes_secrets(pipe, settings).headers == (f"Authorization: Bearer {SECRET}",)


def test_pending_revisions_keep_the_live_credential(pipe: Pipe, settings: Settings):
    for number in range(3):
        publish(pipe, spec(f"https://h{number}.example.com/"), credentials={"crm": {"value": f"for {number}"}})
    assert lanes_secrets(pipe, settings).headers == (f"Authorization: Bearer {SECRET}",)
    assert len(pipe.destinations.get().credentials) == 2


@pytest.mark.parametrize(
    ("credentials", "words"),
    [
        ({"crm": {}}, "crm: value needs 1 to"),
        ({"crm": {"password": "x"}}, "crm: "),
        ({"crm": {"value": "a\nb"}}, "printable ASCII"),
        ({"erp": {"value": "x"}}, "erp: there is no destination of this name"),
    ],
)
def test_invalid_credential_is_refused_naming_its_destination(
    pipe: Pipe, credentials: dict[str, dict[str, str]], words: str
):
    with pytest.raises(InvalidValue, match=words):
        publish(pipe, spec(THERE), credentials=credentials)
    assert pipe.revisions.count() == 1


def test_publishing_needs_no_credential_if_none_was_stored(pipe: Pipe):
    clear_credential(destination=pipe.destinations.get())
    publish(pipe, spec(THERE))


def test_removed_destination_restored_at_another_address_needs_its_credential(pipe: Pipe):
    other = {"sources": {"shop": {}}, "destinations": {"erp": {"type": "http", "url": "https://erp.example.com/"}}}
    go_live(publish(pipe, other))
    with pytest.raises(CredentialNeededError):
        publish(pipe, spec(THERE))
    publish(pipe, spec())


# -- the lane checks the endpoint of every record


def test_address_changed_without_its_credential_gets_none(pipe: Pipe, settings: Settings):
    config = spec(THERE)["destinations"]["crm"]
    Destination.objects.filter(pipe=pipe).update(config=config)
    assert lanes_secrets(pipe, settings) == OpenedSecrets("credential-missing")


def test_sealed_credential_opens_only_for_its_own_endpoint(pipe: Pipe, settings: Settings):
    row = pipe.destinations.get()
    there = destination_of(spec(THERE)["destinations"]["crm"])
    record = DestinationRecord(pipe.id, "crm", 1, "active", there, row.secrets, row.credential)
    assert open_secrets(record, opener(tuple(settings.PENSTOCK_FERNET_KEYS))).locked == "credential-missing"


# -- API and console


def test_api_names_the_needed_credential_and_accepts_it(
    pipe: Pipe, alice: User, client_of: MakeClient, settings: Settings
):
    api: APIClient = client_of(alice)
    url = f"/api/v1/pipes/{pipe.id}/revisions/"
    refused = api.post(url, {"based_on": 1, "spec": spec(THERE)}, format="json")
    assert (refused.status_code, refused.json()["code"]) == (422, "credential-needed")
    assert refused.json()["errors"] == [
        {"pointer": "#/credentials/crm", "detail": "needs value", "code": "credential-needed"}
    ]
    given = {"based_on": 1, "spec": spec(THERE), "credentials": {"crm": {"value": "for-there"}}}
    answer = api.post(url, given, format="json")
    assert answer.status_code == 201
    assert "for-there" not in answer.content.decode()
    go_live(pipe.revisions.get(number=2))
    assert lanes_secrets(pipe, settings).headers == ("Authorization: Bearer for-there",)


def form(url: str) -> dict[str, Any]:
    names = {"destination.name": "crm", "destination.was": "crm", "destination.kind": "http", "destination.url": url}
    return names | {"mode": "form", "action": "save", "based_on": "1", "source.name": "shop", "source.was": "shop"}


def test_editor_requests_the_credential_and_never_shows_it(pipe: Pipe, alice: User):
    browser = Client()
    browser.force_login(alice)
    url = reverse("console:edit_pipe", args=[pipe.id])
    asked = browser.post(url, form(THERE))
    assert asked.status_code == 422
    page = asked.content.decode()
    assert "Enter these credentials again" in page
    assert 'name="credential.crm-value"' in page
    assert SECRET not in page
    bad = browser.post(url, form(THERE) | {"credential.crm-value": "a\u00e9"})
    assert "printable ASCII" in bad.content.decode()
    assert browser.post(url, form(THERE) | {"credential.crm-value": "for-there"}).status_code == 302
    assert pipe.revisions.count() == 2


def test_plan_requests_the_credential_and_contains_no_secret(pipe: Pipe, alice: User):
    browser = Client()
    browser.force_login(alice)
    url = reverse("console:edit_pipe", args=[pipe.id])
    page = browser.post(url, form(THERE) | {"action": "plan", "credential.crm-value": "typed-already"}).content.decode()
    assert 'name="credential.crm-value"' in page
    assert "typed-already" not in page


def test_revert_needs_the_credential_unless_it_was_entered_for_that_address(pipe: Pipe, alice: User):
    go_live(publish(pipe, spec(THERE), credentials={"crm": {"value": "for-there"}}))
    browser = Client()
    browser.force_login(alice)
    url = reverse("console:edit_pipe", args=[pipe.id])
    back = form(HERE) | {"based_on": "2"}
    assert browser.post(f"{url}?from=1", back).status_code == 302, "the credential was entered for that address"
    clear_credential(destination=pipe.destinations.get())
    set_credential(destination=pipe.destinations.get(), credential={"value": "for-there"})
    assert browser.post(f"{url}?from=1", back | {"based_on": "3"}).status_code == 422


def test_delivery_settings_require_the_credential(pipe: Pipe, alice: User):
    browser = Client()
    browser.force_login(alice)
    url = reverse("console:delivery", args=[pipe.id, "crm"])
    typed = {
        "based_on": "1", "action": "save", "url": THERE, "timeout_s": "15", "local_tries": "3", "span": "24 h",
        "concurrency": "64", "after_dead": "go-on", "auth": "bearer",
    }  # fmt: skip
    asked = browser.post(url, typed)
    assert asked.status_code == 422
    assert "Enter these credentials again" in asked.content.decode()
    assert THERE in asked.content.decode()
    assert browser.post(url, typed | {"credential.crm-value": "for-there"}).status_code == 302
    assert SECRET not in asked.content.decode()


def test_copy_of_a_pipe_has_no_credential(pipe: Pipe, alice: User, settings: Settings):
    copy = create_pipe(tenant=pipe.tenant, name="copy", spec=pipe.revisions.get().spec, author=alice)
    assert lanes_secrets(copy, settings).locked == "credential-missing"
    with pytest.raises(ValueError, match="another row or field"):
        decrypt(pipe.destinations.get().credential, f"{copy.id}/crm/credential")


# -- credentials of earlier releases


def test_credential_of_an_earlier_release_is_bound_to_its_destinations_endpoint(pipe: Pipe, settings: Settings):
    before = encrypt(json.dumps({"value": SECRET}), f"{pipe.id}/crm/credential")
    migration = import_module("mgmt.migrations.0032_credentials_by_endpoint")
    assert migration.endpoint_of(pipe.destinations.get().config) == "https://crm.example.com:443"
    Destination.objects.filter(pipe=pipe).update(credentials=[["https://crm.example.com:443", before]])
    assert lanes_secrets(pipe, settings).headers == (f"Authorization: Bearer {SECRET}",)
    with pytest.raises(CredentialNeededError):
        publish(pipe, spec(THERE))
