"""Test requests: the stored row, the refusals, and no secret in the row."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from dataplane.spec import SpecError
from mgmt.deliveries.services.destinations import change_destination_state
from mgmt.delivery_tests.services import MOST_A_MINUTE, request_destination_test, request_draft_test
from mgmt.models import Destination, DestinationTest, Membership, Pipe, Tenant, User
from mgmt.pipes.services.revisions import take_over
from mgmt.pipes.spec_check import DestinationForbidden
from mgmt.services import (
    DestinationRemovedError,
    NothingToSendError,
    TooManyTestsError,
    add_member,
    publish_revision,
    set_credential,
)
from mgmt.web import access
from tests.db.cast import MakeClient

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
SPEC: dict[str, Any] = {
    "sources": {"shop": {}},
    "normalize": [{"op": "rename", "path": "total", "to": "amount"}],
    "routes": {"rules": [{"when": "body.amount > 100", "to": ["crm"]}], "otherwise": ["lake"]},
    "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}, "lake": {"type": "lake"}},
}


def ask(tenant: Tenant, by: User, event: bytes = b'{"total": 150}', **changed: Any) -> DestinationTest:
    wanted: dict[str, Any] = {"spec": SPEC, "destination": "crm", "now": NOW} | changed
    return request_draft_test(tenant=tenant, by=by, event=event, **wanted)


def test_request_for_the_event_is_stored_without_signature(tenant: Tenant, alice: User):
    row = ask(tenant, alice)
    assert (row.state, row.url, row.body) == ("asked", "https://crm.example.com/in", '{"amount":150}')
    assert row.headers == ["User-Agent: Penstock/1", "penstock-hops: 1", "Content-Type: application/json"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"event": b'{"total": 5}'}, "does not reach crm"),
        ({"event": b'{"total": 5}', "destination": "lake"}, "stored by Penstock itself"),
    ],
)
def test_event_that_yields_no_request_is_refused(tenant: Tenant, alice: User, changed: dict[str, Any], words: str):
    with pytest.raises(NothingToSendError, match=words):
        ask(tenant, alice, **changed)


@pytest.mark.parametrize("event", [b'"' + b"x" * 300_000 + b'"', b'{"total": 150, "note": "\x00"}'])
def test_event_that_is_too_large_or_cannot_be_stored_is_refused(pipe: Pipe, alice: User, event: bytes):
    with pytest.raises(SpecError, match="event"):
        request_destination_test(destination=pipe.destinations.get(), event=event, by=alice, now=NOW)
    assert not DestinationTest.objects.exists()


def test_destination_missing_from_the_spec_is_refused(tenant: Tenant, alice: User):
    with pytest.raises(SpecError, match="needs a destination of the spec"):
        ask(tenant, alice, destination="nobody")


def test_forbidden_address_is_refused_before_a_test_request_is_stored(tenant: Tenant, alice: User, settings: Settings):
    settings.PENSTOCK_DESTINATION_ALLOW = ""
    inside = SPEC | {"destinations": {**SPEC["destinations"], "crm": {"type": "http", "url": "http://10.0.0.1/"}}}
    with pytest.raises(DestinationForbidden):
        ask(tenant, alice, spec=inside)
    assert not DestinationTest.objects.exists()


def test_test_requests_are_limited_per_minute_for_each_tenant_separately(tenant: Tenant, alice: User, charlie: User):
    for _ in range(MOST_A_MINUTE):
        ask(tenant, alice)
    with pytest.raises(TooManyTestsError, match="Wait a minute"):
        ask(tenant, alice)
    ask(access.tenants_of(charlie).get(), charlie)
    ask(tenant, alice, now=NOW + timedelta(seconds=61))


def test_saved_destination_gets_the_event_unchanged_and_its_secrets_are_not_in_the_row(
    pipe: Pipe, alice: User, a_spec: Any
):
    auth = {"type": "http", "url": "https://crm.example.com/in", "auth": {"type": "header", "name": "X-Api-Key"}}
    publish_revision(pipe=pipe, spec=a_spec() | {"destinations": {"crm": auth}}, based_on=1, author=alice)
    take_over(pipe.id, {"crm": auth})
    destination = pipe.destinations.get()
    set_credential(destination=destination, credential={"value": "s3cret-value"})
    row = request_destination_test(destination=destination, event=b'{"total": 5}', by=alice, now=NOW)
    assert (row.pipe, row.body) == (pipe, '{"total": 5}')
    assert "s3cret" not in str(DestinationTest.objects.filter(id=row.id).values())
    assert not [line for line in row.headers if line.lower().startswith(("x-api-key", "webhook-"))]


def test_removed_destination_gets_no_test_request(pipe: Pipe, alice: User):
    destination = pipe.destinations.get()
    change_destination_state(row=destination, was=["active"], becomes=Destination.State.REMOVED)
    with pytest.raises(DestinationRemovedError):
        request_destination_test(destination=destination, event=b"{}", by=alice, now=NOW)


def test_test_request_of_another_tenant_is_not_found(tenant: Tenant, alice: User, bob: User, charlie: User):
    row = ask(tenant, alice)
    assert access.get_destination_test(bob, row.id) == row
    with pytest.raises(DestinationTest.DoesNotExist):
        access.get_destination_test(charlie, row.id)


def test_api_creates_and_returns_a_test_request(tenant: Tenant, bob: User, client_of: MakeClient):
    client = client_of(bob)
    asked = client.post("/api/v1/destination-tests/", {"spec": SPEC, "destination": "crm", "event": {"total": 150}})
    assert (asked.status_code, asked.json()["state"]) == (202, "asked")
    told = client.get(asked["Location"]).json()
    assert (told["url"], told["body"], told["pipe"]) == ("https://crm.example.com/in", '{"amount":150}', None)


def test_api_creates_a_test_request_for_a_saved_destination(pipe: Pipe, bob: User, client_of: MakeClient):
    asked = client_of(bob).post("/api/v1/destination-tests/", {"pipe": pipe.id, "destination": "crm"})
    assert (asked.status_code, asked.json()["pipe"]) == (202, pipe.id)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"destination": "crm"}, 400, "invalid"),
        ({"destination": "nobody", "spec": SPEC}, 400, "invalid"),
        ({"destination": "crm", "spec": SPEC, "event": {"total": 5}}, 409, "nothing-to-send"),
        ({"destination": "crm", "spec": {"sources": {}}}, 422, "spec-invalid"),
    ],
)
def test_api_refuses_with_a_status_and_a_code(
    tenant: Tenant, bob: User, client_of: MakeClient, body: dict[str, Any], status: int, code: str
):
    answer = client_of(bob).post("/api/v1/destination-tests/", body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_too_many_test_requests_are_a_429_with_retry_after(tenant: Tenant, bob: User, client_of: MakeClient):
    client = client_of(bob)
    wanted = {"spec": SPEC, "destination": "crm", "event": {"total": 150}}
    answers = [client.post("/api/v1/destination-tests/", wanted) for _ in range(MOST_A_MINUTE + 1)]
    assert (answers[-1].status_code, answers[-1].json()["code"], answers[-1]["Retry-After"]) == (
        429,
        "too-many-tests",
        "60",
    )


def test_other_tenant_finds_neither_the_test_request_nor_the_pipe(
    pipe: Pipe, alice: User, charlie: User, client_of: MakeClient
):
    row = ask(pipe.tenant, alice)
    client = client_of(charlie)
    assert client.get(f"/api/v1/destination-tests/{row.id}/").status_code == 404
    answer = client.post("/api/v1/destination-tests/", {"pipe": pipe.id, "destination": "crm"})
    assert answer.status_code == 404


def test_viewer_reads_and_cannot_send(pipe: Pipe, alice: User, client_of: MakeClient):
    vera = User.objects.create_user("vera")
    add_member(tenant=pipe.tenant, user=vera, role=Membership.Role.VIEWER)
    client, row = client_of(vera), ask(pipe.tenant, alice)
    assert client.get(f"/api/v1/destination-tests/{row.id}/").status_code == 200
    for wanted in ({"pipe": pipe.id}, {"spec": SPEC, "event": {"total": 150}}):
        answer = client.post("/api/v1/destination-tests/", {"destination": "crm"} | wanted)
        assert (answer.status_code, answer.json()["code"]) == (403, "role-too-low")


def test_unauthenticated_request_is_401(client: Client):
    assert client.post("/api/v1/destination-tests/", {}).status_code == 401
    assert client.get("/api/v1/destination-tests/test_00000000000000000000/").status_code == 401
