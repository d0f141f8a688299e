"""Pipe forms: the input becomes a spec through the services, and each error is shown at its field."""

import html
import json
import re
import shlex

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from dataplane.schemas.types import SchemaType
from dataplane.spec.keys import key_digest
from mgmt.models import ApiKey, Pipe, PipeRevision, Tenant, User
from mgmt.pipes.editor.dry_run import dry_run_panels
from mgmt.pipes.editor.templates import STARTS, draft_of, template_named
from mgmt.pipes.execution import execution_of
from mgmt.pipes.queries.dry_run import dry_run_spec
from mgmt.registry.drafts import SchemaDraft
from mgmt.services import (
    adopt_live_spec,
    close_pipe,
    create_api_key,
    publish_revision,
    register_version,
    set_event_types,
    signing_secrets,
)
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf
from tests.db.mgmt.registry_schemas import V1

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def typed(**changes: str | list[str]) -> dict[str, str | list[str]]:
    """Return a complete form for a new pipe; `source__name` is the field source.name."""
    return {
        "mode": "form",
        "action": "save",
        "name": "payments",
        "source.name": "web",
        "source.event_time": "created_at",
        "destination.name": "crm",
        "destination.url": "https://crm.example.com/in",
        **{name.replace("__", "."): value for name, value in changes.items()},
    }


def shown_key(html: str) -> str:
    return str(re.findall(r'id="shown-key">(psk_[^<]+)<', html)[0])


def error_of(html: str, field: str) -> str:
    found = re.search(rf'id="{field}-error"[^>]*>([^<]*)<', html)
    return found[1] if found else ""


@pytest.fixture
def alices(browser_of: BrowserOf, alice: User, tenant: Tenant):
    return browser_of(alice)


def test_new_pipe_shows_endpoint_key_and_snippets_once(alices: Client, settings: Settings):
    page = alices.post("/pipes/new/", typed()).content.decode()
    key = shown_key(page)
    assert ApiKey.objects.get().digest == key_digest(key)
    assert page.count(key) == 5  # once to copy, once in each snippet
    assert f"{settings.PENSTOCK_INGEST_URL}/v1/events" in page
    pipe = Pipe.objects.get(name="payments")
    assert signing_secrets(destination=pipe.destinations.get())[0] in page
    assert f'data-settle="/pipes/{pipe.id}/"' in page
    for url in (f"/pipes/{pipe.id}/", f"/pipes/{pipe.id}/settings/"):
        assert key not in alices.get(url).content.decode()


def test_encoding_of_a_destination_is_chosen_and_its_error_is_at_its_field(alices: Client, tenant: Tenant, alice: User):
    chosen = typed(destination__format="confluent", destination__subject="orders", destination__version="1")
    page = alices.post("/pipes/new/", chosen).content.decode()
    assert error_of(page, "destination-0-subject") == "Enter a subject of your schema registry"
    assert not Pipe.objects.exists()
    draft = SchemaDraft(SchemaType.AVRO, json.dumps(V1))
    register_version(tenant=tenant, subject="orders", draft=draft, author=alice)
    page = alices.post("/pipes/new/", chosen | {"destination.version": "2"}).content.decode()
    assert error_of(page, "destination-0-version") == "Enter a registered version of orders, got 2"
    page = alices.post("/pipes/new/", chosen | {"destination.version": "first"}).content.decode()
    assert error_of(page, "destination-0-version") == "Enter a whole number"
    alices.post("/pipes/new/", chosen)
    to = Pipe.objects.get().revisions.get().spec["destinations"]["crm"]
    assert to["encoding"] == {"format": "confluent", "subject": "orders", "version": 1}


