"""Dry run in the editor: each node's result is shown at its fields, and nothing is stored."""

import html
import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from mgmt import sandbox
from mgmt.lookups.row_files import checked_row
from mgmt.models import Pipe, Tenant, User
from mgmt.sandbox import SandboxBusy
from mgmt.services import create_lookup_table, publish_revision, put_row

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
SPEC: dict[str, Any] = {
    "sources": {"shop": {"event_time": "at"}},
    "normalize": [{"op": "rename", "path": "total", "to": "amount"}],
    "enrich": [{"table": "people", "key": "body.who", "into": "person"}],
    "routes": {"rules": [{"when": "body.amount > 100", "to": ["crm"]}], "otherwise": ["books"]},
    "destinations": {name: {"type": "http", "url": f"https://{name}.example.com/in"} for name in ("crm", "books")},
}
FORM = {
    "mode": "form",
    "action": "try",
    "based_on": "2",
    "source.name": "shop",
    "source.was": "shop",
    "normalize.op": "rename",
    "normalize.a": "total",
    "normalize.b": "amount",
    "enrich.table": "people",
    "enrich.key": "body.who",
    "enrich.into": "person",
    "enrich.on_missing": "keep",
    "routes": "first",
    "rule.when": "body.amount > 100",
    "rule-0.to": "0",
    "otherwise": "1",
    "destination.name": ["crm", "books"],
    "destination.was": ["crm", "books"],
    "destination.url": ["https://crm.example.com/in", "https://books.example.com/in"],
    "sample": '{"total": 150, "who": "c-42"}',
}


@pytest.fixture
def edited(pipe: Pipe, tenant: Tenant, alice: User) -> str:
    """Editor URL of a pipe with a look-up and a route."""
    table = create_lookup_table(tenant=tenant, name="people")
    put_row(table=table, row=checked_row(1, "c-42", {"name": "Ada"}))
    publish_revision(pipe=pipe, spec=SPEC, based_on=1, author=alice)
    return reverse("console:edit_pipe", args=[pipe.id])


def out(page: str, name: str) -> str:
    """Return the output panel of a node."""
    return str(re.findall(rf'<section class="out" id="out-{name}".*?</section>', page, re.DOTALL)[0])


def test_every_node_is_shown_with_its_output_and_the_exact_request(alices: Client, edited: str, pipe: Pipe):
    page = alices.post(edited, FORM).content.decode()
    assert '<span class="new">  &quot;amount&quot;: 150</span>' in out(page, "normalize")
    assert '<span class="gone">  &quot;total&quot;: 150,</span>' in out(page, "normalize")
    assert "&quot;name&quot;: &quot;Ada&quot;" in out(page, "enrich")
    assert "to crm" in out(page, "route")
    assert "POST https://crm.example.com/in" in out(page, "destination-0")
    assert "This event is not sent" in out(page, "destination-1")
    assert all("µs</span>" in out(page, name) or "ms</span>" in out(page, name) for name in ("normalize", "route"))
    assert pipe.revisions.count() == 2


def test_htmx_request_gets_results_to_swap_in_place(alices: Client, edited: str):
    page = alices.post(edited, FORM, headers=HTMX).content.decode()
    assert "<html" not in page
    assert 'id="out-normalize" aria-label="After normalize" hx-swap-oob="true"' in page


def test_only_fields_that_the_page_has_are_swapped(alices: Client, edited: str):
    """A dry run that starts between a change of the type and the redraw has the type without its fields."""
    page = alices.post(edited, FORM | {"destination.kind": ["s3", "http"]}, headers=HTMX).content.decode()
    swapped = set(re.findall(r'id="(destination-\d-[a-z_]+-error)"[^>]*hx-swap-oob', page))
    assert {"destination-0-name-error", "destination-0-url-error", "destination-1-url-error"} <= swapped
    assert "destination-0-region-error" in page
    assert "destination-0-region-error" not in swapped


def test_error_leaves_the_previous_results_in_place(alices: Client, edited: str):
    page = alices.post(edited, FORM | {"rule.when": "body.amount >"}, headers=HTMX).content.decode()
    assert "line 1, column 14: needs a value" in re.findall(r'id="rule-0-when-error"[^>]*>([^<]*)<', page)[0]
    assert 'hx-swap-oob="true"' not in out(page, "normalize").partition(">")[0]


