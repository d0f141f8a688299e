"""Drafts of the editor: a spec passes the form unchanged, rows move, and each error is shown at its field."""

from dataclasses import replace

import pytest
from django.http import QueryDict

from dataplane.spec import PostgresDestination, SpecError, parse_pipe_spec, spec_to_builtins
from mgmt.pipes.editor.actions import apply_action, with_url
from mgmt.pipes.editor.draft import EVERYTHING, Draft, RouteRuleRow, SourceRow, draft_from_spec
from mgmt.pipes.editor.dry_run import compared
from mgmt.pipes.editor.errors import error_summary, in_words, ordered_errors, place_in_words, with_error, with_missing
from mgmt.pipes.editor.fields import destination_rows, execution_field, rule_rows, source_rows, step_rows
from mgmt.pipes.editor.posted import draft_from_post
from mgmt.pipes.editor.steps import StepRow

FULL = {
    "sources": {
        "shop": {"event_time": "at", "key": "who"},
        "till": {"id": "number"},
        "old": {"type": "kafka", "cluster": "main", "topic": "orders"},
        "changes": {"type": "table", "table": "people", "from": "snapshot", "prefix": "p-"},
        "own": {"type": "penstock", "events": ["penstock.alert.*", "penstock.pipe.paused"]},
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
        "out": {
            "type": "topic",
            "partitions": 8,
            "encoding": {"format": "confluent", "subject": "orders-value", "version": 3},
        },
        "all": {"type": "lake", "encoding": {"format": "columns", "subject": "orders-value", "version": 3}},
        "files": {
            "type": "s3",
            "url": "https://s3.example.com/orders",
            "region": "eu-central-1",
            "access_key_id": "AKIAIOSFODNN7EXAMPLE",
            "prefix": "shop/",
            "format": "parquet",
            "batch": {"max_events": 500},
        },
        "rows": {
            "type": "postgres",
            "host": "db.example.com",
            "port": 6432,
            "database": "shop",
            "user": "penstock",
            "schema": "sales",
            "table": "orders",
            "columns": {"id": "body.id", "total": "has(body.total) ? body.total : 0"},
            "key": ["id"],
            "on_conflict": "update",
            "ca": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
            "batch": {"max_events": 50},
        },
    },
}
STORED = spec_to_builtins(parse_pipe_spec(FULL))


def test_full_spec_passes_the_form_unchanged():
    draft = draft_from_spec("orders", STORED)
    assert not draft.as_json
    assert parse_pipe_spec(draft.document()) == parse_pipe_spec(FULL)


def test_spec_that_the_form_would_change_is_shown_as_json():
    odd = {**STORED, "normalize": [{"op": "keep", "fields": ["a,b"]}]}
    assert draft_from_spec("orders", odd).as_json


def test_renamed_destination_keeps_the_fields_that_the_form_does_not_show():
    draft = apply_action(draft_from_spec("orders", STORED), "add.destination")
    renamed = draft_from_post(
        QueryDict(
            "destination.name=ledger&destination.was=audit&destination.url=https://a.example.com&source.name=shop"
        ),
        draft.base,
    )
    assert renamed.document()["destinations"]["ledger"]["timeout_s"] == 3.0


def test_destination_of_another_type_keeps_no_old_fields():
    sent = "destination.name=crm&destination.was=crm&destination.kind=topic&source.name=shop"
    assert draft_from_post(QueryDict(sent), STORED).document()["destinations"] == {"crm": {"type": "topic"}}


def test_encoding_is_typed_kept_and_removed():
    sent = "destination.name=crm&destination.was=crm&destination.url=https://c.example.com&source.name=shop"
    typed = f"{sent}&destination.format=avro&destination.subject=orders&destination.version=2"
    document = draft_from_post(QueryDict(typed), STORED).document()
    assert document["destinations"]["crm"]["encoding"] == {"format": "avro", "subject": "orders", "version": 2}
    assert "encoding" not in draft_from_post(QueryDict(sent), document).document()["destinations"]["crm"]
    unread = draft_from_post(QueryDict(f"{typed}nd"), STORED).document()
    assert unread["destinations"]["crm"]["encoding"]["version"] == "2nd", "refused by the parser, at its field"


