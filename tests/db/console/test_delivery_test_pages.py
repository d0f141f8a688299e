"""Templates, the echo and test requests in the console: buttons and links also work without JavaScript."""

import html
import re
from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from mgmt.delivery_tests.services import MOST_A_MINUTE
from mgmt.models import DestinationTest, Pipe, Tenant, User
from mgmt.pipes.editor.templates import STARTS, PipeTemplate
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
NEW = "/pipes/new/"
FORM: dict[str, Any] = {
    "mode": "form",
    "name": "orders",
    "source.name": "web",
    "routes": "everything",
    "destination.name": ["main"],
    "destination.kind": ["http"],
    "destination.url": ["https://main.example.com/in"],
    "sample": '{"total": 150}',
}


def press(browser: Client, action: str, changed: Mapping[str, Any] | None = None) -> str:
    return browser.post(NEW, FORM | {"action": action} | dict(changed or {})).content.decode()


def error_of(page: str, field: str) -> str:
    return html.unescape(re.findall(rf'id="{field}-error"[^>]*>([^<]*)<', page)[0])


@pytest.mark.parametrize("start", STARTS, ids=[start.name for start in STARTS])
def test_template_fills_in_the_editor_through_a_plain_link(alices: Client, tenant: Tenant, start: PipeTemplate):
    assert f'href="{NEW}?start={start.name}"' in alices.get(NEW).content.decode()
    page = alices.get(NEW, {"start": start.name}).content.decode()
    assert f'value="{start.pipe}"' in page
    assert all(f'value="{name}"' in page for name in start.document["destinations"])
    requests = len(start.document["destinations"])
    assert f"{requests} request{'s' if requests > 1 else ''} would be sent" in page


def test_unknown_template_gives_a_blank_editor(alices: Client, tenant: Tenant):
    blank, unknown = (alices.get(NEW, query).content.decode() for query in ({}, {"start": "nothing"}))
    assert "ord-4711" in unknown
    assert re.findall(r'name="destination.name"[^>]*value="([^"]*)"', unknown) == ["main"]
    assert 'aria-current="true"' in blank


def test_destination_without_an_endpoint_is_filled_in_with_the_echo(alices: Client, tenant: Tenant, settings: Settings):
    settings.PENSTOCK_ECHO_URL = "https://penstock.example.com/echo/"
    page = press(alices, "echo.destination.0", {"destination.url": [""]})
    assert 'value="https://penstock.example.com/echo/"' in page
    assert "Use echo endpoint" not in page, "the URL is filled in already"


def test_unreachable_echo_is_not_offered(alices: Client, tenant: Tenant, settings: Settings):
    settings.PENSTOCK_ECHO_URL = ""
    assert "echo endpoint" not in press(alices, "echo.destination.0", {"destination.url": [""]})


def test_test_request_is_queued_and_awaited_at_its_destination(alices: Client, tenant: Tenant, alice: User):
    page = press(alices, "test.destination.0")
    row = DestinationTest.objects.get()
    assert (row.url, row.body, row.by, row.pipe) == ("https://main.example.com/in", '{"total": 150}', alice, None)
    assert f'hx-get="/tests/{row.id}/?part=answer"' in page
    assert f'name="destination.test" value="{row.id}"' in page
    later = press(alices, "redraw", {"destination.test": [row.id]})
    assert f'id="{row.id}"' in later, "the test request stays in place when the form is rendered again"


def test_test_request_requires_a_url(alices: Client, tenant: Tenant):
    page = press(alices, "test.destination.0", {"destination.url": [""]})
    assert error_of(page, "destination-0-url") == "Enter a URL that begins with https:// or http://"
    assert not DestinationTest.objects.exists()


def test_forbidden_address_is_refused_at_its_field(alices: Client, tenant: Tenant, settings: Settings):
    settings.PENSTOCK_DESTINATION_ALLOW = ""
    page = press(alices, "test.destination.0", {"destination.url": ["http://10.0.0.1/in"]})
    assert error_of(page, "destination-0-url") == "Enter a public address"


def test_too_many_test_requests_are_refused_with_a_message(alices: Client, tenant: Tenant):
    for _ in range(MOST_A_MINUTE):
        press(alices, "test.destination.0")
    page = press(alices, "test.destination.0")
    assert "Wait a minute" in error_of(page, "destination-0")
    assert DestinationTest.objects.count() == MOST_A_MINUTE