def test_preset_fills_in_a_destination_and_says_what_is_left_to_do(alices: Client):
    empty = {"mode": "form", "name": "alarms", "source.name": "web", "destination.name": "main", "sample": "{}"}
    added = {"action": "add.destination", "preset": "splunk-hec"}
    page = alices.post("/pipes/new/", empty | added, headers=HTMX).content.decode()
    assert "<strong>Splunk, HTTP Event Collector.</strong> Enter the URL of your collector." in page
    assert "Also set: authentication (header Authorization), rules for responses. Edit as JSON to change." in page
    assert "Authorization: (secret)" in page, "the dry run shows the whole request"
    assert page.count('name="destination.name"') == 1, "it takes the place of the empty destination"
    values = [html.unescape(text) for text in re.findall(r'name="spec" value="([^"]*)"', page)]
    body = html.unescape(re.findall(r'name="destination.body"[^>]*>([^<]*)<', page)[0])
    chosen = {"destination.name": "splunk-hec", "destination.was": "splunk-hec", "destination.body": body}
    form = empty | chosen | {"action": "save", "spec": values[0]}
    page = alices.post("/pipes/new/", form).content.decode()
    assert error_of(page, "destination-0-url") == "Enter a URL that begins with https:// or http://"
    alices.post("/pipes/new/", form | {"destination.url": "https://hec.example.com:8088/services/collector/event"})
    to = Pipe.objects.get(name="alarms").revisions.get().spec["destinations"]["splunk-hec"]
    assert to["auth"] == {"type": "header", "name": "Authorization"}
    assert [rule["when"]["status"] for rule in to["rules"]] == ["401", "403"]
    assert (to["url"], to["template"]["body"]) == ("https://hec.example.com:8088/services/collector/event", body)


def test_original_bodies_are_chosen_as_a_format_and_refused_with_steps_that_change_the_body(alices: Client):
    chosen = typed(destination__format="original", destination__forward_headers="X-Twilio-Signature, X-Other")
    steps: dict[str, str | list[str]] = {"normalize.op": ["remove"], "normalize.a": ["phone"]}
    page = alices.post("/pipes/new/", chosen | steps).content.decode()
    assert "normalize[0] changes it" in error_of(page, "destination-0-format")
    assert not Pipe.objects.exists()
    alices.post("/pipes/new/", chosen)
    to = Pipe.objects.get().revisions.get().spec["destinations"]["crm"]
    assert (to["original_body"], to["forward_headers"]) == (True, ["X-Twilio-Signature", "X-Other"])
    page = alices.get(f"/pipes/{Pipe.objects.get().id}/edit/").content.decode()
    assert '<option value="original" selected>As received</option>' in page
    assert 'value="X-Twilio-Signature, X-Other"' in page
    assert "a form or XML is sent as it was received" in page


def test_beginning_of_a_destination_is_entered_and_its_error_is_at_its_field(alices: Client):
    page = alices.post("/pipes/new/", typed(destination__beginning="yesterday")).content.decode()
    assert error_of(page, "destination-0-from").startswith("Enter earliest, or a time with an offset")
    assert 'aria-describedby="destination-0-from-error destination-0-from-hint"' in page
    assert "Has no effect on an existing destination." in page
    page = alices.post("/pipes/new/", typed(destination__beginning="2999-01-01T00:00:00Z")).content.decode()
    assert error_of(page, "destination-0-from") == "Enter a time in the past, got 2999-01-01T00:00:00Z"
    assert not Pipe.objects.exists()
    alices.post("/pipes/new/", typed(destination__beginning="2026-01-01T00:00:00+01:00"))
    assert Pipe.objects.get().revisions.get().spec["destinations"]["crm"]["from"] == "2026-01-01T00:00:00+01:00"