def test_format_belongs_to_the_type_of_the_destination():
    sent = "destination.name=crm&destination.was=crm&source.name=shop&destination.subject=orders&destination.version=2"
    for kind, format_, is_kept in (("lake", "columns", True), ("lake", "avro", False), ("topic", "columns", False)):
        typed = f"{sent}&destination.kind={kind}&destination.format={format_}"
        document = draft_from_post(QueryDict(typed), STORED).document()["destinations"]["crm"]
        assert ("encoding" in document) is is_kept


def test_beginning_is_typed_kept_and_removed():
    sent = "destination.name=feed&destination.was=feed&destination.kind=topic&source.name=shop"
    document = draft_from_post(QueryDict(f"{sent}&destination.beginning=+earliest"), STORED).document()
    assert document["destinations"]["feed"] == {"type": "topic", "from": "earliest"}
    assert draft_from_spec("p", document).destinations[0].beginning == "earliest"
    assert "from" not in draft_from_post(QueryDict(sent), document).document()["destinations"]["feed"]
    lake = QueryDict(f"{sent.replace('topic', 'lake')}&destination.beginning=earliest")
    assert "from" not in draft_from_post(lake, STORED).document()["destinations"]["feed"]


def test_source_becomes_one_of_a_table_and_an_event_source_again():
    sent = "destination.name=crm&destination.was=crm&destination.url=https://c.example.com&source.name=shop"
    sent += "&source.was=shop&source.key=who&source.table=people&source.start=snapshot&source.prefix=p-"
    table = draft_from_post(QueryDict(f"{sent}&source.kind=table"), STORED).document()
    assert table["sources"] == {
        "shop": {"type": "table", "table": "people", "from": "snapshot", "prefix": "p-"},
    }
    http = draft_from_post(QueryDict(f"{sent}&source.kind=http"), table).document()["sources"]["shop"]
    assert http == {"type": "http", "event_time": None, "key": "who", "id": None}


def test_source_becomes_one_of_operational_events():
    sent = "destination.name=crm&destination.was=crm&destination.url=https://c.example.com&source.name=shop"
    sent += "&source.was=shop&source.kind=penstock"
    every = draft_from_post(QueryDict(sent), STORED).document()
    assert every["sources"] == {"shop": {"type": "penstock"}}
    some = draft_from_post(QueryDict(f"{sent}&source.events=penstock.alert.*,+penstock.pipe.paused,"), STORED)
    assert some.document()["sources"]["shop"]["events"] == ["penstock.alert.*", "penstock.pipe.paused"]
    (row,) = source_rows(some, [])
    assert [field.label for field in row.fields] == ["Name", "Type", "Event types (optional)"]
    assert with_error(some, "$.sources.shop.events[1]", "needs a type").errors == {"source-0-events": "Enter a type"}


def test_fields_of_a_source_that_its_type_does_not_show_are_kept_hidden():
    draft = replace(Draft(), sources=(SourceRow("web", kind="table", key="who", table="people"), SourceRow("shop")))
    table, http = source_rows(draft, ["goods"])
    assert [field.label for field in table.fields] == [
        "Name",
        "Type",
        "Look-up table",
        "Start with",
        "Keys that begin with (optional)",
    ]
    assert [value for value, _ in table.fields[2].choices] == ["people", "goods"]
    for row in (table, http):
        names = [field.name for field in row.fields] + [name for name, _ in row.hidden]
        assert sorted(names) == sorted(f"source.{name}" for name in SourceRow.__dataclass_fields__)
    assert ("source.key", "who") in table.hidden


def test_topic_is_compacted_and_plain_again():
    sent = "destination.name=feed&destination.was=feed&destination.kind=topic&source.name=shop&source.key=id"
    sent += "&destination.remove_when=body.row+==+null"
    typed = QueryDict(f"{sent}&destination.compacted=yes")
    document = draft_from_post(typed, STORED).document()
    assert document["destinations"]["feed"] == {
        "type": "topic",
        "compacted": True,
        "remove_when": "body.row == null",
    }
    assert parse_pipe_spec(draft_from_spec("p", document).document()) == parse_pipe_spec(document)
    assert draft_from_post(QueryDict(sent), document).document()["destinations"]["feed"] == {"type": "topic"}


