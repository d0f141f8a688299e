"""The editor's drafts: a spec goes in and comes out whole, rows move, and each error finds its field."""

import pytest
from django.http import QueryDict

from dataplane.spec import SpecError, parse_pipe_spec, spec_to_builtins
from mgmt.console.editor.acts import acted, with_url
from mgmt.console.editor.draft import EVERYTHING, Draft, RuleRow, draft_from_spec
from mgmt.console.editor.errors import with_error
from mgmt.console.editor.fields import rule_rows, step_rows
from mgmt.console.editor.posted import draft_from_post
from mgmt.console.editor.steps import StepRow
from mgmt.console.editor.trial import compared

FULL = {
    "sources": {
        "shop": {"event_time": "at", "key": "who"},
        "till": {"id": "number"},
        "old": {"type": "kafka", "cluster": "main", "topic": "orders"},
    },
    "normalize": [{"op": "explode", "path": "lines"}, {"op": "peek", "name": "lines", "share": 0.25}],
    "enrich": [
        {"table": "people", "key": "body.who", "into": "person"},
        {"table": "goods", "key": "body.sku", "into": "good", "on_missing": "default", "default": {"price": 0}},
    ],
    "routes": {"rules": [{"when": "body.total > 1", "to": ["audit", "crm"]}], "mode": "all", "otherwise": ["books"]},
    "transform": {"audit": [{"op": "keep", "fields": ["id"]}]},
    "destinations": {
        name: {"type": "http", "url": f"https://{name}.example.com", "timeout_s": 3.0}
        for name in ("crm", "audit", "books")
    }
    | {
        "people": {"type": "table", "table": "people", "key": "body.who", "remove_when": "has(body.gone)"},
        "out": {"type": "topic", "partitions": 8},
        "all": {"type": "lake"},
    },
}
STORED = spec_to_builtins(parse_pipe_spec(FULL))


def test_a_whole_spec_goes_through_the_form_unchanged():
    draft = draft_from_spec("orders", STORED)
    assert not draft.as_json
    assert parse_pipe_spec(draft.document()) == parse_pipe_spec(FULL)


def test_a_spec_that_the_form_would_change_is_shown_as_json():
    odd = {**STORED, "normalize": [{"op": "keep", "fields": ["a,b"]}]}
    assert draft_from_spec("orders", odd).as_json


def test_what_the_form_does_not_show_stays_with_a_destination_that_is_renamed():
    draft = acted(draft_from_spec("orders", STORED), "add.destination")
    renamed = draft_from_post(
        QueryDict(
            "destination.name=ledger&destination.was=audit&destination.url=https://a.example.com&source.name=shop"
        ),
        draft.base,
    )
    assert renamed.document()["destinations"]["ledger"]["timeout_s"] == 3.0


def test_another_kind_of_destination_begins_anew():
    sent = "destination.name=crm&destination.was=crm&destination.kind=topic&source.name=shop"
    assert draft_from_post(QueryDict(sent), STORED).document()["destinations"] == {"crm": {"type": "topic"}}


def test_a_row_moves_and_the_button_keeps_the_focus():
    draft = Draft(normalize=(StepRow("remove", ("a", "", "")), StepRow("remove", ("b", "", ""))))
    moved = acted(draft, "down.normalize.0")
    assert [row.typed[0] for row in moved.normalize] == ["b", "a"]
    assert [row.focus for row in step_rows(moved, "normalize", moved.normalize)] == ["", "up"]  # it is the last now
    assert acted(moved, "down.normalize.1") == moved


@pytest.mark.parametrize(
    "action",
    [
        *("", "up", "up.normalize.9", "drop.sources", "drop.transform-7.0", "add.nothing", "drop.rule.²"),
        *(f"{button}{'9' * 5_000}" for button in ("up.normalize.", "echo.destination.", "add.transform-")),
    ],
    ids=lambda action: action[:30],
)
def test_a_button_that_is_none_changes_nothing(action: str):
    draft = draft_from_spec("orders", STORED)
    assert acted(draft, action) == draft
    assert with_url(draft, action, "https://a.example.com") == draft


def test_rules_follow_their_destinations_when_one_is_dropped():
    draft = acted(draft_from_spec("orders", STORED), "drop.destination.0")
    assert draft.document()["routes"] == {
        "mode": "all", "rules": [{"when": "body.total > 1", "to": ["audit"]}], "otherwise": ["books"],
    }  # fmt: skip


def test_a_first_rule_turns_routing_on_and_a_dry_run_does_not_wait_for_it_to_be_filled_in():
    draft = acted(Draft(), "add.rule")
    assert draft.mode == "first"
    assert draft.document_to_try()["routes"] is None
    with pytest.raises(SpecError, match="rules"):
        parse_pipe_spec(draft.document() | {"destinations": {"main": {"url": "https://a.example.com"}}})
    assert draft_from_spec("orders", STORED | {"routes": None}).mode == EVERYTHING


def test_a_name_used_twice_is_refused_at_the_later_one():
    draft = acted(draft_from_spec("orders", STORED), "add.source")
    twice = draft_from_post(QueryDict("source.name=shop&source.name=shop&destination.name=crm"), draft.base)
    with pytest.raises(SpecError) as refused:
        twice.document()
    assert list(with_error(twice, refused.value.path, refused.value.reason).errors) == ["source-1-name"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("$.normalize[1].share", "normalize-2-share"),  # row 1 is not filled in
        ("$.normalize[0]", "normalize-0"),
        ("$.transform.audit[0].fields[1]", "transform-1-0-fields"),
        ("$.enrich[1].key", "enrich-1-key"),
        ("$.routes.rules[0].to", "rule-0-to"),
        ("$.routes.otherwise", "otherwise"),
        ("$.sources.till.id", "source-1-id"),
        ("$.destinations.books.url", "destination-2-url"),
        ("$.destinations.people.remove_when", "destination-3-remove_when"),
        ("$.destinations.books.retry.span_s", "destination-2-name"),
        ("$.windows[0]", ""),
        ("name", "name"),
    ],
)
def test_each_error_finds_its_field(path: str, field: str):
    draft = draft_from_spec("orders", STORED)
    first, second = draft.normalize
    gapped = Draft(**{**vars(draft), "normalize": (first, StepRow(), second)})
    assert list(with_error(gapped, path, "needs something else").errors) == [field]


def test_an_error_in_an_expression_points_into_its_line():
    draft = Draft(rules=(RuleRow("body.a > 1 &&\n  body.b >"),))
    [row] = rule_rows(with_error(draft, "$.routes.rules[0].when", "line 2, column 11: needs a value, got the end"))
    assert row.fields[0].pointed == ("  body.b >", "          ^")


def test_a_body_is_compared_line_by_line_and_a_comma_is_no_change():
    lines = compared('{"a":1,"b":12.50}', '{"a":1,"b":12.50,"c":2}')
    assert [(line.kind, line.text.strip()) for line in lines] == [
        ("same", "{"), ("same", '"a": 1,'), ("same", '"b": 12.50,'), ("new", '"c": 2'), ("same", "}"),
    ]  # fmt: skip