def test_execution_is_chosen_kept_and_compared(alices: Client, api: APIClient):
    page = alices.get("/pipes/new/").content.decode()
    default = r'<option value="streaming" selected>Streaming \(default\)</option>'
    assert re.search(rf'{default}\s*<option value="bulk">Bulk</option>', page)
    assert "Streaming runs the steps on each event within milliseconds." in page
    assert "The spec also contains" not in page
    alices.post("/pipes/new/", typed(execution="bulk"))
    pipe = Pipe.objects.get()
    assert pipe.revisions.get().spec["execution"] == "bulk"
    url = f"/pipes/{pipe.id}/edit/"
    page = alices.get(url).content.decode()
    assert '<option value="bulk" selected>Bulk</option>' in page
    assert "The spec also contains" not in page
    alices.post(url, typed(based_on="1", source__was="web", destination__was="crm", execution="streaming"))
    changed = api.get(f"/api/v1/pipes/{pipe.id}/revisions/2/diff/").json()["lines"]
    assert ("gone", '"execution": "bulk"') in [(line["kind"], line["text"].strip(" ,")) for line in changed]
    assert execution_of(pipe.revisions.get(number=2).spec) == "streaming"


def test_execution_that_cannot_keep_order_is_refused_at_its_field(alices: Client, tenant: Tenant):
    topic = {"destination__kind": "topic", "destination__compacted": "yes"}
    ordered = typed(execution="bulk", source__key="customer.id", **topic)
    answer = alices.post("/pipes/new/", ordered)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert error_of(page, "execution") == "Choose Streaming: crm keeps the order of each key, which Bulk does not"
    assert '<option value="bulk" selected>Bulk</option>' in page, "the choice is kept"
    assert re.findall(r'id="([a-z0-9-]+)"[^>]* autofocus', page) == ["execution"]
    assert "1 error in execution" in page
    unknown = alices.post("/pipes/new/", typed(execution="spark")).content.decode()
    assert error_of(unknown, "execution") == "Choose one of the values"
    assert not Pipe.objects.exists()


def test_typed_columns_of_a_lake_are_chosen_like_an_encoding(alices: Client, tenant: Tenant, alice: User):
    chosen = typed(
        destination__kind="lake", destination__format="columns", destination__subject="orders", destination__version="1"
    )
    page = alices.post("/pipes/new/", chosen).content.decode()
    assert error_of(page, "destination-0-subject") == "Enter a subject of your schema registry"
    assert "JSON and typed columns" in page
    assert "Avro with Confluent schema id" not in page, "not for a lake"
    draft = SchemaDraft(SchemaType.AVRO, json.dumps(V1))
    register_version(tenant=tenant, subject="orders", draft=draft, author=alice)
    alices.post("/pipes/new/", chosen)
    to = Pipe.objects.get().revisions.get().spec["destinations"]["crm"]
    assert to["type"] == "lake"
    assert to["encoding"] == {"format": "columns", "subject": "orders", "version": 1}


def test_form_becomes_a_spec(alices: Client):
    alices.post(
        "/pipes/new/",
        typed(
            normalize__op=["rename", "set", "mask", "remove"],
            normalize__a=["order.total", "seen", "customer.email", ""],
            normalize__b=["order.amount", "true", "partial", ""],
        ),
    )
    spec = Pipe.objects.get(name="payments").revisions.get().spec
    assert spec["sources"]["web"]["event_time"] == "created_at"
    assert spec["destinations"]["crm"]["url"] == "https://crm.example.com/in"
    assert spec["normalize"] == [
        {"op": "rename", "path": "order.total", "to": "order.amount"},
        {"op": "set", "path": "seen", "value": True},
        {"op": "mask", "path": "customer.email", "how": "partial"},
    ]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "", "Enter a name"),
        ("destination__url", "", "Enter a URL"),
        ("destination__url", "crm", "Enter a URL"),
        ("name", "orders", "exists in this tenant"),
        ("destination__url", "ftp://crm.example.com", "Enter a URL that begins with https:// or http://"),
        ("destination__url", f"https://crm.example.com/{'x' * 2_000}", "Enter at most 2,000 characters"),
        ("destination__url", "https://crm.example.com:99999/", "This is not a valid URL"),
        ("destination__kind", "carrier pigeon", "Choose one of the values"),
        ("destination__url", "https://user:pw@crm.example.com", "user name or password"),
        ("source__name", "Web Shop", "Use 1 to 40 characters of a-z, 0-9 and -, such as crm"),
        ("destination__name", "Main!", "Use 1 to 40 characters of a-z, 0-9 and -, such as crm"),
        ("source__event_time", "a..b", "Enter a path: names separated by dots, such as order.total"),
        ("source__key", "x" * 300, "Enter at most 200 characters"),
    ],
)
def test_error_is_shown_at_its_field_and_input_is_kept(alices: Client, pipe: Pipe, field: str, value: str, words: str):
    answer = alices.post("/pipes/new/", typed(**{field: value}))
    assert answer.status_code == 422
    assert words in error_of(answer.content.decode(), field.replace("__", "-0-")).replace("&#x27;", "'")
    assert Pipe.objects.count() == 1


