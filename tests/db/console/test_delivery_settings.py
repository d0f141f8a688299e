"""Delivery settings of a destination: the form becomes a revision, and each error is shown at its field."""

import html
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from dataplane.spec import RetryPolicy
from mgmt.models import DestinationHealth, Pipe, Tenant, User
from mgmt.services import close_pipe, publish_revision
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def typed(**changes: Any) -> dict[str, Any]:
    """Return the submitted form of a destination with the settings of a new pipe."""
    return {
        "based_on": "1",
        "action": "save",
        "url": "https://crm.example.com/in",
        "timeout_s": "15.0",
        "local_tries": "3",
        "span": "24 h",
        "concurrency": "64",
        "rate_per_s": "",
        "after_dead": "go-on",
        "batch": "",
        "auth": "none",
        **changes,
    }


def errors_of(page: str) -> list[str]:
    return [html.unescape(text) for text in re.findall(r'class="field-error"[^>]*>([^<]*)<', page)]


@pytest.fixture
def alices(browser_of: BrowserOf, alice: User, tenant: Tenant) -> Client:
    return browser_of(alice)


@pytest.fixture
def url(pipe: Pipe) -> str:
    return reverse("console:delivery", args=[pipe.id, "crm"])


def newest(pipe: Pipe) -> dict[str, Any]:
    found: dict[str, Any] = pipe.revisions.latest("number").spec["destinations"]["crm"]
    return found


def test_unchanged_form_leaves_the_spec_unchanged(alices: Client, pipe: Pipe, url: str):
    before = newest(pipe)
    assert 'value="1 d"' in alices.get(url).content.decode()
    assert alices.post(url, typed()).status_code == 302
    assert pipe.revisions.count() == 2
    assert newest(pipe) == before


def test_order_is_refused_at_its_field_for_bulk_execution(
    alices: Client, pipe: Pipe, url: str, alice: User, a_spec: MakeSpec
):
    publish_revision(pipe=pipe, spec=a_spec() | {"execution": "bulk"}, based_on=1, author=alice)
    answer = alices.post(url, typed(based_on="2", ordered="on"))
    assert answer.status_code == 422
    (error,) = [text for text in errors_of(answer.content.decode()) if text]
    assert error.startswith("This pipe has bulk execution, which does not keep the order of a key.")
    assert alices.post(url, typed(based_on="2", timeout_s="5")).status_code == 302
    assert pipe.revisions.get(number=3).spec["execution"] == "bulk"


def test_every_field_reaches_the_spec(alices: Client, pipe: Pipe, url: str):
    answer = alices.post(
        url,
        typed(
            timeout_s="5",
            local_tries="2",
            span="3 d",
            concurrency="8",
            rate_per_s="20",
            ordered="on",
            after_dead="hold",
            batch="ndjson",
            max_events="50",
            max_bytes="",
            max_wait_ms="200",
            auth="oauth2",
            token_url="https://login.example.com/token",
            client_id="penstock",
            scope="events",
            rule_status=["408", "", "200"],
            rule_body=["", "", "error"],
            rule_then=["retry", "dead", "dead"],
            header_key=["X-Tenant", ""],
            header_value=["acme", ""],
        ),
    )
    assert answer.status_code == 302
    config = newest(pipe)
    assert (config["timeout_s"], config["concurrency"], config["rate_per_s"]) == (5.0, 8, 20.0)
    waits = list(RetryPolicy().delays_s)
    assert config["retry"] == {"local_tries": 2, "span_s": 259_200, "delays_s": waits}, "fields outside the form stay"
    assert (config["ordered"], config["after_dead"]) == (True, "hold")
    assert config["batch"] == {"format": "ndjson", "max_events": 50, "max_bytes": 262_144, "max_wait_ms": 200}
    assert config["auth"]["token_url"] == "https://login.example.com/token"
    assert [(rule["when"], rule["then"]) for rule in config["rules"]] == [
        ({"status": "408", "body": None}, "retry"),
        ({"status": "200", "body": "error"}, "dead"),
    ]
    assert config["headers"] == {"X-Tenant": "acme"}
    page = alices.get(url).content.decode()
    assert 'value="3 d"' in page
    assert 'value="https://login.example.com/token"' in page


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"url": "ftp://x.example.com/"}, "needs an absolute http or https URL"),
        ({"timeout_s": "400"}, "<= 30"),
        ({"span": "soon"}, "needs a number with s, min, h or d"),
        ({"span": "30 d"}, "<= 604800"),
        ({"rate_per_s": "-1"}, "> 0"),
        ({"rule_status": ["600"], "rule_body": [""], "rule_then": ["retry"]}, "when.status"),
        ({"rule_status": ["504-500"], "rule_body": [""], "rule_then": ["retry"]}, "needs the lower status first"),
        ({"header_key": ["Content-Length"], "header_value": ["3"]}, "which Penstock sets"),
        ({"auth": "header", "header_name": "Host"}, "which Penstock sets"),
        ({"auth": "oauth2", "token_url": "https://a.example.com/\\", "client_id": "x"}, "must not contain"),
        ({"auth": "oauth2", "token_url": "https://a.example.com/"}, "must not be empty"),
        ({"batch": "ndjson", "max_events": "0"}, ">= 1"),
    ],
)
def test_error_is_shown_at_its_field_and_nothing_is_published(
    alices: Client, pipe: Pipe, url: str, changes: dict[str, Any], words: str
):
    answer = alices.post(url, typed(**changes))
    assert answer.status_code == 422
    assert any(words in error for error in errors_of(answer.content.decode())), errors_of(answer.content.decode())
    assert pipe.revisions.count() == 1


