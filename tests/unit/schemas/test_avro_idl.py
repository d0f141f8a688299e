"""Avro IDL and protocols: their named types, by the Avro project's own cases (tests/data/avro/idl)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dataplane.schemas.idl import MAX_TYPES, named_types
from dataplane.schemas.parse import parse
from dataplane.schemas.types import SchemaRejectedError, SchemaType
from localbox.settings import ROOT

CASES = sorted((ROOT / "tests" / "data" / "avro" / "idl").glob("*.avdl"))
# A default NaN is a text in JSON, which is no default of a double: readers in Java refuse the schema.
NOT_A_NUMBER = re.compile(r' = (NaN|-Infinity)|,\s+"default" : "(NaN|-Infinity)"')


def text_of(path: Path) -> str:
    return NOT_A_NUMBER.sub("", path.read_text())


def test_all_cases_are_read():
    assert len(CASES) == 8


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_types_are_those_of_the_protocol(path: Path):
    found, expected = named_types(text_of(path)), named_types(text_of(path.with_suffix(".avpr")))
    assert dict(found) == dict(expected)
    for name, text in found:
        assert parse(SchemaType.AVRO, text).name == name


def test_default_that_is_no_number_is_refused():
    with pytest.raises(SchemaRejectedError, match="the default does not fit double"):
        named_types(next(path for path in CASES if path.stem == "simple").read_text())


def one(body: str, header: str = "") -> dict[str, Any]:
    ((_, text),) = named_types(f'{header}@namespace("a") protocol P {{ record R {{ {body} }} }}')
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("int a = 0x10;", {"name": "a", "type": "int", "default": 16}),
        ("int a = 010;", {"name": "a", "type": "int", "default": 8}),
        ("long a = -5L;", {"name": "a", "type": "long", "default": -5}),
        ("double a = 1.5e3d;", {"name": "a", "type": "double", "default": 1500.0}),
        (r'string a = "\u0041\n\"";', {"name": "a", "type": "string", "default": 'A\n"'}),
        ("string? a;", {"name": "a", "type": ["null", "string"]}),
        ("string? a = null;", {"name": "a", "type": ["null", "string"], "default": None}),
        ('string? a = "x";', {"name": "a", "type": ["string", "null"], "default": "x"}),
        (
            "decimal(6, 2) a;",
            {"name": "a", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        ),
        ("timestamp_ms a;", {"name": "a", "type": {"type": "long", "logicalType": "timestamp-millis"}}),
        (
            '@logicalType("timestamp-micros") long a;',
            {"name": "a", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        ),
        (
            '/** Why */ @x("t") array<union{null, R}> @aliases(["b"]) @order("ignore") a = [];',
            {
                "name": "a",
                "type": {"type": "array", "items": ["null", "a.R"], "x": "t"},
                "default": [],
                "aliases": ["b"],
                "order": "ignore",
                "doc": "Why",
            },
        ),
        (
            "map<array<bytes>> `record`;",
            {"name": "record", "type": {"type": "map", "values": {"type": "array", "items": "bytes"}}},
        ),
    ],
)
def test_field(field: str, expected: dict[str, Any]):
    assert one(field)["fields"] == [expected]


def test_schema_syntax_without_a_protocol():
    text = "namespace shop; schema Order; record Order { Kind kind; } enum Kind { A, B } = A;"
    (order, kind) = named_types(text)
    assert order.name == "shop.Order"
    assert json.loads(order.text)["fields"][0]["type"]["default"] == "A"
    assert kind == ("shop.Kind", '{"type":"enum","name":"shop.Kind","symbols":["A","B"],"default":"A"}')


def test_schema_in_json_is_accepted_too():
    ((name, _),) = named_types('{"type": "record", "name": "a.R", "fields": []}')
    assert name == "a.R"


def test_doc_comment_in_a_text_is_none():
    assert "doc" not in one('string a = "/** no */";')["fields"][0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("protocol P { record R { string } }", "line 1 column 32: `}` is not expected here"),
        ("protocol P { record R {", "line 1 column 23: the end of the file is not expected here"),
        ("protocol P { record R { # } }", "line 1 column 25: is not Avro IDL"),
        ('protocol P { import idl "x.avdl"; record R {} }', "imports are not supported, because nothing is fetched"),
        ("protocol P { record R { Missing a; } }", "line 1 column 25: type Missing is not defined in this file"),
        ("protocol P { record R {} record R {} }", "R is already defined"),
        ("protocol P { record R { @x(1) union{int} a; } }", "may have annotations"),
        ("protocol P { record R { int a; int a; } }", "already"),
        ("protocol P { void ping(); }", "at least one record"),
        ("protocol P { record R { " + "array<" * 70 + "int" + ">" * 70 + " a; } }", "at most 64 levels"),
        ("protocol P { " + "".join(f"record R{n} {{ R{n + 1} a; }} " for n in range(40)) + "record R40 {} }", "levels"),
        ("protocol P { " + "".join(f"record R{n} {{}} " for n in range(MAX_TYPES + 1)) + "}", "at most 100 types"),
        ("/* " + "x" * 70_000 + "*/ protocol P {}", "at most 65536 bytes"),
        ("protocol P { " + ";" * 25_000, "at most 20000 tokens"),
        ('{"protocol": "P", "types": 1}', "a list of types"),
        ("{", "needs JSON"),
        ("", "at least one record"),
    ],
)
def test_file_is_refused_with_place_and_reason(text: str, reason: str):
    with pytest.raises(SchemaRejectedError) as refused:
        named_types(text)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        r'record A { string x = "\ud800"; }',
        r'record A { string x = "\ude00\ud83d"; }',
        r'{"protocol": "p", "doc": "\ud800", "types": []}',
    ],
)
def test_unpaired_surrogate_is_refused(text: str):
    """It has no UTF-8 form: the sandbox worker could not send the type back."""
    with pytest.raises(SchemaRejectedError, match="unpaired surrogate"):
        named_types(text)


def test_two_escapes_of_a_surrogate_pair_are_one_character():
    (found,) = named_types(r'record A { string x = "\ud83d\ude00"; }')
    assert json.loads(found.text)["fields"][0]["default"] == "\U0001f600"