def test_empty_form_shows_all_missing_fields_and_focuses_the_first_one(alices: Client, tenant: Tenant):
    page = alices.post("/pipes/new/", typed(name="", destination__url="")).content.decode()
    assert error_of(page, "name") == "Enter a name"
    assert error_of(page, "destination-0-url").startswith("Enter a URL")
    assert "`str`" not in page
    assert re.findall(r'id="([a-z0-9-]+)"[^>]* autofocus', page) == ["name"]
    page = alices.post("/pipes/new/", typed(destination__url="")).content.decode()
    assert re.findall(r'id="([a-z0-9-]+)"[^>]* autofocus', page) == ["destination-0-url"]


ROUTED = {"routes": "first", "rule__when": "true", "rule-0__to": "0"}
STEP = {"normalize__op": "rename", "normalize__a": "a", "normalize__b": "b"}


@pytest.mark.parametrize(
    ("changes", "words", "target", "first"),
    [
        pytest.param({"name": ""}, "1 error in the name", "name", "Enter a name", id="name"),
        pytest.param({"source__id": ".."}, "1 error in sources", "source-0-id", "Enter a path: ", id="source"),
        pytest.param(STEP | {"normalize__a": ""}, "1 error in normalize", "normalize-0-path", "Enter a", id="step"),
        pytest.param(ROUTED | {"rule__when": ""}, "1 error in route", "rule-0-when", "Enter an expression", id="rule"),
        pytest.param(
            {"routes": "first", "rule__when": "true"}, "1 error in route", "rule-0-to", "Choose at least", id="to none"
        ),
        pytest.param({"routes": "first"}, "1 error in route", "routes", "Add a rule", id="no rule"),
        pytest.param({"destination__url": "crm"}, "1 error in crm", "destination-0-url", "Enter a URL", id="url"),
        pytest.param(
            {"transform-0__op": "rename", "transform-0__a": "a", "transform-0__b": ""}, "1 error in crm",
            "transform-0-0-to", "Enter a path: ", id="step of a destination",
        ),
        pytest.param(
            {"name": "", "destination__url": ""}, "2 errors in the name and crm", "name", "Enter a name", id="two"
        ),
    ],
)  # fmt: skip
def test_summary_of_errors_leads_to_the_first_field(
    alices: Client, tenant: Tenant, changes: dict[str, str], words: str, target: str, first: str
):
    page = alices.post("/pipes/new/", typed(**changes)).content.decode()
    summary = re.findall(r'id="error-summary"[^>]*>(.*?)</p>', page)[0]
    found = re.fullmatch(r'<span class="state state-bad">(.*)</span> <a href="#(.*)">(.*)</a>', summary)
    assert found is not None, summary
    assert (html.unescape(found[1]), found[2]) == (words, target)
    assert html.unescape(found[3]).startswith(first)
    element = re.findall(rf'<(\w+)[^>]* id="{target}"([^>]*)>', page)
    assert [
        ("autofocus" in rest, name in ("input", "select", "textarea") or "tabindex" in rest) for name, rest in element
    ] == [(True, True)]


def test_page_without_errors_has_an_empty_summary(alices: Client, pipe: Pipe):
    assert re.findall(r'id="error-summary"[^>]*>(.*?)</p>', alices.get(f"/pipes/{pipe.id}/edit/").content.decode()) == [
        ""
    ]