@pytest.mark.parametrize(
    ("state", "health", "at_once"),
    [
        pytest.param("active", {}, False, id="healthy"),
        pytest.param("active", {"failing_since": NOW}, True, id="failing"),
        pytest.param("active", {"delayed_since": NOW}, True, id="delayed"),
        pytest.param("suspended", {}, True, id="suspended"),
    ],
)
def test_settings_of_an_unhealthy_destination_take_all_keys_at_once(
    alices: Client, pipe: Pipe, url: str, state: str, health: dict[str, Any], at_once: bool
):
    row = pipe.destinations.get()
    DestinationHealth.objects.create(destination=row, checked_at=NOW, **health)
    pipe.destinations.update(state=state)
    assert ("applies to all keys at once" in alices.get(url).content.decode()) == at_once
    assert alices.post(url, typed(concurrency="8")).status_code == 302
    assert pipe.revisions.latest("number").at_once == at_once


def test_rows_are_added_and_removed_with_and_without_htmx(alices: Client, pipe: Pipe, url: str):
    page = alices.post(url, typed(action="add-timeouts", span="2 d")).content.decode()
    assert page.count('name="rule_status"') == 2
    assert 'value="2 d"' in page
    rules = {"rule_status": ["408", "425"], "rule_body": ["", ""], "rule_then": ["retry", "retry"]}
    again = alices.post(url, typed(action="add-timeouts", **rules), headers=HTMX).content.decode()
    assert "<html" not in again
    assert again.count('name="rule_status"') == 2
    fragment = alices.post(url, typed(action="drop-rule-0", **rules), headers=HTMX).content.decode()
    assert 'value="425"' in fragment
    assert 'value="408"' not in fragment
    fragment = alices.post(url, typed(action="add-header"), headers=HTMX).content.decode()
    assert fragment.count('name="header_key"') == 1
    assert pipe.revisions.count() == 1


def test_concurrent_edit_conflicts_and_keeps_input(alices: Client, pipe: Pipe, alice: User, a_spec: MakeSpec, url: str):
    publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=alice)
    answer = alices.post(url, typed(span="2 d"))
    page = answer.content.decode()
    assert answer.status_code == 409
    assert 'value="2 d"' in page
    assert 'name="based_on" value="2"' in page
    assert pipe.revisions.count() == 2


def test_closed_pipe_refuses_settings(alices: Client, pipe: Pipe, url: str):
    close_pipe(pipe=pipe)
    assert alices.post(url, typed()).status_code == 409


def test_viewer_reads_the_destination_and_not_its_form(
    browser_of: BrowserOf, viewer: User, charlie: User, pipe: Pipe, url: str
):
    page = reverse("console:destination", args=[pipe.id, "crm"])
    vera = browser_of(viewer)
    assert vera.get(url).status_code == 403
    assert url not in vera.get(page).content.decode()
    assert [browser_of(charlie).get(one).status_code for one in (url, page)] == [404, 404]


def test_request_template_is_saved_shown_and_refused_at_its_field(alices: Client, pipe: Pipe, url: str):
    headers = {"header_key": ["X-Id", "X-Same"], "header_value": ["${body.id}", "x"]}
    template = {"template_path": "/c/${body.id}", "template_body": '{"n": body.id}', **headers}
    assert alices.post(url, typed(**template)).status_code == 302
    saved = newest(pipe)
    assert saved["headers"] == {"X-Same": "x"}
    assert saved["template"] == {
        "path": "/c/${body.id}",
        "headers": {"X-Id": "${body.id}"},
        "body": '{"n": body.id}',
    }
    shown = html.unescape(alices.get(url).content.decode())
    for text in ("/c/${body.id}", '{"n": body.id}', 'value="${body.id}"'):
        assert text in shown
    for wrong, said in (("c/${body.id}", "begins with /"), ("/${body.}", "column")):
        page = alices.post(url, typed(based_on="2", template_path=wrong)).content.decode()
        assert said in errors_of(page)[0]
