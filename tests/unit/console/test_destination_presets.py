"""Presets of destinations: each request equals the example that its provider documents; the form keeps all of it."""

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from dataplane.plan import compile_plan
from dataplane.plan.dryrun import OutboundRequest, SampleEvent, dry_run
from dataplane.spec import HttpDestination, parse_pipe_spec, spec_to_builtins
from dataplane.transmit.policy.delivery_verdict import judge
from dataplane.transmit.policy.rules import compile_rules
from localbox.settings import ROOT
from mgmt.pipes.destination_presets import PRESETS, DestinationPreset, preset_named
from mgmt.pipes.editor.actions import with_preset
from mgmt.pipes.editor.destination_row import DestinationRow, kept_fields
from mgmt.pipes.editor.draft import Draft, draft_from_spec, fits_form
from mgmt.pipes.editor.errors import with_error
from mgmt.pipes.editor.fields import destination_rows
from mgmt.pipes.presets_reference import as_yaml, page

AT_US = 1_437_122_578_000_000  # 2015-07-17T08:42:58Z
NAMES = [preset.name for preset in PRESETS]


def preset_of(name: str) -> DestinationPreset:
    found = preset_named(name)
    assert found is not None
    return found


def document(name: str) -> dict[str, Any]:
    return {"version": 1, "sources": {"web": {"type": "http"}}, "destinations": {name: dict(preset_of(name).document)}}


def http_of(name: str) -> HttpDestination:
    to = parse_pipe_spec(document(name)).destinations[name]
    assert isinstance(to, HttpDestination)
    return to


def request(name: str, event: Any) -> OutboundRequest:
    spec = parse_pipe_spec(document(name))
    body = json.dumps(event).encode()
    (sent,) = dry_run(
        spec, compile_plan(spec), SampleEvent(body, "web", "m-1", AT_US, AT_US, "p-1"), lambda: 0
    ).requests
    assert (sent.cause, sent.note) == ("", "")
    return sent


def header(sent: OutboundRequest, name: str) -> list[str]:
    return [line.partition(": ")[2] for line in sent.headers if line.lower().startswith(f"{name.lower()}: ")]


def test_request_to_pagerduty_equals_its_documented_example():
    """developer.pagerduty.com, "Send an Alert Event", without the optional fields."""
    event = {
        "summary": "Example alert on host1.example.com",
        "source": "monitoringtool:cloudvendor:central-region-dc-01:852559987:cluster/api-stats-prod-003",
        "severity": "info",
    }
    sent = request("pagerduty", event)
    assert (sent.method, sent.url) == ("POST", "https://events.pagerduty.com/v2/enqueue")
    assert header(sent, "content-type") == ["application/json"]
    assert json.loads(sent.body) == {
        "payload": event | {"timestamp": "2015-07-17T08:42:58Z", "custom_details": event},
        "routing_key": "YOUR-INTEGRATION-KEY",
        "dedup_key": "m-1",
        "event_action": "trigger",
    }


def alert(event: str, name: object = "alert_1") -> dict[str, Any]:
    """Return an operational event, as docs/operational-events.md describes it."""
    return {"id": f"evt_{event}", "type": f"penstock.alert.{event}", "data": {"alert": name, "cause": "server-error"}}


@pytest.mark.parametrize(
    ("event", "action", "key"),
    [
        (alert("opened"), "trigger", "alert_1"),
        (alert("resolved"), "resolve", "alert_1"),
        (alert("resolved", "alert_2"), "resolve", "alert_2"),
        ({"type": "penstock.destination.suspended", "data": {"alert": "alert_1"}}, "trigger", "m-1"),
        ({"type": "order.resolved", "data": {"alert": "alert_1"}}, "trigger", "m-1"),
        ({"type": "penstock.alert.resolved"}, "trigger", "m-1"),
        ({"type": "penstock.alert.resolved", "data": {}}, "trigger", "m-1"),
        ({"type": 7, "data": {"alert": 7}}, "trigger", "m-1"),
        ({"type": "order.created", "data": "text"}, "trigger", "m-1"),
        ({"type": None, "data": None}, "trigger", "m-1"),
    ],
)
def test_pagerduty_resolves_the_incident_of_an_alert_that_is_resolved(event: Any, action: str, key: str):
    """developer.pagerduty.com: `resolve` ends the incident that was opened with the same dedup key."""
    body = json.loads(request("pagerduty", event).body)
    assert (body["event_action"], body["dedup_key"]) == (action, key)


def test_request_to_slack_equals_its_documented_example():
    """docs.slack.dev, "Sending messages using incoming webhooks"."""
    sent = request("slack", {"text": "Hello, world."})
    assert (sent.method, header(sent, "content-type")) == ("POST", ["application/json"])
    assert sent.url == "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"
    assert json.loads(sent.body) == {"text": "Hello, world."}


def test_request_to_datadog_has_the_fields_of_its_documented_example():
    """docs.datadoghq.com, "Send logs", v2: an array of logs, and the key in a header."""
    event = {"hostname": "i-012345678", "service": "payment", "message": "INFO [process.name][20081] Hello World"}
    sent = request("datadog-logs", event)
    assert (sent.method, sent.url) == ("POST", "https://http-intake.logs.datadoghq.com/api/v2/logs")
    assert (header(sent, "dd-api-key"), header(sent, "content-type")) == (["(secret)"], ["application/json"])
    assert json.loads(sent.body) == [event | {"ddsource": "penstock", "ddtags": "pipe:p-1", "event": event}]