def test_no_error_of_a_form_names_a_type_or_a_json_path(alices: Client, tenant: Tenant):
    wrong = ["", "a..b", "x" * 3_000, "{", "-1", "null"]
    ops = {
        "set": "ab",
        "keep": "b",
        "cast": "abc",
        "mask": "ab",
        "filter": "b",
        "map": "ab",
        "explode": "a",
        "peek": "ab",
    }
    fields = ["source__name", "source__event_time", "source__key", "source__id", "destination__name"]
    fields += ["destination__url", "destination__kind"]
    forms = [{field: value} for field in fields for value in wrong]
    for op, slots in ops.items():
        good = {"normalize__op": op, "normalize__a": "a", "normalize__b": "redact", "normalize__c": ""}
        forms += [good | {f"normalize__{slot}": value} for slot in slots for value in wrong]
    forms += [ROUTED | {"rule__when": value} for value in wrong]
    seen = set()
    for form in forms:
        page = alices.post("/pipes/new/", typed(action="try", sample="{}", **form)).content.decode()
        for text in re.findall(r'class="field-error[^>]*>([^<]+)<', page) + re.findall(
            r'id="ran"[^>]*>(.*?)</p>', page
        ):
            seen.add(html.unescape(text))
    assert len(seen) > 8
    assert [
        text for text in seen if re.search(r"`(str|int|float|array|object|null)`|Expected|\$\.|\w\[\d|\bgot '", text)
    ] == []


@pytest.mark.parametrize("start", [one.name for one in STARTS])
def test_first_event_of_a_template_succeeds_with_the_command_on_the_page(alices: Client, tenant: Tenant, start: str):
    draft = draft_of(template_named(start) or STARTS[0])
    document = draft.document_to_try()
    page = alices.post(
        "/pipes/new/",
        {"mode": "json", "name": "first", "spec": json.dumps(document), "sample": draft.sample},
    ).content.decode()
    command = html.unescape(page.split('id="snippet-curl"')[1].split("<code>")[1].split("</code>")[0])
    event = shlex.split(command.replace("\\\n", " "))[-1]
    assert json.loads(event) == json.loads(draft.sample)
    pipe = Pipe.objects.get(name="first")
    run = dry_run_spec(document, event.encode(), source="", tenant=tenant, pipe_id=pipe.id)
    panels = dry_run_panels(run, draft, list(document["destinations"]))
    assert (panels.failed, panels.state) == ("", "fine")
    shown = html.unescape(alices.get(f"/pipes/{pipe.id}/settings/").content.decode())
    assert event in shown


def live(pipe: Pipe, number: int) -> None:
    row = pipe.revisions.get(number=number)
    PipeRevision.objects.filter(id=row.id).update(state="ramping")
    assert adopt_live_spec(revision=row)


def test_unchanged_revision_is_refused(alices: Client, pipe: Pipe):
    live(pipe, 1)
    form = typed(based_on="1", source__name="shop", source__event_time="")
    answer = alices.post(f"/pipes/{pipe.id}/edit/", form)
    assert answer.status_code == 422
    assert "Nothing changed: this is the spec of revision 1, which is live." in answer.content.decode()
    assert pipe.revisions.count() == 1
    assert alices.post(f"/pipes/{pipe.id}/edit/", form | {"source.event_time": "at"}).status_code == 302


def test_revision_is_reverted_in_one_click(alices: Client, pipe: Pipe, alice: User, a_spec: MakeSpec):
    live(pipe, 1)
    publish_revision(pipe=pipe, spec=a_spec(crm="https://crm.example.com/2"), based_on=1, author=alice)
    live(pipe, 2)
    page = alices.get(f"/pipes/{pipe.id}/revisions/").content.decode()
    assert re.findall(r"Revert to @(\d+)", page) == ["1"]
    alices.post(f"/pipes/{pipe.id}/revisions/1/revert/")
    newest = pipe.revisions.latest("number")
    assert (newest.number, newest.spec) == (3, pipe.revisions.get(number=1).spec)
    page = alices.post(f"/pipes/{pipe.id}/revisions/1/revert/", follow=True).content.decode()
    assert "Nothing changed" in page
    assert pipe.revisions.count() == 3


