"""Fields of registered schemas as rows, and the changes between two versions."""

from typing import Any

import pytest

from mgmt.registry.fields import MOST_FIELDS, SchemaFieldChange, field_at, field_changes, field_rows

LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string", "doc": "Number of the order."},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "by_shop", "type": {"type": "map", "values": "Line"}},
        {"name": "next", "type": ["null", "Order"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}


def test_fields_of_an_avro_record_are_listed_with_those_of_nested_records():
    assert [(row.path, row.type, row.presence) for row in field_rows("AVRO", ORDER)] == [
        ("id", "string", "required"),
        ("note", "null | string", "default null"),
        ("total", "bytes (decimal 12, 2)", "required"),
        ("lines", "array of record Line", "required"),
        ("lines[].sku", "string", "required"),
        ("by_shop", "map of Line", "required"),
        ("next", "null | Order", "default null"),
        ("at", "long (timestamp-micros)", "required"),
    ]
    assert field_rows("AVRO", "string") == []


def test_fields_of_a_json_schema_are_listed_through_references_to_its_definitions():
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "format": "uuid", "description": "Number."},
            "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
            "any": True,
        },
        "required": ["id"],
        "$defs": {"line": {"type": "object", "properties": {"sku": {"type": ["string", "null"]}}}},
    }
    assert [(row.path, row.type, row.presence, row.doc) for row in field_rows("JSON", schema)] == [
        ("id", "string (uuid)", "required", "Number."),
        ("lines", "array", "optional", ""),
        ("lines[].sku", "string | null", "optional", ""),
        ("any", "any", "optional", ""),
    ]


def test_schema_with_many_fields_shows_the_first_ones():
    fields = [{"name": f"f{number}", "type": "int"} for number in range(2_000)]
    assert len(field_rows("AVRO", {"type": "record", "name": "A", "fields": fields})) == MOST_FIELDS


def test_recursive_json_schema_ends():
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {}}
    schema["$defs"] = {"b": {"type": "object", "properties": {"c": {"$ref": "#/$defs/b"}}}}
    assert 1 < len(field_rows("JSON", schema)) < MOST_FIELDS


def test_changes_name_added_removed_and_changed_fields():
    def rows(*fields: dict[str, Any]) -> Any:
        return field_rows("AVRO", {"type": "record", "name": "A", "fields": list(fields)})

    before = rows({"name": "a", "type": "int"}, {"name": "b", "type": "int"}, {"name": "c", "type": "int", "doc": "x"})
    after = rows({"name": "a", "type": "long"}, {"name": "c", "type": "int"}, {"name": "d", "type": "int"})
    assert field_changes(before, after) == [
        SchemaFieldChange("removed", "b", "int, required"),
        SchemaFieldChange("changed", "a", "int, required", "long, required"),
        SchemaFieldChange("changed", "c", "x", "no text"),
        SchemaFieldChange("added", "d", after="int, required"),
    ]
    assert field_changes(before, before) == []


@pytest.mark.parametrize(
    ("pointer", "field"),
    [
        ("/fields/0/type", "id"),
        ("/fields/1/type/1", "note"),
        ("/fields/3/type/items/fields/0/type", "lines.sku"),
        ("/fields/4/type/values/fields/0", "by_shop"),
        ("/fields/9", ""),
        ("", ""),
        ("/name", ""),
    ],
)
def test_field_at_a_pointer_is_named_by_its_path(pointer: str, field: str):
    assert field_at(ORDER, pointer) == field