def test_request_to_splunk_has_the_keys_of_its_documented_format():
    """help.splunk.com, "Format events for HTTP Event Collector": the time in seconds, and the event under `event`."""
    sent = request("splunk-hec", {"host": "webserver01", "level": "error"})
    assert (sent.method, sent.url) == ("POST", "https://splunk.example.com:8088/services/collector/event")
    assert header(sent, "authorization") == ["(secret)"]
    assert json.loads(sent.body) == {
        "time": AT_US // 1_000_000,
        "host": "webserver01",
        "source": "web",
        "sourcetype": "_json",
        "event": {"host": "webserver01", "level": "error"},
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("event", [{}, {"message": None, "text": None}, {"text": 7, "summary": True, "host": 1.5}])
def test_any_object_is_sent_with_what_the_api_requires(name: str, event: Any):
    body = json.loads(request(name, event).body)
    fields = body[0] if isinstance(body, list) else body
    payload = fields.get("payload", fields)
    needed = {"pagerduty": "summary", "slack": "text", "datadog-logs": "message", "splunk-hec": "event"}[name]
    assert payload[needed] == event if needed == "event" else isinstance(payload[needed], str)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pagerduty", {202: "delivered", 400: "dead", 429: "recoverable", 500: "recoverable"}),
        ("slack", {200: "delivered", 400: "dead", 404: "dead", 410: "gone", 429: "recoverable", 500: "recoverable"}),
        (
            "datadog-logs",
            {202: "delivered", 400: "dead", 401: "recoverable", 403: "recoverable", 408: "recoverable", 413: "dead",
             429: "recoverable", 503: "recoverable"},
        ),
        ("splunk-hec", {200: "delivered", 400: "dead", 401: "recoverable", 403: "recoverable", 503: "recoverable"}),
    ],
)  # fmt: skip
def test_answers_are_retried_as_the_provider_documents(name: str, expected: dict[int, str]):
    rules = compile_rules(http_of(name).rules)
    assert {status: str(judge(status, 0, rules=rules).outcome) for status in expected} == expected


@pytest.mark.parametrize("name", NAMES)
def test_editor_keeps_every_field_of_a_preset(name: str):
    assert fits_form(document(name))
    preset = preset_of(name)
    draft = with_preset(Draft(), preset)
    (row,) = draft.destinations
    assert row.name == name
    assert row.missing == (["url"] if preset.url_is_own else [])
    whole = replace(draft, destinations=(replace(row, url=str(preset.document["url"])),))
    assert parse_pipe_spec(whole.document()).destinations[name] == http_of(name)


def test_reference_page_is_current_and_its_yaml_is_the_preset():
    assert page() == (ROOT / "docs" / "reference" / "destination-presets.md").read_text()
    for preset in PRESETS:
        assert yaml.safe_load(as_yaml(preset)) == {"destinations": {preset.name: preset.document}}


def test_preset_is_added_to_other_destinations_under_a_free_name():
    spec = {
        "version": 1,
        "sources": {"web": {}},
        "destinations": {"slack": {"type": "http", "url": "https://a.example/"}},
    }
    draft = with_preset(with_preset(draft_from_spec("p", spec), preset_of("slack")), preset_of("pagerduty"))
    assert [row.name for row in draft.destinations] == ["slack", "slack-2", "pagerduty"]
    assert draft.document()["destinations"]["slack"]["url"] == "https://a.example/"
    typed = Draft(destinations=(DestinationRow("main", url="https://a.example/"),))
    assert [row.name for row in with_preset(typed, preset_of("slack")).destinations] == ["main", "slack"]


def test_form_shows_the_body_and_names_what_it_does_not_show():
    draft = with_preset(Draft(), preset_of("datadog-logs"))
    (row,) = destination_rows(draft)
    body = next(field for field in row.fields if field.name == "destination.body")
    assert (body.kind, body.value) == ("expression", preset_of("datadog-logs").document["template"]["body"])
    assert row.note == "Also set: authentication (header DD-API-KEY), rules for responses. Edit as JSON to change."
    assert kept_fields(DestinationRow("main"), {}) == []
    plain: dict[str, Any] = {"sources": {"web": {}}, "destinations": {"crm": {"url": "https://a.example/"}}}
    stored = json.loads(json.dumps(spec_to_builtins(parse_pipe_spec(plain))))
    assert destination_rows(draft_from_spec("p", stored))[0].note == "", "defaults are not mentioned"
    wrong = with_error(draft, "$.destinations.datadog-logs.template.body", "line 1, column 1: needs an expression")
    assert list(wrong.errors) == ["destination-0-body"]


def test_changed_body_is_written_and_an_emptied_one_is_left_out():
    draft = with_preset(Draft(), preset_of("pagerduty"))
    (row,) = draft.destinations
    changed = replace(draft, destinations=(replace(row, body="body.alert"),)).document()["destinations"]["pagerduty"]
    assert changed["template"] == {"body": "body.alert"}
    emptied = replace(draft, destinations=(replace(row, body=""),)).document()["destinations"]["pagerduty"]
    assert "template" not in emptied
    plain: dict[str, Any] = {"path": "/x", "headers": {}, "body": None}
    spec = document("pagerduty")
    spec["destinations"]["pagerduty"]["template"] = plain
    assert fits_form(spec)
    assert draft_from_spec("p", spec).document()["destinations"]["pagerduty"]["template"] == plain


def test_empty_fields_of_a_stored_destination_stay_as_they_are():
    spec = document("slack")
    spec["destinations"]["slack"] |= {"forward_headers": [], "original_body": False}
    assert fits_form(spec), "an absent field is another spec"
    found = draft_from_spec("p", spec).document()["destinations"]["slack"]
    assert (found["forward_headers"], found["original_body"]) == ([], False)
