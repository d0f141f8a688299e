"""Shapes of events: they allow whatever a schema allows, and exclude what no event has."""

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from dataplane.schemas.avro import tree_of
from dataplane.schemas.parse import parse
from dataplane.schemas.shapes import ANY, NUMBER, OBJECT, TEXT, Shape, kind_of, shape_of
from dataplane.schemas.types import ParsedSchema, SchemaRejectedError, SchemaType
from dataplane.schemas.wire import encode, json_event
from tests.db.mgmt.registry_schemas import record
from tests.support.avro_schemas import SchemaMaker, ValueMaker

SCHEMAS = 400


def avro(schema: Any) -> ParsedSchema:
    return parse(SchemaType.AVRO, json.dumps(schema))


def json_schema(**document: Any) -> ParsedSchema:
    return parse(SchemaType.JSON, json.dumps(document))


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value within a value of JSON, with its path."""
    yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield from places(one, (*path, str(name)))


def test_every_value_of_generated_avro_events_is_allowed_by_the_shape_of_their_schema():
    rng, seen, closed = random.Random(11), 0, 0
    while seen < SCHEMAS:
        try:
            schema = avro(SchemaMaker(rng).schema())
            event = json_event(schema, encode(schema, ValueMaker(rng).value(tree_of(schema.document)))).value
        except (SchemaRejectedError, IndexError):  # a union without branches has no value
            continue
        seen += 1
        shape = shape_of([schema])
        closed += shape.at(("no such field",)) is None
        for path, value in places(event):
            found = shape.at(path)
            assert found is not None, (schema.text, path, event)
            assert found.is_any or kind_of(value) in found.kinds, (schema.text, path, event)
    assert closed > SCHEMAS / 2  # most shapes exclude something


@pytest.mark.parametrize(
    ("path", "exists"),
    [
        ("id", True), ("address.street", True), ("address.zip", False), ("lines.0.sku", True), ("lines.*.sku", True),
        ("lines.*.price", False), ("tags.any.thing", False), ("tags.any", True), ("total", False),
        ("lines.first", False),
    ],
)  # fmt: skip
def test_path_exists_if_a_field_of_the_schema_is_there(path: str, exists: bool):
    shape = shape_of([avro(record(
        id="string",
        address=["null", record("com.shop.Address", street="string")],
        lines={"type": {"type": "array", "items": record("com.shop.Line", sku="string")}},
        tags={"type": {"type": "map", "values": "string"}},
    ))])  # fmt: skip
    assert (shape.at(path.split(".")) is not None) is exists


def test_fields_of_several_schemas_are_united():
    shape = shape_of(
        [avro(record(id="string", total="long")), avro(record("com.shop.Refund", id="long", why="string"))]
    )
    assert shape.at(["total"]) is not None
    assert shape.at(["why"]) is not None
    found = shape.at(["id"])
    assert found is not None
    assert found.kinds == {TEXT, NUMBER}


@pytest.mark.parametrize(
    ("document", "exists"),
    [
        ({"type": "object", "properties": {"a": {}}}, True),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, False),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}, True),
        ({"properties": {"a": {}}, "additionalProperties": False}, True),  # of any type, so `b.0` may be in an array
        ({"type": "object", "anyOf": [{"properties": {"b": {}}}]}, True),
        ({"type": "object", "$ref": "#/$defs/closed", "$defs": {"closed": {"additionalProperties": False}}}, True),
    ],
)
def test_json_schema_excludes_a_field_only_if_it_forbids_further_ones(document: dict[str, Any], exists: bool):
    assert (shape_of([json_schema(**document)]).at(["b"]) is not None) is exists


def test_recursive_schema_has_a_shape():
    node = record("com.shop.Node", value="long", next=["null", "com.shop.Node"])
    shape = shape_of([avro(node)])
    assert shape.at(["next"] * 5 + ["value"]) is not None
    assert shape.at(["next"] * 5 + ["val"]) is None
    assert shape.at(["next"] * 50 + ["val"]) is ANY


def test_schemas_that_would_have_very_many_parts_take_little_time():
    fields = {f"f{number}": ["null", "com.shop.Node"] for number in range(40)}
    versions = [avro(record("com.shop.Node", **fields, **{f"v{version}": "long"})) for version in range(20)]
    began_s = time.process_time()
    assert shape_of(versions).is_any
    assert time.process_time() - began_s < 2


def test_value_put_at_a_path_is_there_and_a_removed_one_is_not():
    shape = Shape(frozenset((OBJECT,)), {"a": Shape(frozenset((TEXT,)))})
    put = shape.put(("b", "c"), Shape(frozenset((NUMBER,))))
    found = put.at(("b", "c"))
    assert found is not None
    assert found.kinds == {NUMBER}
    assert put.put(("b", "c"), None).at(("b", "c")) is None
    assert put.at(("a",)) is not None