def test_all_at_once_is_preselected_while_the_live_revision_fails(alices: Client, pipe: Pipe):
    live(pipe, 1)
    Pipe.objects.filter(id=pipe.id).update(state="paused", state_cause="dead-rate")
    page = alices.get(f"/pipes/{pipe.id}/edit/").content.decode()
    assert 'value="at-once" checked' in page
    assert "recommended: the live revision is failing" in page
    alices.post(f"/pipes/{pipe.id}/edit/", typed(based_on="1", source__name="shop"))
    assert pipe.revisions.get(number=2).at_once


def test_editor_reverts_to_the_revision_that_was_live_before(alices: Client, pipe: Pipe, alice: User, a_spec: MakeSpec):
    live(pipe, 1)
    url = f"/pipes/{pipe.id}/edit/"
    assert "Revert to @" not in alices.get(url).content.decode()
    publish_revision(pipe=pipe, spec=a_spec(crm="https://crm.example.com/2"), based_on=1, author=alice)
    pipe.revisions.filter(number=2).update(state="failed")
    publish_revision(pipe=pipe, spec=a_spec(crm="https://crm.example.com/3"), based_on=2, author=alice)
    live(pipe, 3)
    page = alices.get(url).content.decode()
    (action,) = re.findall(r'formaction="([^"]+)" formnovalidate>Revert to @1<', page)
    draft = typed(based_on="3", source__name="shop", destination__url="https://draft.example.com/in")
    answer = alices.post(action, draft | {"action": ""})
    assert answer.status_code == 302
    newest = pipe.revisions.latest("number")
    assert (newest.number, newest.spec) == (4, pipe.revisions.get(number=1).spec)


def test_editor_opens_the_live_revision_after_a_rollback(alices: Client, pipe: Pipe, alice: User, a_spec: MakeSpec):
    live(pipe, 1)
    publish_revision(pipe=pipe, spec=a_spec(crm="https://bad.example.com/"), based_on=1, author=alice)
    assert "https://bad.example.com/" in alices.get(f"/pipes/{pipe.id}/edit/").content.decode()
    pipe.revisions.filter(number=2).update(state="failed")
    page = alices.get(f"/pipes/{pipe.id}/edit/").content.decode()
    assert 'value="https://crm.example.com/in"' in page
    assert "This is the spec of revision 1. Publishing it creates revision 3." in page
    assert 'name="based_on" value="2"' in page


@pytest.mark.parametrize(("chosen", "at_once"), [("ramp", False), ("at-once", True), ("", False)])
def test_editor_offers_to_ramp_or_to_take_all_keys_at_once(alices: Client, pipe: Pipe, chosen: str, at_once: bool):
    page = alices.get(f"/pipes/{pipe.id}/edit/").content.decode()
    assert 'value="ramp" checked' in page
    assert "Ramp 1 → 5 → 25 → 50 → 100 % of the keys" in page
    alices.post(f"/pipes/{pipe.id}/edit/", typed(based_on="1", source__name="shop", rollout=chosen))
    assert pipe.revisions.get(number=2).at_once is at_once


def test_invalid_step_is_marked_at_its_field_with_the_position_in_the_expression(alices: Client):
    rows = {
        "normalize__op": ["remove", "", "filter"],
        "normalize__a": ["a", "", ""],
        "normalize__b": ["", "", "body.a >"],
    }
    page = alices.post("/pipes/new/", typed(**rows)).content.decode()
    assert error_of(page, "normalize-2-when").startswith("line 1, column 9: needs a value")
    assert "body.a &gt;\n        ^</pre>" in page
    assert not Pipe.objects.exists()