@pytest.mark.parametrize(
    ("change", "panel", "words"),
    [
        ({"normalize.op": "filter", "normalize.b": "false"}, "normalize", "filtered out"),
        ({"normalize.op": "cast", "normalize.a": "who", "normalize.b": "int"}, "normalize", "step 1, cast who"),
        ({"enrich.on_missing": "dead", "enrich.key": '"nobody"'}, "enrich", "people has no row for this key"),
        ({"rule.when": "false", "otherwise": []}, "route", "no rule matches"),
    ],
)
def test_ended_message_says_where_and_why(alices: Client, edited: str, change: dict[str, str], panel: str, words: str):
    assert words in out(alices.post(edited, FORM | change).content.decode(), panel)


@pytest.mark.parametrize("sample", ["", "{", "nothing of the kind", "[" * 5_000])
def test_event_that_is_not_json_is_refused_at_its_own_field(alices: Client, edited: str, sample: str):
    page = alices.post(edited, FORM | {"sample": sample}).content.decode()
    assert "Enter valid JSON" in re.findall(r'id="sample-error"[^>]*>([^<]*)<', page)[0]


def test_pipe_without_events_runs_on_an_example_and_says_so(alices: Client, edited: str):
    page = alices.get(edited).content.decode()
    assert "newest event of the pipe is not available: it has had none yet" in page
    assert "After normalize" in page


def test_stored_sample_of_the_pipe_is_offered_and_used_without_events(alices: Client, edited: str, pipe: Pipe):
    assert "Use stored sample" not in alices.get(edited).content.decode()
    Pipe.objects.filter(id=pipe.id).update(sample='{"total": 7, "who": "c-1"}')
    opened = alices.get(edited).content.decode()
    assert "Sample event of the pipe. The newest event of the pipe is not available" in opened
    for page in (opened, alices.post(edited, FORM | {"action": "stored"}).content.decode()):
        assert "Use stored sample</button>" in page
        text = html.unescape(re.findall(r'<textarea[^>]*id="sample"[^>]*>([^<]*)<', page)[0])
        assert json.loads(text) == {"total": 7, "who": "c-1"}
        assert "&quot;amount&quot;: 7" in out(page, "normalize")


def test_json_mode_also_shows_all_nodes(alices: Client, edited: str):
    page = alices.get(f"{edited}?mode=json").content.decode()
    assert re.findall(r'<div class="out-head"><span>([^<]*)', page) == ["normalize", "enrich", "route", "books", "crm"]


def test_new_pipe_needs_no_url_for_a_dry_run(alices: Client, tenant: Tenant):
    page = alices.get("/pipes/new/").content.decode()
    assert "POST https://example.com/hooks" in page
    assert re.findall(r'id="destination-0-url-error"[^>]*>([^<]*)<', page) == [""]


def test_pipe_with_very_many_steps_can_be_edited(alices: Client, edited: str):
    many = {
        f"{stage}.{part}": ["remove" if part == "op" else "x"] * 100
        for stage in ("normalize", "transform-0", "transform-1")
        for part in ("op", "a", "b", "c")
    }
    page = alices.post(edited, FORM | many).content.decode()
    assert page.count('name="transform-1.op"') == 100


def test_dry_run_over_its_limits_says_so_and_keeps_the_input(
    alices: Client, edited: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sandbox, "TRY_S", 0.02)  # the kernel checks every 4 ms; each of 30 transforms takes about 10 ms
    names = [f"crm{number}" for number in range(30)]
    slow = {
        "routes": "everything",
        "destination.name": names,
        "destination.was": [""] * 30,
        "destination.url": ["https://crm.example.com/in"] * 30,
        "sample": f'{{"total": 150, "who": "c-42", "l": {list(range(5_000))}}}',
    }
    for number in range(30):
        step = {"op": "filter", "a": "", "b": "body.l.all(x, x >= 0)"}
        slow |= {f"transform-{number}.{part}": [value] * 10 for part, value in step.items()}
    answer = alices.post(edited, FORM | slow)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "This took more than 0.02 s of CPU time and was stopped." in page
    assert "body.amount &gt; 100" in page


def test_save_while_every_worker_is_busy_keeps_the_input(
    alices: Client, edited: str, pipe: Pipe, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: Any, **__: Any) -> None:
        raise SandboxBusy("The server is busy with other dry runs. Try again in a few seconds.")

    changed = FORM | {"action": "save", "rule.when": "body.amount > 99"}
    monkeypatch.setattr(sandbox.trials(), "run", refuse)
    answer = alices.post(edited, changed)
    assert answer.status_code == 422
    assert "Try again in a few seconds." in answer.content.decode()
    assert "body.amount &gt; 99" in answer.content.decode()
    assert pipe.revisions.count() == 2
