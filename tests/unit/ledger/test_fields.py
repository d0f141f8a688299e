"""Field samples hold only names, types, categories and sketches, are bounded for any input, hold nothing private."""

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, decode_audit, encode
from dataplane.ledger.fields import (
    DEEPEST,
    LONGEST_NAME,
    MOST_FIELDS,
    MOST_NUMBERS,
    MOST_VALUES,
    FieldCount,
    FieldCounter,
    FieldObservation,
)
from dataplane.ledger.number_sketch import NumberSketch


def told(*bodies: Any, with_values: bool = True) -> dict[str, FieldCount]:
    counter = FieldCounter(with_values=with_values)
    for body in bodies:
        counter.add(body)
    sample = counter.observation("p", "shop", 7)
    assert sample.events == len(bodies)
    return {one.path: one for one in sample.fields}


def test_fields_are_counted_by_path_and_type_without_the_elements_of_arrays():
    found = told({"user": {"country": "DE"}, "n": 1.5}, {"user": None, "lines": [{"sku": 1}]})
    assert {path: (one.present, one.types) for path, one in found.items()} == {
        "$": (2, {"object": 2}),
        "user": (2, {"object": 1, "null": 1}),
        "user.country": (1, {"string": 1}),
        "n": (1, {"number": 1}),
        "lines": (1, {"array": 1}),
    }


def test_body_that_is_not_an_object_or_not_json_is_counted_as_a_type_of_the_root():
    counter = FieldCounter(with_values=True)
    counter.add([1])
    counter.add_unreadable()
    (body,) = counter.observation("p", "shop", 7).fields
    assert (body.path, body.present, body.types) == ("$", 2, {"array": 1, "no JSON": 1})


@pytest.mark.parametrize(
    ("values", "category"),
    [
        pytest.param(["DE", "FR"], {"DE": 9, "FR": 9}, id="short words"),
        pytest.param([True, False], {"true": 9, "false": 9}, id="yes and no"),
        pytest.param([200, 404], {"200": 9, "404": 9}, id="small numbers"),
        pytest.param(["DE", None], {"DE": 9}, id="null is a type"),
        pytest.param([0.5, 1.5], None, id="measures"),
        pytest.param([1_000, 2_000], None, id="large numbers"),
        pytest.param(["ada@example.com"], None, id="an address"),
        pytest.param(["4111 1111 1111 1111"], None, id="a card"),
        pytest.param(["DE", "n" * 25], None, id="a text among words"),
        pytest.param([f"v{number}" for number in range(MOST_VALUES + 1)], None, id="too many"),
        pytest.param(["DE", {"code": "FR"}], None, id="an object among them"),
    ],
)
def test_values_are_reported_for_categories_only(values: list[Any], category: dict[str, int] | None):
    bodies = [{"x": value} for value in values * 9]
    assert told(*bodies)["x"].values == category
    assert told(*bodies, with_values=False)["x"].values is None


def test_rare_value_is_not_reported():
    bodies = [{"x": "DE"}] * 3 + [{"x": "Ada"}] * 2 + [{"x": "Bob"}]
    assert told(*bodies)["x"].values == {"DE": 3}


def test_numbers_are_sketched_and_nothing_else():
    found = told({"score": 0.25, "on": True}, {"score": -3, "on": False}, {"score": "0.5"}, {"score": None}, {})
    assert NumberSketch.decode(found["score"].numbers or b"").count == 2
    assert [path for path, one in found.items() if one.numbers] == ["score"]
    assert told({"score": 0.25}, with_values=False)["score"].numbers is None


@pytest.mark.parametrize("large", [1_000_000_000, -1_000_000_000, 1.7e12, 10**400])
def test_field_with_a_number_as_large_as_times_ids_and_cards_is_not_sketched(large: float):
    bodies: list[Any] = [{"x": 1, "y": 1}, {"x": large}, {"x": 2}]
    found = told(*bodies, {f"n{number}": 1 for number in range(MOST_NUMBERS)})
    assert found["x"].numbers is None
    assert sum(one.numbers is not None for one in found.values()) == MOST_NUMBERS, "its place is free again"


def test_number_of_sketches_is_bounded_and_closed_objects_use_none():
    bodies = [{"users": {f"id{number}": {"n": 1}}, "total": 5} for number in range(MOST_FIELDS)]
    found = told(*bodies, {f"n{number}": 1 for number in range(MOST_FIELDS - 50)})
    sketched = {path for path, one in found.items() if one.numbers}
    assert len(sketched) == MOST_NUMBERS == 20
    assert not any(path.startswith("users") for path in sketched)


def test_map_keyed_by_ids_is_closed_and_all_other_fields_are_reported():
    bodies = [{"users": {f"id{number}": {"n": 1}}, "kind": "a"} for number in range(MOST_FIELDS)]
    found = told(*bodies)
    assert set(found) == {"$", "users", "kind"}
    assert (found["users"].closed, found["users"].present, found["kind"].present) == (True, MOST_FIELDS, MOST_FIELDS)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=60), inner, max_size=60),
    max_leaves=150,
)


@given(st.lists(json, max_size=6))
@example([{f"f{number}": number for number in range(3 * MOST_FIELDS)}])
@example([{f"a{number}": {f"b{below}": below for below in range(20)} for number in range(20)}])
def test_sample_of_any_bodies_is_bounded_and_never_overcounts(bodies: list[Any]):
    found = told(*bodies)
    assert len(found) <= MOST_FIELDS
    for path, one in found.items():
        assert len(path) <= (LONGEST_NAME + 1) * DEEPEST
        assert path == "$" or path.isprintable()
        assert "." in path or one.present <= len(bodies)
        assert sum(one.types.values()) == one.present
        assert sum((one.values or {}).values()) <= one.present
        if one.numbers:
            assert NumberSketch.decode(one.numbers).count <= one.types["number"]
    assert sum(one.numbers is not None for one in found.values()) <= MOST_NUMBERS


def test_samples_survive_audit_records_and_those_of_the_previous_release_have_none():
    sample = FieldObservation(
        "p", "shop", 7, 3, [FieldCount("$", 3, {"object": 3}), FieldCount("x", 2, {}, {"DE": 2}, True)]
    )
    audit = AuditRecord(AUDIT_VERSION, "c1", "process-0", "process", 0, [], [], [], [], None, [sample])
    assert decode_audit(encode(audit)).fields == [sample]
    before = msgspec.msgpack.encode(msgspec.msgpack.decode(encode(audit))[:10])
    assert decode_audit(before).fields == []


class _FieldCountBefore(msgspec.Struct, array_like=True, frozen=True):
    """A field as the previous release reads and writes it."""

    path: str
    present: int
    types: dict[str, int]
    values: dict[str, int] | None = None
    closed: bool = False


def test_reader_of_the_previous_release_ignores_sketches_and_its_writer_sends_none():
    new = told(*[{"x": 0.5}] * 3)["x"]
    assert new.numbers
    old = msgspec.msgpack.decode(msgspec.msgpack.encode(new), type=_FieldCountBefore)
    assert old == _FieldCountBefore("x", 3, {"number": 3}, None, False)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(old), type=FieldCount).numbers is None