def test_steps_are_added_and_removed_with_and_without_htmx(alices: Client):
    page = alices.post("/pipes/new/", typed(action="add.normalize")).content.decode()
    assert "<html" in page
    assert 'value="payments"' in page
    assert page.count('name="normalize.op"') == 1
    rows = {"normalize__op": ["remove", "cast"], "normalize__a": ["a", "b"], "normalize__b": ["", "int"]}
    fragment = alices.post("/pipes/new/", typed(action="drop.normalize.0", **rows), headers=HTMX).content.decode()
    assert "<html" not in fragment
    assert fragment.count('name="normalize.op"') == 1
    assert 'value="b"' in fragment
    assert not Pipe.objects.exists()


def test_pipe_can_be_written_as_json(alices: Client, a_spec: MakeSpec):
    spec = a_spec(crm="https://crm.example.com/in", lake="https://lake.example.com/in")
    answer = alices.post("/pipes/new/", {"mode": "json", "name": "both", "spec": json.dumps(spec)})
    assert answer.status_code == 200
    assert set(Pipe.objects.get(name="both").revisions.get().spec["destinations"]) == {"crm", "lake"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "Not valid JSON"),
        ("[]", "needs a JSON object"),
        ('{"sources": {}}', "$.sources"),
        ('{"x": 1}', "unknown field"),
    ],
)
def test_invalid_json_spec_is_refused_with_the_location_of_the_error(alices: Client, text: str, words: str):
    answer = alices.post("/pipes/new/", {"mode": "json", "name": "bad", "spec": text})
    assert answer.status_code == 422
    assert words in answer.content.decode()


def test_edit_publishes_a_revision_and_keeps_fields_outside_the_form(
    alices: Client, pipe: Pipe, alice: User, a_spec: MakeSpec
):
    spec = a_spec()
    spec["destinations"]["crm"]["timeout_s"] = 3.0
    publish_revision(pipe=pipe, spec=spec, based_on=1, author=alice)
    url = reverse("console:edit_pipe", args=[pipe.id])
    answer = alices.post(
        url,
        typed(based_on="2", source__name="shop", destination__was="crm", destination__url="https://new.example.com/in"),
    )
    assert answer.status_code == 302
    newest = pipe.revisions.get(number=3).spec["destinations"]["crm"]
    assert (newest["url"], newest["timeout_s"]) == ("https://new.example.com/in", 3.0)


def test_concurrent_edit_conflicts_and_keeps_the_input(alices: Client, pipe: Pipe, alice: User, a_spec: MakeSpec):
    publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=alice)
    url = reverse("console:edit_pipe", args=[pipe.id])
    answer = alices.post(url, typed(based_on="1", destination__url="https://mine.example.com/in"))
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "has a newer revision than 1" in page
    assert 'value="https://mine.example.com/in"' in page
    assert 'name="based_on" value="2"' in page
    assert pipe.revisions.count() == 2


def test_input_survives_the_switch_to_json_and_back(alices: Client):
    steps = {"normalize__op": ["cast"], "normalize__a": ["total"], "normalize__b": ["int"]}
    sent = typed(action="as-json", destination__url="", source__name="till", **steps)
    page = alices.post("/pipes/new/", sent).content.decode()
    text = html.unescape(re.findall(r'<textarea[^>]*id="spec"[^>]*>([^<]*)<', page)[0])
    document = json.loads(text)
    assert document["normalize"] == [{"op": "cast", "path": "total", "to": "int"}]
    assert set(document["sources"]) == {"till"}

    document["destinations"]["crm"] |= {"url": "https://crm.example.com/in", "timeout_s": 3.0}
    answer = {"mode": "json", "action": "as-form", "name": "payments", "spec": json.dumps(document)}
    page = alices.post("/pipes/new/", answer).content.decode()
    assert 'value="https://crm.example.com/in"' in page
    assert 'value="payments"' in page
    assert 'value="till"' in page
    assert 'name="normalize.a" value="total"' in page
    carried = html.unescape(re.findall(r'name="spec" value="([^"]*)"', page)[0])
    alices.post("/pipes/new/", typed(source__name="till", destination__was="crm", spec=carried, **steps))
    assert Pipe.objects.get().revisions.get().spec["destinations"]["crm"]["timeout_s"] == 3.0