def test_bucket_without_its_required_fields_can_be_tried_and_not_published():
    sent = "name=orders&destination.name=files&destination.kind=s3&source.name=shop&destination.object_format=parquet"
    draft = draft_from_post(QueryDict(sent), {})
    assert with_missing(draft).errors == {
        "destination-0-url": "Enter a URL that begins with https:// or http://",
        "destination-0-region": "Enter a region",
        "destination-0-access_key_id": "Enter an access key ID",
    }
    tried = draft.document_to_try()["destinations"]["files"]
    assert parse_pipe_spec({"sources": {"shop": {}}, "destinations": {"files": tried}})
    assert tried["format"] == "parquet"


def test_database_without_its_required_fields_can_be_tried_and_not_published():
    sent = "name=orders&destination.name=rows&destination.kind=postgres&source.name=shop"
    draft = draft_from_post(QueryDict(sent), {})
    assert with_missing(draft).errors == {
        "destination-0-host": "Enter a host name",
        "destination-0-database": "Enter a database",
        "destination-0-user": "Enter a user",
        "destination-0-table": "Enter a table",
    }
    tried = draft.document_to_try()["destinations"]["rows"]
    (parsed,) = parse_pipe_spec({"sources": {"shop": {}}, "destinations": {"rows": tried}}).destinations.values()
    assert isinstance(parsed, PostgresDestination)
    assert (parsed.key, parsed.port) == (("position", "child"), 5432)
    shown = {field.name: field.value for field in destination_rows(draft)[0].fields}
    assert shown["destination.key"] == "position, child"
    assert shown["destination.columns"].splitlines()[0] == "position: meta.position"


def test_columns_and_key_of_a_database_are_as_typed_and_errors_name_the_column():
    sent = QueryDict(mutable=True)
    sent.update({"name": "o", "source.name": "shop", "destination.name": "rows", "destination.kind": "postgres"})
    sent.update(
        {"destination.columns": "total: body.total\r\nnote: has(body.n) ? body.n : 'a:b'", "destination.key": ""}
    )
    draft = draft_from_post(sent, {})
    tried = draft.document_to_try()["destinations"]["rows"]
    assert tried["columns"] == {"total": "body.total", "note": "has(body.n) ? body.n : 'a:b'"}
    assert tried["key"] == []
    found = with_error(draft, "$.destinations.rows.columns.total", "line 1, column 2: needs a value")
    assert dict(found.errors) == {"destination-0-columns": "total: line 1, column 2: needs a value"}


@pytest.mark.parametrize("kind", ["s3", "postgres"])
def test_limits_of_a_batch_are_fields_and_empty_ones_have_the_default(kind: str):
    sent = QueryDict(mutable=True)
    sent.update({"name": "o", "source.name": "shop", "destination.name": "out", "destination.kind": kind})
    plain = draft_from_post(sent, {})
    assert "batch" not in plain.document()["destinations"]["out"]
    sent.update({"destination.max_events": "250", "destination.max_wait_ms": "0", "destination.max_bytes": ""})
    draft = draft_from_post(sent, {})
    tried = draft.document_to_try()
    assert tried["destinations"]["out"]["batch"] == {"max_events": 250, "max_wait_ms": 0}
    assert parse_pipe_spec(draft_from_spec("o", tried).document()) == parse_pipe_spec(tried)
    fields = {field.name: field for field in destination_rows(draft)[0].fields}
    shown = {name: field.value for name, field in fields.items() if name.startswith("destination.max_")}
    assert shown == {"destination.max_events": "250", "destination.max_bytes": "", "destination.max_wait_ms": "0"}
    assert fields["destination.max_bytes"].example == "1048576"


@pytest.mark.parametrize("name", ["files", "rows"])
def test_limits_that_are_cleared_are_not_kept_and_an_error_is_at_its_limit(name: str):
    draft = draft_from_spec("orders", STORED)
    place = next(place for place, row in enumerate(draft.destinations) if row.name == name)
    row = draft.destinations[place]
    assert (row.max_bytes, row.max_wait_ms) != ("", "")
    rows = list(draft.destinations)
    rows[place] = replace(row, max_events="", max_bytes="", max_wait_ms="")
    assert "batch" not in replace(draft, destinations=tuple(rows)).document()["destinations"][name]
    rows[place] = replace(row, max_events="5000")
    wrong = replace(draft, destinations=tuple(rows))
    with pytest.raises(SpecError) as raised:
        parse_pipe_spec(wrong.document())
    found = with_error(wrong, raised.value.path, raised.value.reason)
    assert dict(found.errors) == {f"destination-{place}-max_events": "Enter a whole number up to 1000"}


