"""Differences of two JSON values."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.shadow.differences import MOST_DEPTH, MOST_DIFFERENCES, differences, is_same
from dataplane.stages.decoding import decode_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text("ab.* ", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.*", max_size=2), inner, max_size=3),
    max_leaves=10,
)


def paths(live: Any, shadow: Any) -> list[str]:
    return [".".join(one.path) for one in differences(live, shadow)]


@pytest.mark.parametrize(
    ("live", "shadow", "expected"),
    [
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, [], id="the order of members does not matter"),
        pytest.param({"a": 1}, {"a": 1.0}, ["a"], id="1 and 1.0 differ"),
        pytest.param({"a": 1}, {"a": True}, ["a"], id="1 and true differ"),
        pytest.param({"a": [1]}, {"a": [1.0]}, ["a.0"], id="also in an array"),
        pytest.param({"a": None}, {}, ["a"], id="null and missing differ"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}, ["a.b"], id="only the field itself"),
        pytest.param({"a": [1, 2]}, {"a": [1]}, ["a"], id="arrays of different lengths differ as a whole"),
        pytest.param({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, ["a.0.b"], id="an element by its index"),
        pytest.param([1], [2], [""], id="a body that is no object differs as a whole"),
        pytest.param({"a": 1}, [1], [""], id="one body is an object"),
        pytest.param({"x": {"a.b": 1}}, {"x": {"a.b": 2}}, ["x"], id="a name that a path cannot have"),
        pytest.param({"x": {"*": 1}}, {"x": {"*": 2}}, ["x"], id="a name with a meaning in paths"),
    ],
)
def test_differences_are_named_by_path(live: Any, shadow: Any, expected: list[str]):
    assert paths(live, shadow) == expected


def test_depth_and_count_are_bounded():
    live, shadow = 1, 2
    for _ in range(200):
        live, shadow = {"a": live}, {"a": shadow}  # type: ignore[assignment]
    assert paths(live, shadow) == [".".join("a" * MOST_DEPTH)]
    assert paths({"x": {"n" * 101: 1}}, {"x": {}}) == ["x"]
    many = {f"f{number}": 1 for number in range(2 * MOST_DIFFERENCES)}
    assert len(differences(many, {})) == MOST_DIFFERENCES


@given(JSON)
def test_value_has_no_difference_from_itself(value: Any):
    again = decode_json(json.dumps(value).encode())
    assert is_same(again, decode_json(json.dumps(value).encode()))
    assert differences(again, decode_json(json.dumps(value).encode())) == []


@given(JSON, JSON)
def test_two_values_differ_exactly_if_they_are_not_the_same(one: Any, other: Any):
    left, right = (decode_json(json.dumps(value).encode()) for value in (one, other))
    is_equal = json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
    assert (differences(left, right) == []) == is_equal or left == right  # 0.0 and -0.0 are equal values
    assert bool(differences(left, right)) == bool(differences(right, left))
