"""Typed columns: the type of every Avro type in Spark, and values that are exactly those of the event."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.plan.typed_row import ColumnsSchema, EventColumns
from dataplane.schemas.avro import tree_of
from dataplane.schemas.columns import MAX_COLUMNS, column_of
from dataplane.schemas.types import SchemaRejectedError
from tests.support.hostile_schemas import field, record


def logical(base: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": name, **more}


DECIMAL = logical("bytes", "decimal", precision=12, scale=2)
NAMED_FIXED = {"type": "fixed", "name": "Digest", "size": 2}


def columns_of(kind: Any) -> EventColumns:
    return EventColumns(ColumnsSchema("orders@1", json.dumps(record(field(kind, name="f")))), None)


def stored(kind: Any, value: Any) -> tuple[Any, Any]:
    """Return column type and stored value of a field."""
    columns = columns_of(kind)
    row = columns(json.dumps({"f": value}).encode())
    assert row.event_error is None
    assert isinstance(columns.type, dict)
    return columns.type["fields"][0]["type"], row.event["f"]


@pytest.mark.parametrize(
    ("kind", "value", "column", "expected"),
    [
        ("boolean", True, "boolean", True),
        ("int", -1, "integer", -1),
        ("long", 1 << 40, "long", 1 << 40),
        ("float", 0.5, "float", 0.5),
        ("double", 1, "double", 1.0),
        ("string", "ä", "string", "ä"),
        ("bytes", "\u00ff\u0000", "binary", b"\xff\x00"),
        (NAMED_FIXED, "ab", "binary", b"ab"),
        ({"type": "enum", "name": "Color", "symbols": ["RED"]}, "RED", "string", "RED"),
        ("null", None, "string", None),
        (["null", "int"], None, "integer", None),
        (["int", "null"], 3, "integer", 3),
        (["string"], "x", "string", "x"),
        (DECIMAL, "9999999999.99", "decimal(12,2)", Decimal("9999999999.99")),
        (DECIMAL | {"precision": 38}, "-0.01", "decimal(38,2)", Decimal("-0.01")),
        (DECIMAL | {"precision": 39}, "1" * 37 + ".50", "string", "1" * 37 + ".50"),
        (logical("int", "date"), "9999-12-31", "date", date(9999, 12, 31)),
        (
            logical("long", "timestamp-millis"),
            "2026-11-26T12:00:00.123+01:00",
            "timestamp",
            datetime(2026, 11, 26, 11, 0, 0, 123_000, UTC),
        ),
        (
            logical("long", "timestamp-micros"),
            "0001-01-01T00:00:00.000001Z",
            "timestamp",
            datetime(1, 1, 1, 0, 0, 0, 1, UTC),
        ),
        (logical("long", "timestamp-nanos"), "1970-01-01T00:00:00.000000001Z", "long", 1),
        (logical("long", "local-timestamp-millis"), "2026-11-26T12:00:00", "string", "2026-11-26T12:00:00"),
        (logical("int", "time-millis"), "00:00:01.5", "integer", 1_500),
        (logical("long", "time-micros"), "00:00:01.5", "long", 1_500_000),
        (
            logical("string", "uuid"),
            "6BA7B810-9DAD-11D1-80B4-00C04FD430C8",
            "string",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        ),
        (
            logical("string", "time-uuid"),
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8".replace("6ba7b810", "7ba7b810").replace("11d1", "11f0"),
            "string",
            "7ba7b810-9dad-11f0-80b4-00c04fd430c8",
        ),
    ],
)
def test_type_has_its_column_and_exact_value(kind: Any, value: Any, column: str, expected: Any):
    assert stored(kind, value) == (column, expected)


def test_containers_become_structs_arrays_and_maps():
    inner = record(field(DECIMAL, name="price"), name="Item")
    column, value = stored({"type": "array", "items": inner}, [{"price": "1.50"}])
    assert value == [{"price": Decimal("1.50")}]
    assert (column["type"], column["elementType"]["fields"][0]["type"]) == ("array", "decimal(12,2)")
    column, value = stored({"type": "map", "values": ["null", DECIMAL]}, {"a": "1.50", "b": None})
    assert value == {"a": Decimal("1.50"), "b": None}
    assert (column["keyType"], column["valueType"]) == ("string", "decimal(12,2)")


def test_union_has_a_column_for_each_branch():
    kind = ["null", "string", DECIMAL, record(field("int", name="n"), name="shop.Item")]
    column, value = stored(kind, {"n": 1})
    assert [one["name"] for one in column["fields"]] == ["member_string", "member_bytes", "member_item"]
    assert value == {"member_item": {"n": 1}}
    assert stored(kind, "1.50")[1] == {"member_string": "1.50"}
    assert stored(kind, {"bytes": "1.50"})[1] == {"member_bytes": Decimal("1.50")}
    assert stored(kind, None)[1] is None


def test_record_inside_itself_and_empty_record_are_text_of_json():
    node = record(field(DECIMAL, name="total"), field(["null", "Node"], name="next"), name="Node")
    column, value = stored(node, {"total": 1, "next": {"total": "2.00", "next": None}})
    assert [one["type"] for one in column["fields"]] == ["decimal(12,2)", "string"]
    assert value == {"total": Decimal("1.00"), "next": '{"total":"2.00","next":null}'}
    assert stored(record(name="Empty"), {}) == ("string", "{}")


def test_names_that_differ_only_in_case_and_too_many_columns_are_refused():
    for first, second in (("Total", "total"), ("total", "Total")):
        twice = record(field("int", name=first), field("int", name=second))
        with pytest.raises(SchemaRejectedError, match=f"{first} and {second}"):
            column_of(tree_of(json.dumps(twice)))
    union = [record(name="a.Item"), record(name="b.Item")]
    with pytest.raises(SchemaRejectedError, match="two of member_item"):
        column_of(tree_of(json.dumps(record(field(union, name="f")))))
    nested: Any = record(field("int", name="n"), name="R0")
    for level in range(1, 40):  # 2^40 columns in 40 types
        nested = record(field(nested, name="a"), field(f"R{level - 1}", name="b"), name=f"R{level}")
    with pytest.raises(SchemaRejectedError, match=f"at most {MAX_COLUMNS}"):
        column_of(tree_of(json.dumps(nested)))


def test_event_that_does_not_fit_has_an_error_without_values_in_place_of_the_event():
    columns = columns_of(DECIMAL)
    for body, error in (
        (b'{"f":"1.505"}', "/f: needs at most 2 digits after the point"),
        (b'{"f":1,"secret":"hunter2"}', "/secret: is not a field of the schema"),
        (b"{}", "/f: is required, but missing"),
        (b"\xff", "needs JSON"),
        (b"", "needs JSON"),
        (b"[" * 100_000, "needs at most 64 levels"),
    ):
        row = columns(body)
        assert row.event is None
        assert row.event_schema == "orders@1"
        assert row.event_error is not None
        assert row.event_error.startswith(error)
        assert "hunter2" not in row.event_error


@given(st.decimals(-(10**10) + 1, 10**10 - 1, places=2), st.booleans())
def test_any_decimal_is_exact_as_text_and_as_number(value: Decimal, as_text: bool):
    body = json.dumps({"f": f"{value:f}"}) if as_text else f'{{"f":{value:f}}}'
    row = columns_of(DECIMAL)(body.encode())
    assert row.event == {"f": value}
    assert row.event["f"].as_tuple().exponent == -2


@given(st.datetimes(timezones=st.just(UTC)))
def test_any_time_is_exact(moment: datetime):
    row = columns_of(logical("long", "timestamp-micros"))(json.dumps({"f": moment.isoformat()}).encode())
    assert row.event == {"f": moment}


@given(st.binary(max_size=300))
def test_any_bytes_are_a_row(body: bytes):
    row = columns_of(["null", "string", "long"])(body)
    assert (row.event is None) is (row.event_error is not None)
