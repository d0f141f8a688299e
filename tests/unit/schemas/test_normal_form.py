"""Normal form of schemas: the form of a text never counts, and everything that readers use does."""

import json

import pytest

from dataplane.schemas.normal import normal_form
from dataplane.schemas.types import SchemaType

ORDER = '{"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "a", "type": "Item"}]}'


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('"string"', '{"type": "string"}'),
        ('{"type": "array", "items": {"type": "int"}}', '{"items":"int","type":"array"}'),
        ('{"type": "map", "values": {"type": "int"}}', '{"values":"int","type":"map"}'),
        (ORDER, '{"type":"record","name":"shop.Order","fields":[{"type":{"type":"shop.Item"},"name":"a"}]}'),
        ('["null", {"type": "int"}]', '["null","int"]'),
        (
            '{"type":"record","name":"a.B","fields":[{"name":"c","type":{"type":"enum","name":"D","symbols":["E"]}}]}',
            '{"type":"record","name":"a.B","fields":[{"name":"c","type":{"type":"enum","name":"a.D","symbols":["E"]}}]}',
        ),
    ],
)
def test_two_forms_of_one_avro_schema_have_one_normal_form(one: str, other: str):
    assert normal_form(SchemaType.AVRO, one) == normal_form(SchemaType.AVRO, other)


@pytest.mark.parametrize(
    "other",
    [
        ORDER.replace('"Item"', '"Item", "default": null'),
        ORDER.replace('"Item"', '"Item", "doc": "an item"'),
        ORDER.replace('"Item"', '"Item", "aliases": ["b"]'),
        ORDER.replace('"Item"', '{"type": "long", "logicalType": "timestamp-micros"}'),
        ORDER.replace('"shop"', '"store"'),
        ORDER.replace('"a"', '"b"'),
    ],
)
def test_what_a_reader_uses_is_part_of_the_normal_form(other: str):
    assert normal_form(SchemaType.AVRO, ORDER) != normal_form(SchemaType.AVRO, other)


def test_normal_form_of_a_json_schema_ignores_the_order_of_its_keys():
    one = {"type": "object", "properties": {"a": {"type": "string"}}}
    other = dict(reversed(one.items()))
    assert normal_form(SchemaType.JSON, json.dumps(one)) == normal_form(SchemaType.JSON, json.dumps(other, indent=1))
    assert normal_form(SchemaType.JSON, '{"type": "string"}') == '{"type":"string"}'