def test_execution_is_chosen_kept_and_absent_for_streaming():
    plain = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": "https://c.example.com"}}}
    sent = "source.name=shop&destination.name=crm&destination.was=crm&destination.url=https://c.example.com"
    document = draft_from_post(QueryDict(f"{sent}&execution=bulk"), plain).document()
    assert document["execution"] == "bulk"
    shown = draft_from_spec("orders", document)
    assert (shown.as_json, execution_field(shown).value, shown.hidden_parts) == (False, "bulk", [])
    assert parse_pipe_spec(shown.document()) == parse_pipe_spec(document)
    assert draft_from_post(QueryDict(sent), document).document()["execution"] == "bulk", "an older page posts none"
    streaming = draft_from_post(QueryDict(f"{sent}&execution=streaming"), document)
    assert "execution" not in streaming.document()
    stored = draft_from_spec("orders", spec_to_builtins(parse_pipe_spec(streaming.document())))
    assert (execution_field(stored).value, stored.hidden_parts) == ("streaming", [])


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param({"execution": "spark"}, "Choose one of the values", id="unknown"),
        pytest.param(
            {"execution": "bulk", "destinations": {"feed": {"type": "topic", "compacted": True}}},
            "Choose Streaming: feed keeps the order of each key, which Bulk does not",
            id="ordered",
        ),
    ],
)
def test_execution_that_is_not_possible_has_its_reason_at_the_choice(document: dict[str, object], words: str):
    plain = {
        "sources": {"shop": {"key": "id"}},
        "destinations": {"crm": {"type": "http", "url": "https://c.example.com"}},
    }
    with pytest.raises(SpecError) as raised:
        parse_pipe_spec(plain | document)
    draft = with_error(Draft(), raised.value.path, raised.value.reason)
    assert dict(draft.errors) == {"execution": words}
    summary = error_summary(draft)
    assert summary is not None
    assert (summary.words, summary.target) == ("1 error in execution", "execution")


def test_row_moves_and_its_button_keeps_the_focus():
    draft = Draft(normalize=(StepRow("remove", ("a", "", "")), StepRow("remove", ("b", "", ""))))
    moved = apply_action(draft, "down.normalize.0")
    assert [row.typed[0] for row in moved.normalize] == ["b", "a"]
    assert [row.focus for row in step_rows(moved, "normalize", moved.normalize)] == ["", "up"]  # now the last row
    assert apply_action(moved, "down.normalize.1") == moved


@pytest.mark.parametrize(
    "action",
    [
        *("", "up", "up.normalize.9", "drop.sources", "drop.transform-7.0", "add.nothing", "drop.rule.²"),
        *(f"{button}{'9' * 5_000}" for button in ("up.normalize.", "echo.destination.", "add.transform-")),
    ],
    ids=lambda action: action[:30],
)
def test_unknown_action_changes_nothing(action: str):
    draft = draft_from_spec("orders", STORED)
    assert apply_action(draft, action) == draft
    assert with_url(draft, action, "https://a.example.com") == draft


def test_rules_no_longer_name_a_removed_destination():
    draft = apply_action(draft_from_spec("orders", STORED), "drop.destination.0")
    assert draft.document()["routes"] == {
        "mode": "all", "rules": [{"when": "body.total > 1", "to": ["audit"]}], "otherwise": ["books"],
    }  # fmt: skip


def test_first_rule_turns_routing_on_and_a_dry_run_ignores_it_while_it_is_empty():
    draft = apply_action(Draft(), "add.rule")
    assert draft.mode == "first"
    assert draft.document_to_try()["routes"] is None
    with pytest.raises(SpecError, match="rules"):
        parse_pipe_spec(draft.document() | {"destinations": {"main": {"url": "https://a.example.com"}}})
    assert draft_from_spec("orders", STORED | {"routes": None}).mode == EVERYTHING


