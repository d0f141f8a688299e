"""Accepted schemas, the reasons for refusals, and the error of an event that does not fit."""

import json
import time
from typing import Any

import pytest

from dataplane.spec.schema import (
    MAX_BYTES,
    MAX_LEVELS,
    MAX_PATTERNS,
    SchemaError,
    SchemaMismatch,
    checked_schema,
    compile_schema,
    pointer_of,
    read_schema,
)

ORDER: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.com/order.json",
    "$defs": {"money": {"type": "number", "minimum": 0}},
    "type": "object",
    "properties": {
        "id": {"type": "string", "format": "uuid", "description": "Ours."},
        "amount": {"$ref": "#/$defs/money", "maximum": 100},
        "state": {"enum": ["new", "paid"]},
        "code": {"pattern": "^[A-Z]+$"},
    },
    "required": ["id"],
    "additionalProperties": False,
}
ID = "0197f0c4-7b2a-7cc1-8d4e-0d8a3b6f1e2c"
SECRET = "4111-1111"


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels // 2):
        found = {"properties": {"a": found}}
    return found


def lines_of_laughs(lines: int) -> dict[str, Any]:
    """Return definitions that each reference the next one ten times."""
    defs: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 10} for n in range(lines)}
    return {"$defs": defs | {f"d{lines}": {}}, "$ref": "#/$defs/d0"}


def either(ways: int) -> dict[str, Any]:
    return {"anyOf": [{"const": number} for number in range(ways)]}


def loop(**more: Any) -> dict[str, Any]:
    return {"$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"not": {"$ref": "#/$defs/a"}}}, **more}


@pytest.mark.parametrize(
    ("document", "pointer", "words"),
    [
        pytest.param([], "", "needs an object", id="no object"),
        pytest.param({"type": "strin"}, "/type", "needs types of array, boolean", id="no type"),
        pytest.param({"properties": {"a": {"minimum": "1"}}}, "/properties/a/minimum", "not of type", id="no number"),
        pytest.param({"requierd": ["a"]}, "/requierd", "not a supported keyword", id="a misspelt word"),
        pytest.param(
            {"items": {"$defs": {}}}, "/items/$defs", "not a supported keyword", id="definitions below the root"
        ),
        pytest.param({"$dynamicRef": "#a"}, "/$dynamicRef", "not a supported", id="a dynamic reference"),
        pytest.param({"format": "regex"}, "/format", "needs one of date", id="a format that runs patterns of events"),
        pytest.param({"$schema": "http://json-schema.org/draft-07/schema#"}, "/$schema", "2020-12", id="another draft"),
        pytest.param({"$ref": "https://example.com/a.json"}, "/$ref", "nothing is fetched", id="a reference far away"),
        pytest.param({"$ref": "file:///etc/passwd"}, "/$ref", "nothing is fetched", id="a reference to a file"),
        pytest.param({"$ref": "http://169.254.169.254/"}, "/$ref", "nothing is fetched", id="a reference to metadata"),
        pytest.param({"items": {"$ref": "#"}}, "/items/$ref", "nothing is fetched", id="itself"),
        pytest.param(
            {"$ref": "#/$defs/a"}, "/$ref", "definition in this document", id="a definition that is not there"
        ),
        pytest.param(loop(), "/$defs/b/not/$ref", "is circular: a > b > a", id="a loop that nobody uses"),
        pytest.param({"$defs": {"a": {"$ref": "#/$defs/a"}}}, "/$defs/a/$ref", "is circular", id="a loop of one"),
        pytest.param(lines_of_laughs(9), "/$defs", "at most 5000 parts", id="a billion laughs"),
        pytest.param(nested(MAX_LEVELS + 2), "", f"at most {MAX_LEVELS} levels", id="deep"),
        pytest.param({"enum": ["x" * MAX_BYTES]}, "", f"at most {MAX_BYTES} bytes", id="large"),
        pytest.param({"pattern": r"(a)\1"}, "/pattern", "linear time", id="a back reference"),
        pytest.param({"pattern": "(?=a)b"}, "/pattern", "linear time", id="look-around"),
        pytest.param({"pattern": "a{1000}{1000}"}, "/pattern", "linear time", id="a pattern that unfolds"),
        pytest.param({"patternProperties": {"(?!a)": {}}}, "/patternProperties/(?!a)", "linear time", id="of names"),
        pytest.param(
            {"properties": {f"f{n}": {"pattern": "a"} for n in range(MAX_PATTERNS + 1)}},
            "",
            "patterns",
            id="many of them",
        ),
        pytest.param({"items": either(101)}, "", "alternatives inside of lists", id="many ways to be an item"),
        pytest.param(
            {"items": {"enum": [number + 0.5 for number in range(20)]}},
            "",
            "alternatives inside",
            id="slow comparisons",
        ),
        pytest.param({"maximum": float("inf")}, "", "JSON does not allow", id="infinity"),
        pytest.param({"const": "\ud800"}, "", "JSON does not allow", id="half a character"),
    ],
)
def test_unsupported_schema_is_refused_at_its_pointer(document: Any, pointer: str, words: str):
    with pytest.raises(SchemaError) as caught:
        checked_schema(document)
    assert pointer_of(caught.value.path).startswith(pointer)
    assert words in caught.value.reason


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1 column 2"),
        ('{"a": 1, "a": 2}', "an object has a duplicate key"),
        ("[" * 50_000, f"at most {MAX_LEVELS} levels"),
        (" " * (MAX_BYTES + 1), f"at most {MAX_BYTES} bytes"),
        ("9" * 10_000, "needs JSON"),
        ("<schema/>", "line 1 column 1"),
    ],
)
def test_schema_text_has_to_be_json(text: str, words: str):
    with pytest.raises(SchemaError, match=words):
        read_schema(text)


