"""JSON Schemas of the registry that refer to others: the references are expanded into `$defs`."""

import json
from typing import Any

import pytest

from dataplane.schemas.compatibility import unreadable
from dataplane.schemas.json_documents import expanded_json
from dataplane.schemas.parse import parse
from dataplane.schemas.types import SchemaRejectedError, SchemaType

MONEY = json.dumps({"$id": "money", "$ref": "#/$defs/amount", "$defs": {"amount": {"type": "number"}}})


def expanded(document: Any, **references: str) -> tuple[Any, tuple[str, ...]]:
    text, used = expanded_json(json.dumps(document), references)
    return json.loads(text), used


def test_reference_is_expanded_wherever_a_schema_may_be():
    document = {
        "properties": {"total": {"$ref": "money"}, "name": {"type": "string"}},
        "allOf": [{"$ref": "money"}, True],
        "additionalProperties": {"$ref": "money"},
    }
    found, used = expanded(document, money=MONEY, other=MONEY)
    assert used == ("money",)
    assert found["properties"]["total"] == {"$ref": "#/$defs/money"}
    assert found["allOf"][0] == found["additionalProperties"] == {"$ref": "#/$defs/money"}
    assert found["$defs"]["money#amount"] == {"type": "number"}
    assert found["$defs"].keys() == {"money", "money#amount"}


def test_expanded_reference_decides_about_events_like_the_schema_itself():
    found, _ = expanded_json(json.dumps({"properties": {"total": {"$ref": "money"}}}), {"money": MONEY})
    whole = parse(SchemaType.JSON, found)
    plain = parse(SchemaType.JSON, '{"properties": {"total": {"type": "number"}}}')
    text = parse(SchemaType.JSON, '{"properties": {"total": {"type": "string"}}}')
    assert unreadable(plain, whole) == ()
    assert [one.path for one in unreadable(text, whole)] == ["/properties/total/type"]


def test_document_without_a_use_of_its_references_stays_as_it_is():
    assert expanded({"type": "object"}, money=MONEY) == ({"type": "object"}, ())


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param({"$ref": "money", "$defs": {"money": True}}, "/$defs/money", id="own definition of that name"),
        pytest.param({"$ref": "money", "$defs": 5}, "/$defs", id="definitions that are no object"),
        pytest.param({"$ref": "unknown"}, "/$ref", id="unknown reference"),
    ],
)
def test_reference_that_cannot_be_expanded_is_refused_with_its_place(document: Any, path: str):
    with pytest.raises(SchemaRejectedError) as refused:
        expanded(document, money=MONEY)
    assert refused.value.path == path


def test_narrowed_json_schema_is_named_with_the_fragments_of_both():
    before = parse(SchemaType.JSON, '{"anyOf": [{"type": "string"}, {"type": "number"}]}')
    after = parse(SchemaType.JSON, '{"anyOf": [{"type": "string"}], "required": ["id"]}')
    found = unreadable(after, before)
    assert found
    assert {one.reason for one in found} == {"JSON_SCHEMA_NARROWED"}
