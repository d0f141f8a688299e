"""Asking for a test request: what is stored, what is refused, and that no secret lies in the row."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from dataplane.spec import SpecError
from mgmt import access
from mgmt.models import Destination, DestinationTest, Pipe, Tenant, User
from mgmt.services import (
    DestinationGone,
    NothingToSend,
    TooManyTests,
    ask_test_of_destination,
    ask_test_of_draft,
    publish_revision,
    set_credential,
)
from mgmt.services.destinations import move_destination
from mgmt.services.reach import DestinationForbidden
from mgmt.services.revisions import take_over
from mgmt.services.trials import MOST_A_MINUTE

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
SPEC: dict[str, Any] = {
    "sources": {"shop": {}},
    "normalize": [{"op": "rename", "path": "total", "to": "amount"}],
    "routes": {"rules": [{"when": "body.amount > 100", "to": ["crm"]}], "otherwise": ["lake"]},
    "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}, "lake": {"type": "lake"}},
}


def ask(tenant: Tenant, by: User, event: bytes = b'{"total": 150}', **changed: Any) -> DestinationTest:
    wanted = {"spec": SPEC, "destination": "crm", "now": NOW} | changed
    return ask_test_of_draft(tenant=tenant, by=by, event=event, **wanted)


def test_what_would_be_sent_for_the_event_is_stored_without_signature(tenant: Tenant, alice: User):
    row = ask(tenant, alice)
    assert (row.state, row.url, row.body) == ("asked", "https://crm.example.com/in", '{"amount":150}')
    assert row.headers == ["User-Agent: Penstock/1", "Content-Type: application/json"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"event": b'{"total": 5}'}, "does not come to crm"),
        ({"event": b'{"total": 5}', "destination": "lake"}, "kept by Penstock itself"),
    ],
)
def test_an_event_that_makes_no_request_is_refused(tenant: Tenant, alice: User, changed: dict[str, Any], words: str):
    with pytest.raises(NothingToSend, match=words):
        ask(tenant, alice, **changed)


def test_a_destination_that_the_spec_has_not_is_refused(tenant: Tenant, alice: User):
    with pytest.raises(SpecError, match="needs a destination of the spec"):
        ask(tenant, alice, destination="nobody")


def test_a_forbidden_address_is_refused_before_anything_is_asked(tenant: Tenant, alice: User, settings: Settings):
    settings.PENSTOCK_DESTINATION_ALLOW = ""
    inside = SPEC | {"destinations": {**SPEC["destinations"], "crm": {"type": "http", "url": "http://10.0.0.1/"}}}
    with pytest.raises(DestinationForbidden):
        ask(tenant, alice, spec=inside)
    assert not DestinationTest.objects.exists()


def test_a_tenant_sends_so_many_a_minute_and_another_is_not_kept_from_its_own(
    tenant: Tenant, alice: User, charlie: User
):
    for _ in range(MOST_A_MINUTE):
        ask(tenant, alice)
    with pytest.raises(TooManyTests, match="Wait a minute"):
        ask(tenant, alice)
    ask(access.tenants_of(charlie).get(), charlie)
    ask(tenant, alice, now=NOW + timedelta(seconds=61))


def test_a_saved_destination_is_sent_the_body_as_it_is_and_its_secrets_stay_out_of_the_row(
    pipe: Pipe, alice: User, a_spec: Any
):
    auth = {"type": "http", "url": "https://crm.example.com/in", "auth": {"type": "header", "name": "X-Api-Key"}}
    publish_revision(pipe=pipe, spec=a_spec() | {"destinations": {"crm": auth}}, based_on=1, author=alice)
    take_over(pipe.id, {"crm": auth})
    destination = pipe.destinations.get()
    set_credential(destination=destination, credential={"value": "s3cret-value"})
    row = ask_test_of_destination(destination=destination, event=b'{"total": 5}', by=alice, now=NOW)
    assert (row.pipe, row.body) == (pipe, '{"total": 5}')
    assert "s3cret" not in str(DestinationTest.objects.filter(id=row.id).values())
    assert not [line for line in row.headers if line.lower().startswith(("x-api-key", "webhook-"))]


def test_a_destination_that_was_removed_is_not_tried(pipe: Pipe, alice: User):
    destination = pipe.destinations.get()
    move_destination(row=destination, was=["active"], becomes=Destination.State.REMOVED)
    with pytest.raises(DestinationGone):
        ask_test_of_destination(destination=destination, event=b"{}", by=alice, now=NOW)


def test_another_tenants_test_request_is_not_found(tenant: Tenant, alice: User, bob: User, charlie: User):
    row = ask(tenant, alice)
    assert access.get_destination_test(bob, row.id) == row
    with pytest.raises(DestinationTest.DoesNotExist):
        access.get_destination_test(charlie, row.id)
