"""Evolution of typed columns: a table keeps its columns, gets new ones, and holds what its columns hold exactly."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.plan.typed_row import ColumnsSchema, EventColumns
from dataplane.schemas.column_fit import evolved, fit_of, is_held
from dataplane.schemas.columns import ColumnType
from tests.support.hostile_schemas import field, record


def schema(version: int, *fields: dict[str, Any]) -> ColumnsSchema:
    return ColumnsSchema(f"orders@{version}", json.dumps(record(*fields, name="Order")))


def typed(version: int, *fields: dict[str, Any], held: ColumnType | None = None) -> EventColumns:
    return EventColumns(schema(version, *fields), held)


def names(kind: ColumnType) -> list[tuple[str, Any]]:
    assert isinstance(kind, dict)
    return [(one["name"], one["type"]) for one in kind["fields"]]


def test_new_columns_come_last_and_old_ones_stay():
    first = typed(1, field("string", name="Id"), field("int", name="old"))
    second = typed(2, field("int", name="note"), field("string", name="ID"), held=first.type)
    assert names(second.type) == [("Id", "string"), ("old", "integer"), ("note", "integer")]
    assert second(b'{"ID":"a","note":1}').event == {"Id": "a", "note": 1}
    assert typed(1, field("string", name="Id"), field("int", name="old"), held=second.type).type == second.type


def test_columns_are_added_inside_arrays_maps_and_records():
    def nested(*fields: dict[str, Any]) -> dict[str, Any]:
        return {"type": "map", "values": {"type": "array", "items": record(*fields, name="Item")}}

    first = typed(1, field(nested(field("int", name="n")), name="f"))
    both = [field("int", name="n"), field("double", name="price")]
    second = typed(2, field(nested(*both), name="f"), held=first.type)
    assert second.type == typed(2, field(nested(*both), name="f")).type


@pytest.mark.parametrize(
    ("old", "new", "value", "expected"),
    [
        ("int", "long", 7, 7),
        ("int", "long", 1 << 31, None),
        ("long", "int", 7, 7),
        ("float", "double", 0.5, 0.5),
        ("float", "double", 0.1, None),
        ("float", "double", 1e300, None),
        ("double", "float", 0.5, 0.5),
        ("double", "long", 1 << 53, float(1 << 53)),
        ("double", "long", (1 << 53) + 1, None),
        ("int", "double", 1.0, None),
        ("int", "string", "7", None),
        ("string", "bytes", "x", None),
        ("int", {"type": "array", "items": "int"}, [1], None),
        ("boolean", "int", 1, None),
    ],
)
def test_value_of_another_type_is_stored_if_the_column_holds_it(old: Any, new: Any, value: Any, expected: Any):
    first = typed(1, field(old, name="f"))
    second = typed(2, field(new, name="f"), field("string", name="id"), held=first.type)
    row = second(json.dumps({"f": value, "id": "a"}).encode())
    assert row.event == {"f": expected, "id": "a"}
    assert type(row.event["f"]) is type(expected)
    if expected is None:
        assert row.event_error is not None
        assert row.event_error.startswith("/f: not stored, because the column has type ")
    else:
        assert row.event_error is None


def test_decimal_of_another_size_is_stored_if_its_digits_fit():
    def decimal(precision: int, scale: int) -> dict[str, Any]:
        return field({"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}, name="f")

    columns = typed(2, decimal(12, 3), held=typed(1, decimal(5, 2)).type)
    assert columns(b'{"f":"123.450"}').event == {"f": Decimal("123.45")}
    for body in (b'{"f":"1234.5"}', b'{"f":"0.001"}'):
        row = columns(body)
        assert row.event == {"f": None}
        assert row.event_error is not None


def test_event_of_another_kind_is_not_stored_and_its_schema_changes_no_column():
    held = typed(1, field("int", name="f")).type
    columns = EventColumns(ColumnsSchema("orders@2", '"string"'), held)
    assert columns.type == held
    row = columns(b'"x"')
    reason = "the event: not stored, because the column has type struct, and this version string"
    assert (row.event, row.event_error) == (None, reason)


def test_misfits_in_items_are_reported_once_with_their_place():
    items = {"type": "array", "items": record(field("int", name="n"), name="Item")}
    wider = {"type": "array", "items": record(field("long", name="n"), name="Item")}
    columns = typed(2, field(wider, name="items"), held=typed(1, field(items, name="items")).type)
    row = columns(json.dumps({"items": [{"n": 1}, {"n": 1 << 40}, {"n": 1 << 41}]}).encode())
    assert row.event == {"items": [{"n": 1}, {"n": None}, {"n": None}]}
    reason = "not stored, because the column has type integer, and this version long"
    assert row.event_error == f"/items/*/n: {reason}"


def test_nullable_type_that_becomes_a_union_keeps_its_column():
    first = typed(1, field(["null", "int"], name="f"))
    columns = typed(2, field(["null", "int", "string"], name="f"), held=first.type)
    assert names(columns.type) == [("f", "integer")]
    assert columns(b'{"f":null}').event_error is None
    assert "the column has type integer, and this version struct" in str(columns(b'{"f":"x"}').event_error)


LEAVES = st.sampled_from(["boolean", "integer", "long", "float", "double", "string", "decimal(9,2)", "timestamp"])


def _struct(fields: dict[str, Any]) -> dict[str, Any]:
    listed = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields.items()]
    return {"type": "struct", "fields": listed}


def _array(kind: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": kind, "containsNull": True}


STRUCTS = st.recursive(
    st.dictionaries(st.sampled_from("abcd"), LEAVES, min_size=1).map(_struct),
    lambda inner: st.dictionaries(
        st.sampled_from("abcd"), LEAVES | inner | inner.map(_array) | LEAVES.map(_array), min_size=1
    ).map(_struct),
    max_leaves=10,
)


def _leaves(kind: Any, place: str = "") -> dict[str, str]:
    if isinstance(kind, str):
        return {place: kind}
    if kind["type"] == "array":
        return {f"{place}[]": "array"} | _leaves(kind["elementType"], f"{place}[]/")
    inner = {f"{place}{{}}": "struct"}
    for one in kind["fields"]:
        inner |= _leaves(one["type"], f"{place}/{one['name']}")
    return inner


@given(STRUCTS, STRUCTS)
def test_evolution_keeps_every_column_and_its_type_and_is_idempotent(held: Any, new: Any):
    found = evolved(held, new)
    assert _leaves(held).items() <= _leaves(found).items()
    assert set(_leaves(found)) <= set(_leaves(held)) | set(_leaves(new))
    assert evolved(found, new) == found
    assert evolved(found, held) == found
    assert fit_of(held, found) is None, "rows of the earlier version still fit as they are"


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from(["integer", "long", "float", "double"]))
def test_number_is_held_only_if_it_is_read_back_equal(value: int, held: str):
    limits = {"integer": 31, "long": 63}
    if not is_held(value, "long", held):
        return
    assert int(float(value)) == value if held in ("float", "double") else abs(value) <= 1 << limits[held]