@pytest.mark.parametrize(("text", "words"), [("{", "Not valid JSON"), ('{"sources": {}}', "$.sources")])
def test_json_that_the_form_cannot_show_stays_json_with_the_reason(alices: Client, text: str, words: str):
    page = alices.post("/pipes/new/", {"mode": "json", "action": "as-form", "name": "x", "spec": text}).content.decode()
    assert words in page
    assert html.escape(text) in page
    assert not Pipe.objects.exists()


def test_closing_a_pipe_requires_its_name(alices: Client, pipe: Pipe):
    url = reverse("console:close_pipe", args=[pipe.id])
    answer = alices.post(url, {"typed": "order"})
    pipe.refresh_from_db()
    assert (answer.status_code, pipe.state) == (422, "active")
    alices.post(url, {"typed": "orders"})
    pipe.refresh_from_db()
    assert pipe.state == "closed"


def test_closed_pipe_is_reopened(alices: Client, pipe: Pipe):
    close_pipe(pipe=pipe)
    assert "closed" in alices.get(f"/pipes/{pipe.id}/").content.decode()
    alices.post(reverse("console:reopen_pipe", args=[pipe.id]))
    pipe.refresh_from_db()
    assert pipe.state == "active"


def test_api_key_is_shown_once_and_revoked_permanently(alices: Client, pipe: Pipe):
    page = alices.post(reverse("console:create_key", args=[pipe.id]), {"source": "shop", "label": "cron"})
    secret = shown_key(page.content.decode())
    key = ApiKey.objects.get()
    assert key.digest == key_digest(secret)
    alices.post(reverse("console:revoke_key", args=[pipe.id, key.id]))
    key.refresh_from_db()
    assert key.revoked_at
    assert secret not in alices.get(f"/pipes/{pipe.id}/settings/").content.decode()


def test_other_tenant_cannot_revoke_an_api_key(alices: Client, pipe: Pipe, browser_of: BrowserOf, charlie: User):
    key, _ = create_api_key(source=pipe.sources.get())
    answer = browser_of(charlie).post(reverse("console:revoke_key", args=[pipe.id, key.id]))
    key.refresh_from_db()
    assert (answer.status_code, key.revoked_at) == (404, None)


def test_new_signing_secret_is_shown_once_and_the_old_one_is_kept(alices: Client, pipe: Pipe):
    page = alices.post(reverse("console:rotate_secret", args=[pipe.id, "crm"])).content.decode()
    newest, *older = signing_secrets(destination=pipe.destinations.get())
    assert newest in page
    assert len(older) == 1
    assert older[0] not in page
    assert newest not in alices.get(f"/pipes/{pipe.id}/settings/").content.decode()


def test_editor_shows_a_field_that_no_event_type_has_at_its_step(
    alices: Client, pipe: Pipe, alice: User, tenant: Tenant
):
    register_version(tenant=tenant, subject="orders", draft=SchemaDraft(SchemaType.AVRO, json.dumps(V1)), author=alice)
    set_event_types(source=pipe.sources.get(), type_from="", subjects={"": "orders"}, by=alice)
    form = typed(based_on="1", source__name="shop", source__event_time="", normalize__op="mask", normalize__b="redact")
    page = alices.post(f"/pipes/{pipe.id}/edit/", form | {"normalize.a": "totl"}).content.decode()
    assert error_of(page, "normalize-0-path") == (
        "Enter a field that the event types have, got `totl`; did you mean `total`?"
    )
    assert alices.post(f"/pipes/{pipe.id}/edit/", form | {"normalize.a": "total"}).status_code == 302
