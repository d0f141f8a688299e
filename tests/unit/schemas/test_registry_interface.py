"""Public interface of the schema registry's core: types, levels and suggested names."""

import pytest

from dataplane.schemas.compatibility import incompatibilities, suggested_name
from dataplane.schemas.parse import parse, schema_type
from dataplane.schemas.types import Compatibility, ParsedSchema, SchemaRejectedError, SchemaType


def avro(field: str) -> ParsedSchema:
    return parse(SchemaType.AVRO, f'{{"type": "record", "name": "com.shop.Order", "fields": [{field}]}}')


ID = '{"name": "id", "type": "string"}'
NOTE = '{"name": "note", "type": "string"}'
OPTIONAL_NOTE = '{"name": "note", "type": "string", "default": ""}'


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("com.shop.Order", "com.shop.v2.Order"),
        ("com.shop.v2.Order", "com.shop.v3.Order"),
        ("com.shop.v19.Order", "com.shop.v20.Order"),
        ("com.v2.shop.Order", "com.v2.shop.v2.Order"),
        ("com.shop.v0.Order", "com.shop.v0.v2.Order"),
        ("Order", "v2.Order"),
    ],
)
def test_breaking_change_is_offered_in_the_next_namespace(name: str, expected: str):
    assert suggested_name(name) == expected


@pytest.mark.parametrize(
    ("level", "new", "earlier", "reasons"),
    [
        ("NONE", avro(NOTE), [avro(ID)], []),
        ("BACKWARD", avro(f"{ID}, {NOTE}"), [avro(ID)], [("READER_FIELD_MISSING_DEFAULT_VALUE", 1)]),
        ("BACKWARD", avro(f"{ID}, {OPTIONAL_NOTE}"), [avro(ID)], []),
        ("FORWARD", avro(f"{ID}, {NOTE}"), [avro(ID)], []),
        ("FORWARD", avro(ID), [avro(f"{ID}, {NOTE}")], [("READER_FIELD_MISSING_DEFAULT_VALUE", 1)]),
        ("FULL", avro(NOTE), [avro(ID)], [("READER_FIELD_MISSING_DEFAULT_VALUE", 1)] * 2),
        ("BACKWARD", avro(NOTE), [avro(ID), avro(NOTE)], []),
        ("BACKWARD_TRANSITIVE", avro(NOTE), [avro(ID), avro(NOTE)], [("READER_FIELD_MISSING_DEFAULT_VALUE", 1)]),
        ("FORWARD", avro(ID), [avro(NOTE), avro(f"{ID}, {OPTIONAL_NOTE}")], []),
        ("FORWARD_TRANSITIVE", avro(ID), [avro(NOTE), avro(ID)], [("READER_FIELD_MISSING_DEFAULT_VALUE", 1)]),
        ("FULL_TRANSITIVE", avro(ID), [avro(NOTE), avro(ID)], [("READER_FIELD_MISSING_DEFAULT_VALUE", 1)] * 2),
    ],
)
def test_level_chooses_direction_and_versions(
    level: str, new: ParsedSchema, earlier: list[ParsedSchema], reasons: list[tuple[str, int]]
):
    found = incompatibilities(Compatibility(level), new, list(enumerate(earlier, 1)))
    assert [(one.reason, one.version) for one in found] == reasons


def test_type_of_a_subject_cannot_change():
    other = parse(SchemaType.JSON, '{"type": "object"}')
    found = incompatibilities(Compatibility.BACKWARD, avro(ID), [(7, other)])
    assert [(one.reason, one.version) for one in found] == [("SCHEMA_TYPE_MISMATCH", 7)]


def test_json_schemas_are_compared_in_both_directions():
    wide = parse(SchemaType.JSON, '{"type": "object", "properties": {"a": {"type": "integer"}}}')
    narrow = parse(SchemaType.JSON, '{"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}}}')
    backward = incompatibilities(Compatibility.BACKWARD, narrow, [(1, wide)])
    assert [(one.path, one.reader, one.reason) for one in backward] == [
        ("/properties/a/minimum", "0", "JSON_SCHEMA_NARROWED")
    ]
    assert not incompatibilities(Compatibility.FORWARD, narrow, [(1, wide)])
    assert incompatibilities(Compatibility.FORWARD, wide, [(1, narrow)])


def test_types_of_schemas():
    assert schema_type(None) is SchemaType.AVRO
    assert schema_type("JSON") is SchemaType.JSON
    for name, reason in (("PROTOBUF", "Protobuf"), ("XML", "AVRO or JSON")):
        with pytest.raises(SchemaRejectedError, match=reason):
            schema_type(name)