def test_event_that_does_not_reach_the_destination_is_reported(alices: Client, tenant: Tenant):
    never = {"routes": "first", "rule.when": "false", "rule-0.to": "0"}
    assert "does not reach main" in error_of(press(alices, "test.destination.0", never), "destination-0")


def answered(row: DestinationTest, **said: Any) -> DestinationTest:
    DestinationTest.objects.filter(id=row.id).update(state="done", total_us=31_000, **said)
    row.refresh_from_db()
    return row


@pytest.fixture
def asked(alices: Client, pipe: Pipe) -> DestinationTest:
    """Test request to the saved destination crm."""
    url = reverse("console:test_destination", args=[pipe.id, "crm"])
    answer = alices.post(url, {"body": '{"order": 1}'})
    row = DestinationTest.objects.get()
    assert answer["Location"] == f"/tests/{row.id}/"
    return row


def test_saved_destination_is_tested_from_its_page(alices: Client, asked: DestinationTest, pipe: Pipe):
    assert (asked.pipe, asked.body) == (pipe, '{"order": 1}')
    page = alices.get(reverse("console:destination", args=[pipe.id, "crm"])).content.decode()
    assert f'href="/tests/{asked.id}/"' in page


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"status": 204, "outcome": "delivered"}, ["Returned 204", "would be delivered"]),
        (
            {"status": 401, "outcome": "dead", "cause": "rejected", "reason": "rejected"},
            ["Returned 401", "this failure is final", "/help/causes/rejected/", "point to credentials"],
        ),
        (
            {"outcome": "recoverable", "cause": "timeout", "reason": "timeout: Operation timed out"},
            ["Timed out", "would be retried", "Operation timed out", "until it failed"],
        ),
        (
            {"outcome": "recoverable", "cause": "destination-forbidden", "reason": "destination-forbidden"},
            ["The address is not allowed", "/help/causes/destination-forbidden/"],
        ),
    ],
    ids=["204", "401", "timeout", "forbidden"],
)
def test_response_is_shown_with_outcome_and_remedy(
    alices: Client, asked: DestinationTest, said: dict[str, Any], words: list[str]
):
    page = alices.get(f"/tests/{answered(asked, **said).id}/").content.decode()
    assert [word for word in words if word not in page] == []


def test_response_body_is_shown_as_text(alices: Client, asked: DestinationTest):
    answered(asked, status=200, outcome="delivered", answer="<script>alert(1)</script>")
    assert "&lt;script&gt;alert(1)" in alices.get(f"/tests/{asked.id}/").content.decode()


def test_fragment_polls_until_the_response_arrives(alices: Client, asked: DestinationTest):
    url = f"/tests/{asked.id}/?part=answer"
    waiting = alices.get(url, headers=HTMX).content.decode()
    assert "hx-trigger" in waiting
    assert "<html" not in waiting
    answered(asked, status=204, outcome="delivered")
    assert "hx-trigger" not in alices.get(url, headers=HTMX).content.decode()


def test_body_is_sent_as_typed(alices: Client, pipe: Pipe):
    alices.post(reverse("console:test_destination", args=[pipe.id, "crm"]), {"body": "plain words"})
    assert DestinationTest.objects.get().body == "plain words"


def test_viewer_sees_no_button_and_is_refused(browser_of: BrowserOf, viewer: User, pipe: Pipe, asked: DestinationTest):
    browser = browser_of(viewer)
    assert "Send test request" not in browser.get(f"/pipes/{pipe.id}/destinations/crm/").content.decode()
    assert browser.post(reverse("console:test_destination", args=[pipe.id, "crm"])).status_code == 403
    assert browser.get(f"/tests/{asked.id}/").status_code == 200


def test_other_tenant_finds_no_test_request(browser_of: BrowserOf, charlie: User, asked: DestinationTest):
    assert browser_of(charlie).get(f"/tests/{asked.id}/").status_code == 404
    assert asked.id not in press(browser_of(charlie), "redraw", {"destination.test": [asked.id]}).replace(
        f'name="destination.test" value="{asked.id}"', ""
    )


def test_anonymous_user_is_redirected_to_sign_in(client: Client, asked: DestinationTest):
    assert client.get(f"/tests/{asked.id}/").status_code == 302