def test_schema_keeps_the_order_in_which_it_was_written():
    assert list(json.loads(checked_schema(ORDER))) == list(ORDER)


@pytest.mark.parametrize(
    ("event", "misfit"),
    [
        ({"id": ID, "amount": 1.5}, None),
        ({"amount": 1}, SchemaMismatch("/id", "is required, but missing")),
        ({"id": ID, "amount": "4111-1111"}, SchemaMismatch("/amount", 'the value is not of type "number"')),
        ({"id": ID, "amount": -1}, SchemaMismatch("/amount", "the value is less than the minimum of 0")),
        ({"id": ID, "amount": 101}, SchemaMismatch("/amount", "the value is greater than the maximum of 100")),
        ({"id": SECRET}, SchemaMismatch("/id", 'the value is not a "uuid"')),
        ({"id": ID, "state": SECRET}, SchemaMismatch("/state", 'the value is not one of "new" or "paid"')),
        ({"id": ID, "code": SECRET}, SchemaMismatch("/code", 'the value does not match "^[A-Z]+$"')),
        ({"id": ID, "a/b": 1}, SchemaMismatch("/a~1b", "is not a field of the schema")),
        ([SECRET], SchemaMismatch("", 'the value is not of type "object"')),
        (None, SchemaMismatch("", 'the value is not of type "object"')),
    ],
)
def test_mismatch_names_the_field_and_never_the_value(event: Any, misfit: SchemaMismatch | None):
    found = compile_schema(checked_schema(ORDER))(event)
    assert found == misfit
    assert SECRET not in str(found)


def test_mismatch_pointer_has_a_maximum_length():
    check = compile_schema(checked_schema({"additionalProperties": False}))
    misfit = check({"x" * 10_000: 1})
    assert misfit is not None
    assert len(misfit.pointer) <= 200


@pytest.mark.parametrize(
    ("schema", "event"),
    [
        pytest.param({"pattern": "(a+)+$"}, "a" * 1_000_000 + "!", id="a pattern that others go back and forth in"),
        pytest.param({"uniqueItems": True}, [{"a": n} for n in range(50_000)], id="items that differ"),
        pytest.param({"format": "email"}, "a@" * 500_000, id="an address"),
        pytest.param({"items": either(90)}, [89] * 10_000, id="the last of many alternatives"),
        pytest.param({"items": either(90)}, [-1] * 1_000_000, id="each item is wrong in many ways"),
    ],
)
def test_no_event_makes_a_check_slow(schema: dict[str, Any], event: Any):
    check, began = compile_schema(checked_schema(schema)), time.thread_time()
    check(event)
    assert time.thread_time() - began < 2


def test_schema_is_compiled_once():
    text = checked_schema(ORDER)
    assert compile_schema(text) is compile_schema(text)
