"""Pipes as code: reading a document, its variables, the plan of `apply`, and the export of what was applied."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localbox.settings import ROOT
from penstock_cli.errors import CliError
from penstock_cli.pipefile.document import FIELDS, DocumentError, document_of, read_document
from penstock_cli.pipefile.export import channel_variables, document_from
from penstock_cli.pipefile.model import ChannelEntry, LivePipe, PipeDocument, RowSource, SchemaEntry, TypeSettings
from penstock_cli.pipefile.plan import plan
from penstock_cli.pipefile.variables import escaped, replaced, variable_name
from penstock_cli.pipefile.yaml_text import value_of_yaml

EXAMPLE = ROOT / "examples" / "pipe.yaml"
SPEC: dict[str, Any] = {"sources": {"shop": {}}, "destinations": {"crm": {"url": "https://crm.example.com"}}}


def example() -> PipeDocument:
    return read_document(EXAMPLE, {"BOOKS_TOKEN": "secret"})


def live_as(document: PipeDocument) -> LivePipe:
    """State of a tenant in which the document was applied."""
    return LivePipe(
        pipe_id="pipe_1",
        newest=1,
        spec=document.spec,
        loss_threshold_percent=document.loss_threshold_percent or 0.0,
        credentials=dict.fromkeys(document.credentials, True),
        channels=frozenset(document.channels),
        tables={name: f"tab_{name}" for name in document.tables},
        versions=document.schemas,
        event_types=document.event_types,
        source_schemas=document.source_schemas,
    )


def actions(document: PipeDocument, live: LivePipe, *, credentials: bool = False) -> list[str]:
    return [change.action for change in plan(document, live, {}, credentials=credentials)]


def test_example_is_read_with_files_and_variables():
    document = example()
    assert document.credentials == {"books": {"value": "secret"}}
    assert document.schemas["orders-value"][0].type == "AVRO"
    assert document.tables == {"shops": RowSource(ROOT / "examples" / "shops.csv", "id")}
    assert document.spec["destinations"]["archive"]["timeout_s"] == 15.0  # a default


def test_example_is_the_one_of_the_reference():
    page = (ROOT / "docs" / "reference" / "pipes-as-code.md").read_text()
    assert f"```yaml\n{EXAMPLE.read_text()}```" in page
    assert all(f"`{field}" in page for field in FIELDS)


def test_empty_tenant_gets_everything_in_the_order_of_its_needs():
    assert actions(example(), LivePipe()) == [
        "create-table",
        "upload-rows",
        "register-version",
        "create-pipe",
        "set-loss-threshold",
        "set-credential",
        "set-event-types",
        "add-channel",
    ]


def test_applied_document_has_no_changes():
    document = example()
    assert actions(document, live_as(document)) == []


def test_stored_credential_is_set_again_only_on_demand():
    document = example()
    assert actions(document, live_as(document), credentials=True) == ["set-credential"]


@pytest.mark.parametrize(
    ("differs", "action"),
    [
        ({"channels": frozenset()}, "add-channel"),
        ({"loss_threshold_percent": 9.0}, "set-loss-threshold"),
        ({"event_types": {}}, "set-event-types"),
        ({"credentials": {"books": False}}, "set-credential"),
        ({"versions": {}}, "register-version"),
        ({"versions": {"orders-value": [SchemaEntry("AVRO", "other")]}}, ""),
        ({"spec": {}}, "publish"),
    ],
)
def test_each_part_is_compared(differs: dict[str, Any], action: str):
    document = example()
    assert actions(document, replace(live_as(document), **differs)) == [action]


def test_export_of_an_applied_document_reads_as_the_same_document():
    document = example()
    found = document_from("orders", live_as(document), {"shops": {"rows": "shops.csv", "key": "id"}})
    assert found["destinations"] == {"books": {"credential": {"value": "${ORDERS_BOOKS_VALUE}"}}}
    env = {"ORDERS_BOOKS_VALUE": "secret", "ORDERS_CHANNEL_HOOKS_EXAMPLE_COM": document.channels[0].target}
    again = document_of(found, env, EXAMPLE.parent)
    assert again == replace(document, channels=[*document.channels])


def test_execution_of_a_document_is_published_and_exported_unless_it_is_the_default():
    document = example()
    assert "execution" not in document_from("orders", live_as(document), {})["spec"]
    whole = {"kind": "Pipe", "name": "orders", "spec": SPEC | {"execution": "bulk"}}
    bulk = document_of(whole, {}, EXAMPLE.parent)
    assert bulk.spec["execution"] == "bulk"
    assert document_from("orders", live_as(bulk), {})["spec"]["execution"] == "bulk"
    live = replace(live_as(bulk), spec=document_of(whole | {"spec": SPEC}, {}, EXAMPLE.parent).spec)
    assert actions(bulk, live) == ["publish"]


def test_export_names_the_variable_of_a_buckets_secret():
    live = live_as(example())
    to = {"type": "s3", "url": "https://s3.example.com/b", "region": "auto", "access_key_id": "k"}
    found = document_from("orders", replace(live, spec={**live.spec, "destinations": {"files": to}}), {})
    secret = {"secret_access_key": "${ORDERS_FILES_SECRET_ACCESS_KEY}"}
    assert found["destinations"] == {"files": {"credential": secret}}


def test_export_names_the_variable_of_a_databases_password():
    live = live_as(example())
    to = {"type": "postgres", "host": "db.example.com", "database": "d", "user": "u", "table": "t"}
    found = document_from("orders", replace(live, spec={**live.spec, "destinations": {"rows": to}}), {})
    assert found["destinations"] == {"rows": {"credential": {"password": "${ORDERS_ROWS_PASSWORD}"}}}


def test_plan_shows_only_the_host_of_a_webhook():
    targets = [
        "https://user:pin@hooks.example.com:8443/T00/secret?key=secret",
        "hooks.example.com/secret",
        "http://[secret",
    ]
    channels = [ChannelEntry("webhook", target) for target in targets] + [ChannelEntry("mail", "x@example.com")]
    document = replace(example(), channels=channels)
    changes = plan(document, live_as(example()), {}, credentials=False)
    assert [change.subject for change in changes] == [
        "hooks.example.com",
        "invalid URL",
        "invalid URL",
        "x@example.com",
    ]
    assert changes[0].words == ["notification channel webhook hooks.example.com: added"]
    assert "secret" not in str(changes)


def test_export_names_one_variable_for_each_webhook_url():
    urls = ["https://a.example.com/one", "https://a.example.com/two", "https://a-example.com/three"]
    channels = frozenset([ChannelEntry("mail", "${x}@example.com"), *(ChannelEntry("webhook", url) for url in urls)])
    found = document_from("orders", replace(live_as(example()), channels=channels), {})
    assert [one["target"] for one in found["channels"]] == [
        "$${x}@example.com",
        "${ORDERS_CHANNEL_A_EXAMPLE_COM}",
        "${ORDERS_CHANNEL_A_EXAMPLE_COM_2}",
        "${ORDERS_CHANNEL_A_EXAMPLE_COM_3}",
    ]
    names = ["ORDERS_CHANNEL_A_EXAMPLE_COM", "ORDERS_CHANNEL_A_EXAMPLE_COM_2", "ORDERS_CHANNEL_A_EXAMPLE_COM_3"]
    assert channel_variables(found) == names
    env = dict(zip(names, sorted(urls), strict=True)) | {"ORDERS_BOOKS_VALUE": "secret"}
    assert frozenset(document_of(found, env, EXAMPLE.parent).channels) == channels


def test_source_without_event_types_equals_no_subjects():
    document = replace(example(), event_types={"shop": TypeSettings("field:type", {})})
    assert actions(document, replace(live_as(document), event_types={})) == []
    bound = {"shop": TypeSettings("field:type", {"order": "orders-value"})}
    assert actions(document, replace(live_as(document), event_types=bound)) == ["set-event-types"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kind: Pipe\nname: a\nname: b\n", "line 3: the key `name` is repeated"),
        ("kind: Pipe\nspec:\n  sources: {shop: {}, shop: {}}\n", "line 3: the key `shop` is repeated"),
    ],
)
def test_repeated_key_is_refused_with_its_line(tmp_path: Path, text: str, reason: str):
    file = tmp_path / "pipe.yaml"
    file.write_text(text)
    with pytest.raises(DocumentError) as refused:
        read_document(file, {})
    assert str(refused.value) == f"{file}: {reason}"


def test_key_of_a_merged_object_may_be_overridden():
    text = "base: &base {a: 1, b: {c: 1}}\nmore: &more {<<: *base, a: 2}\nmost: [{<<: *more, a: 3}, *more, *base]\n"
    found = value_of_yaml(text)
    assert found["more"] == {"a": 2, "b": {"c": 1}}
    assert found["most"] == [{"a": 3, "b": {"c": 1}}, found["more"], found["base"]]


def test_channel_of_the_tenant_that_the_document_lacks_stays():
    document = example()
    live = live_as(document)
    assert actions(document, replace(live, channels=live.channels | {ChannelEntry("mail", "x@example.com")})) == []


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"kind": "Pump"}, "$.kind: needs `Pipe`"),
        ({"speed": 1}, "$.speed: is not known"),
        ({"name": None}, "$.name: needs the name"),
        ({"spec": []}, "$.spec: needs the spec"),
        ({"spec": SPEC | {"normalize": [{"op": "fliter"}]}}, "$.spec.normalize[0]"),
        ({"spec": SPEC | {"execution": "spark"}}, "$.spec.execution"),
        ({"destinations": {"books": {}}}, "$.destinations.books: needs a destination of the spec"),
        ({"destinations": {"crm": {"credential": {"pin": "1"}}}}, "$.destinations.crm.credential.pin: is not known"),
        ({"channels": [{"kind": "pigeon", "target": "x"}]}, "$.channels[0]: needs a kind"),
        ({"tables": {"shops": {"rows": "shops.xls"}}}, "$.tables.shops.rows: needs a .csv or .jsonl file"),
        ({"schemas": {"orders": ["missing.avsc"]}}, "$.schemas.orders[0]"),
        ({"schemas": {"orders": []}}, "$.schemas.orders: needs a list"),
        ({"source_schemas": {"web": [{}]}}, "$.source_schemas.web: needs a source of the spec"),
        ({"source_schemas": {"shop": {}}}, "$.source_schemas.shop: needs a list"),
        ({"source_schemas": {"shop": ["missing.json"]}}, "$.source_schemas.shop[0]"),
        ({"event_types": {"web": {}}}, "$.event_types.web: needs a source of the spec"),
        ({"loss_threshold_percent": "1"}, "$.loss_threshold_percent: needs a number"),
    ],
)
def test_invalid_document_is_refused_with_the_field(part: dict[str, Any], reason: str):
    with pytest.raises(DocumentError) as refused:
        document_of({"kind": "Pipe", "name": "orders", "spec": SPEC} | part, {}, Path())
    assert str(refused.value).startswith(reason)


def test_variables_are_replaced_and_a_dollar_can_be_escaped():
    assert replaced({"a": ["x ${ONE} $${TWO} $3"]}, {"ONE": "1"}) == {"a": ["x 1 ${TWO} $3"]}
    assert replaced(escaped({"a": "${NOT} a $variable"}), {}) == {"a": "${NOT} a $variable"}
    assert variable_name("my pipe", "crm-2", "value") == "MY_PIPE_CRM_2_VALUE"


def test_missing_variable_is_named_with_its_field():
    with pytest.raises(CliError) as refused:
        replaced({"a": {"b": "${ONE}"}}, {})
    assert str(refused.value) == "$.a.b: needs the variable ONE. Set ONE in the environment."
