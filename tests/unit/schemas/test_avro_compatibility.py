"""Compatibility of Avro schemas where the specification, Java and this registry differ, and the places of findings."""

import json
from typing import Any

import pytest

from dataplane.schemas.compatibility import unreadable
from dataplane.schemas.parse import parse
from dataplane.schemas.types import SchemaRejectedError, SchemaType
from tests.support.hostile_schemas import field, record


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def long(logical: str) -> dict[str, Any]:
    return {"type": "long", "logicalType": logical}


def found(reader: Any, writer: Any) -> list[tuple[str, str]]:
    new, old = (parse(SchemaType.AVRO, json.dumps(one)) for one in (reader, writer))
    return [(one.path, one.reason) for one in unreadable(new, old)]


MEANING = ("/logicalType", "LOGICAL_TYPE_MISMATCH")


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        (decimal(9, 2), decimal(6, 2), []),
        (decimal(6, 2), decimal(9, 2), [MEANING]),
        (decimal(9, 3), decimal(9, 2), [MEANING]),
        (decimal(9, 2), "bytes", [MEANING]),
        ("bytes", decimal(9, 2), []),
        (long("timestamp-micros"), long("timestamp-millis"), [MEANING]),
        (long("timestamp-micros"), "long", [MEANING]),
        ("long", long("timestamp-micros"), []),
        (long("timestamp-millis"), {"type": "int", "logicalType": "date"}, [MEANING]),
        ({"type": "string", "logicalType": "uuid"}, "string", [MEANING]),
        (["null", decimal(9, 3)], ["null", decimal(9, 2)], [("/1/logicalType", "LOGICAL_TYPE_MISMATCH")]),
    ],
)
def test_logical_types_must_agree(reader: Any, writer: Any, expected: list[tuple[str, str]]):
    assert found(reader, writer) == expected


def test_branch_of_the_same_type_is_chosen_before_one_by_promotion():
    assert found([long("timestamp-micros"), "int"], ["int"]) == []
    assert found([long("timestamp-micros"), "int"], "int") == []
    assert found([long("timestamp-micros"), "string"], "int") == [MEANING]


def test_error_inside_a_branch_has_its_own_path():
    reader, writer = record(field("int"), name="a.R"), record(field("string"), name="b.R")
    assert found(["null", reader], ["null", writer]) == [("/1/fields/0/type", "TYPE_MISMATCH")]


def test_alias_is_a_full_name():
    assert found(record(name="a.New", aliases=["Old"]), record(name="a.Old")) == []
    assert found(record(name="a.New", aliases=["b.Old"]), record(name="b.Old")) == []
    assert found(record(name="a.New", aliases=["Old"]), record(name="b.Old")) == [("/name", "NAME_MISMATCH")]


def test_field_takes_its_value_by_an_alias():
    new = record(field("int", name="new", aliases=["old"]))
    assert found(new, record(field("int", name="old"))) == []
    assert found(new, record(field("string", name="old"))) == [("/fields/0/type", "TYPE_MISMATCH")]
    both = record(field("int", name="old"), field("int", name="new"))
    assert found(new, both) == [("/fields/0", "AMBIGUOUS_ALIAS")]
    # A field that the reader has by name is not taken by an alias.
    assert found(record(field("int", name="old"), field("int", name="new", aliases=["old"])), both) == []


def test_recursive_pair_is_compared_once():
    inner = ["null", "R"]
    assert found(record(field(inner), field("long", name="g")), record(field(inner), field("int", name="g"))) == []
    assert found(record(field(inner), field("int", name="g")), record(field(inner), field("long", name="g"))) == [
        ("/fields/1/type", "TYPE_MISMATCH")
    ]


def test_comparison_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dataplane.schemas.compatibility.MAX_COMPARISONS", 3)
    fields = [field("int", name=f"f{number}") for number in range(9)]
    assert found(record(*fields), record(*fields[::-1])) == [("/fields/2/type", "TOO_COMPLEX")]


def test_one_alias_of_two_fields_is_refused():
    schema = record(field("int", name="a", aliases=["x"]), field("int", name="b", aliases=["x"]))
    with pytest.raises(SchemaRejectedError, match="x is also an alias of another field"):
        parse(SchemaType.AVRO, json.dumps(schema))