def test_duplicate_name_is_refused_at_the_later_field():
    draft = apply_action(draft_from_spec("orders", STORED), "add.source")
    twice = draft_from_post(QueryDict("source.name=shop&source.name=shop&destination.name=crm"), draft.base)
    with pytest.raises(SpecError) as refused:
        twice.document()
    assert list(with_error(twice, refused.value.path, refused.value.reason).errors) == ["source-1-name"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("$.normalize[1].share", "normalize-2-share"),  # row 1 is empty
        ("$.normalize[0]", "normalize-0"),
        ("$.transform.audit[0].fields[1]", "transform-1-0-fields"),
        ("$.enrich[1].key", "enrich-1-key"),
        ("$.routes.rules[0].to", "rule-0-to"),
        ("$.routes.otherwise", "otherwise"),
        ("$.sources.till.id", "source-1-id"),
        ("$.destinations.books.url", "destination-2-url"),
        ("$.destinations.people.remove_when", "destination-3-remove_when"),
        ("$.destinations.books.retry.span_s", "destination-2-name"),
        ("$.destinations.out.encoding.version", "destination-4-version"),
        ("$.destinations.out.encoding.subject", "destination-4-subject"),
        ("$.destinations.crm.encoding", "destination-0-format"),
        ("$.execution", "execution"),
        ("$.windows[0]", ""),
        ("name", "name"),
    ],
)
def test_each_error_is_shown_at_its_field(path: str, field: str):
    draft = draft_from_spec("orders", STORED)
    first, second = draft.normalize
    gapped = Draft(**{**vars(draft), "normalize": (first, StepRow(), second)})
    assert list(with_error(gapped, path, "needs something else").errors) == [field]


@pytest.mark.parametrize(
    ("reason", "path", "words"),
    [
        ("Expected `str` of length <= 200", "$.sources.web.key", "Enter at most 200 characters"),
        ("Expected `float` <= 1.0", "$.normalize[0].share", "Enter a number above 0 and up to 1"),
        ("Expected `float` <= 30.0", "$.destinations.crm.timeout_s", "Enter a number up to 30"),
        ("Expected `int`, got `str`", "$.destinations.crm.concurrency", "Enter a whole number"),
        ("Expected `str` of length >= 1", "$.routes.rules[0].when", "Enter an expression"),
        ("Expected `array` of length >= 1", "$.routes.rules[0].to", "Choose at least one destination"),
        ("needs one of your look-up tables, got x", "$.enrich[0].table", "Choose one of your look-up tables"),
        ("needs a public address", "$.destinations.crm.url", "Enter a public address"),
        ("line 1, column 9: needs a value", "$.normalize[0].when", "line 1, column 9: needs a value"),
    ],
)
def test_reason_is_an_instruction_to_the_reader(reason: str, path: str, words: str):
    assert in_words(path, reason) == words


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ("normalize[0] cast total: needs a number", "step 1, cast total: needs a number"),
        ("transform.crm[2] map a: no field", "step 3 of crm, map a: no field"),
        ("enrich[1] people has no row for this key", "look-up 2, people has no row for this key"),
        ("routes.rules[0].when: no field `total`", "rule 1: no field `total`"),
        ("the body is not JSON", "the body is not JSON"),
    ],
)
def test_place_of_a_failure_is_named_as_on_the_page(detail: str, words: str):
    assert place_in_words(detail) == words


def test_errors_are_summarised_in_the_order_of_the_page():
    places = ["transform-1-0-path", "rules", "destination-0-url", "normalize-2-path", "normalize-1-path", "sample", ""]
    draft = replace(draft_from_spec("orders", STORED), errors=dict.fromkeys(places, "Wrong") | {"name": ""})
    assert ordered_errors(draft) == [
        "", "sample", "normalize-1-path", "normalize-2-path", "rules", "destination-0-url", "transform-1-0-path",
    ]  # fmt: skip
    summary = error_summary(draft)
    assert summary is not None
    assert summary.words == "7 errors in the sample event, normalize, route, crm and audit"
    assert summary.target == "whole-error"
    assert error_summary(replace(draft, errors={})) is None


def test_expression_error_points_into_its_line():
    draft = Draft(rules=(RouteRuleRow("body.a > 1 &&\n  body.b >"),))
    [row] = rule_rows(with_error(draft, "$.routes.rules[0].when", "line 2, column 11: needs a value, got the end"))
    assert row.fields[0].pointed == ("  body.b >", "          ^")


def test_bodies_are_compared_line_by_line_and_a_comma_is_no_change():
    lines = compared('{"a":1,"b":12.50}', '{"a":1,"b":12.50,"c":2}')
    assert [(line.kind, line.text.strip()) for line in lines] == [
        ("same", "{"), ("same", '"a": 1,'), ("same", '"b": 12.50,'), ("new", '"c": 2'), ("same", "}"),
    ]  # fmt: skip
