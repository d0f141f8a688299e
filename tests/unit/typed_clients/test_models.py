"""Model of a client: classes from Avro and JSON Schema, their names, and what is refused."""

from typing import Any

import pytest

from dataplane.schemas.types import SchemaType
from tests.support.typed_clients import EVERYTHING, HOSTILE, ORDER, REFUND, SCHEMAS, event_schema
from typed_clients.build import LANGUAGES, files_of, model_of
from typed_clients.emit import comment, literal
from typed_clients.identifiers import camel, distinct, pascal, snake, words
from typed_clients.model import (
    ClientError,
    ClientModel,
    EnumRef,
    FieldType,
    ListType,
    MapType,
    NullableType,
    RecordRef,
    ScalarKind,
    ScalarType,
    UnionType,
)

UUID = {"type": "string", "logicalType": "uuid"}
PACKAGES = {"python": "shop_events", "typescript": "shop-events", "java": "com.shop.events", "go": "shopevents"}


def fields(model: ClientModel, record: str) -> dict[str, FieldType]:
    return {one.name: one.type for one in model.record(record).fields}


def record(name: str, *types: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{n}", "type": t} for n, t in enumerate(types)],
        **more,
    }


def test_logical_types_of_avro_are_types_of_the_model():
    found = fields(model_of(SCHEMAS), "Everything")
    assert found["prices"] == MapType(ScalarType(ScalarKind.DECIMAL, precision=9, scale=2))
    assert found["timestamp_micros"] == ScalarType(ScalarKind.TIMESTAMP, digits=6)
    assert found["digest"] == ScalarType(ScalarKind.BYTES, 4, 4)
    assert found["child"] == NullableType(RecordRef("Everything"))
    union = found["either"]
    assert isinstance(union, NullableType)
    assert isinstance(union.item, UnionType)
    assert [one.label for one in union.item.branches] == ["string", "long", "com.shop.Left", "com.shop.Right"]


def test_field_is_omitted_only_if_the_schemas_default_is_then_the_same_value():
    optional = {
        one.name: one.is_optional for one in model_of([event_schema("x", EVERYTHING)]).record("Everything").fields
    }
    assert not optional["maybe"], "null is not its default, so null must be sent"
    assert not optional["small"], "it has no default"
    assert optional["level"]
    assert optional["child"]


def test_keywords_of_json_schema_are_types_of_the_model():
    found = fields(model_of([event_schema("refund", REFUND, SchemaType.JSON)]), "Refund")
    assert found["kind"] == EnumRef("RefundKind")
    assert found["count"] == ScalarType(ScalarKind.LONG, 1, 10)
    assert found["note"] == NullableType(ScalarType(ScalarKind.TEXT, None, 5))
    assert found["lines"] == ListType(RecordRef("RefundLinesItem"), 1, None)
    assert found["free"] == ScalarType(ScalarKind.JSON), "combined schemas are any JSON"


def test_definitions_of_json_schema_are_one_class_each():
    document = {
        "type": "object",
        "required": ["from", "undeclared"],
        "properties": {"from": {"$ref": "#/$defs/a~1b"}, "to": {"$ref": "#/$defs/a~1b"}},
        "$defs": {"a/b": {"type": "object", "properties": {"x": {"type": "boolean"}}}},
    }
    model = model_of([event_schema("move", document, SchemaType.JSON)])
    assert [one.name for one in model.records] == ["Move", "AB"]
    assert fields(model, "Move") == {
        "from": RecordRef("AB"), "to": RecordRef("AB"), "undeclared": ScalarType(ScalarKind.JSON)
    }  # fmt: skip


def test_types_that_subjects_share_are_one_class_and_others_of_the_name_are_another():
    part, other = record("Part", "int", namespace="shop"), record("Part", "string", namespace="shop")
    schemas = [event_schema(name, record(name, one)) for name, one in (("A", part), ("B", part), ("C", other))]
    model = model_of(schemas)
    assert [one.name for one in model.records] == ["A", "Part", "B", "C", "Part2"]


@pytest.mark.parametrize(
    ("document", "id_field"),
    [
        (ORDER, "id"),
        (record("X", {"type": "string", "logicalType": "uuid"}), ""),
        ({"type": "record", "name": "X", "fields": [{"name": "id", "type": UUID}]}, "id"),
        (EVERYTHING, ""),
    ],
    ids=["time-uuid", "another uuid", "uuid named id", "none"],
)  # fmt: skip
def test_id_of_an_event_is_its_time_uuid_or_its_uuid_named_id(document: Any, id_field: str):
    assert model_of([event_schema("x", document)]).events[0].id_field == id_field


@pytest.mark.parametrize(
    ("schemas", "reason"),
    [
        ([], "needs at least one event type"),
        ([event_schema("x", {"type": "array", "items": "int"})], "needs a record, or an object"),
        ([event_schema("x", {"type": "string"}, SchemaType.JSON)], "needs a record, or an object"),
        ([event_schema("x", record("A")), event_schema("x", record("B"))], "needs one subject for each event type"),
        ([event_schema("x", record("A")), event_schema("y", record("A"))], "the same record as another event type"),
    ],
    ids=["nothing", "array", "text", "a type twice", "a record twice"],
)
def test_client_without_classes_for_its_events_is_refused(schemas: Any, reason: str):
    with pytest.raises(ClientError, match=reason):
        model_of(schemas)


@pytest.mark.parametrize(("language", "package"), [
    ("python", "Shop"), ("python", "class"), ("python", "../x"), ("typescript", "Shop Events"), ("typescript", '"'),
    ("java", "com.class"), ("java", "com;x"), ("go", "shop-events"), ("go", "func"), ("scala", "x"),
])  # fmt: skip
def test_package_that_the_language_refuses_is_refused(language: str, package: str):
    with pytest.raises(ClientError, match="needs"):
        files_of(language, SCHEMAS, package)


def test_record_with_more_fields_than_a_java_constructor_takes_is_refused_in_java():
    schemas = [event_schema("x", record("Wide", *["int"] * 251))]
    assert files_of("python", schemas, "wide")
    with pytest.raises(ClientError, match="at most 250 fields in Java, got 251"):
        files_of("java", schemas, "wide")


@pytest.mark.parametrize("language", LANGUAGES)
def test_same_schemas_give_the_same_files(language: str):
    package = PACKAGES[language]
    assert files_of(language, SCHEMAS, package) == files_of(language, list(SCHEMAS), package)


def test_compilers_that_refuse_unused_imports_accept_a_client_without_times_and_time_uuids():
    schemas = [event_schema("x", record("X", "int", doc="time.Time and TimeUuid"))]
    assert "TimeUuid }" not in files_of("typescript", schemas, "x")["src/events.ts"]
    assert "import" not in files_of("go", schemas, "x")["events.go"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_of_classes_that_a_language_uses_are_changed(language: str):
    names = ("String", "Object", "Error", "TimeUuid", "Record", "BatchSender", "Event", "Builder")
    model = model_of([event_schema(name.lower(), record(name, "int")) for name in names])
    assert [one.name for one in model.records] == [f"{name}Type" for name in names]


@pytest.mark.parametrize(("text", "found"), [
    ("orderID", ["order", "id"]), ("HTTPServer2Go", ["http", "server", "2", "go"]), ("a-b_c d", ["a", "b", "c", "d"]),
    ("\u00fc\u00df", []), ("", []),
])  # fmt: skip
def test_words_of_a_name(text: str, found: list[str]):
    assert words(text) == found


def test_identifiers_begin_with_a_letter_and_differ():
    assert (pascal("2nd"), camel("2nd"), snake("2nd"), pascal("")) == ("Type2Nd", "field2Nd", "field_2_nd", "Type")
    assert list(distinct(["a-b", "a_b", "class", "x2", "x-2"], snake, {"class"}).values()) == [
        "a_b", "a_b2", "class_", "x_2", "x_2_2"
    ]  # fmt: skip


def test_documentation_of_a_schema_is_one_harmless_line():
    line = comment(HOSTILE)
    assert line.isprintable()
    assert not any(part in line for part in ("*/", "/*", "\\", '"', "\n", "\r", "\u2028"))
    assert len(comment("x" * 1000)) == 200


def test_literals_are_printable_ascii_without_quotes():
    for octal in (False, True):
        inner = literal(HOSTILE + "\u00fc\U0001f600", octal)[1:-1]
        assert inner.isascii()
        assert inner.isprintable()
        assert '"' not in inner
    assert literal('"\n', octal=True) == '"\\042\\012"', "Java would read \\u0022 as the end of the literal"
