"""Samples of units: values are cut and masked, and so are the names of fields below a masked value."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.plan.masked_fields import MaskedField
from dataplane.shadow.comparison import ComparedUnit
from dataplane.shadow.samples import ANY_DESTINATION, field_names, newest, sample_of
from dataplane.tables.shadows import (
    MOST_SAMPLE_FIELDS,
    MOST_SAMPLES,
    MOST_VALUE_CHARS,
    OTHER_FIELDS,
    FieldDifference,
    ShadowSample,
)

SECRET = "s3cr3t"


def unit(live: Any, shadow: Any, destination: str = "crm") -> ComparedUnit:
    its_live, its_shadow = (one if isinstance(one, bytes) else msgspec.json.encode(one) for one in (live, shadow))
    return ComparedUnit("different", 0, destination, its_live, its_shadow)


def masks(*paths: str) -> dict[str, frozenset[MaskedField]]:
    return {"crm": frozenset(MaskedField(tuple(path.split(".")) if path else (), "redact") for path in paths)}


@pytest.mark.parametrize(
    ("live", "shadow", "hidden", "expected"),
    [
        pytest.param({"a": SECRET}, {"a": "x"}, ["a"], [("a", '"***"', '"***"')], id="the field"),
        pytest.param({"a": {"b": SECRET}}, {"a": {}}, ["a"], [("a", '"***"', '"***"')], id="below a masked object"),
        pytest.param({"a": {SECRET: 1}}, {"a": {}}, ["a"], [("a", '"***"', '"***"')], id="a name in it"),
        pytest.param({"a": {"b": SECRET}}, {"a": 1}, ["a.b"], [("a", '{"b":"***"}', '"***"')], id="a part of it"),
        pytest.param({"a": {"b": SECRET}}, {}, ["a.b"], [("a", '{"b":"***"}', None)], id="missing on one side"),
        pytest.param(
            {"a": [{"b": SECRET}]}, {"a": [{"b": 1}]}, ["a.*.b"], [("a.0.b", '"***"', '"***"')], id="in a list"
        ),
        pytest.param(
            {"a": SECRET}, {"a": [SECRET]}, ["a.*"], [("a", '"***"', '["***"]')], id="where a list is expected"
        ),
        pytest.param([SECRET], [1], [""], [("", '"***"', '"***"')], id="the whole body"),
        pytest.param({"a": 1, "b": SECRET}, {"a": 2, "b": SECRET}, ["b"], [("a", "1", "2")], id="not the others"),
    ],
)
def test_masked_values_and_names_below_them_are_hidden(live: Any, shadow: Any, hidden: list[str], expected: Any):
    found = unit(live, shadow)
    sample = sample_of(found, 7, masks(*hidden))
    assert sample.fields == [FieldDifference(*one) for one in expected]
    assert field_names(found, masks(*hidden)) == [one[0] for one in expected]


FIELDS = st.dictionaries(st.sampled_from("abc"), st.sampled_from([SECRET, 1, [SECRET], {"a": SECRET}]), max_size=3)


@given(FIELDS, FIELDS)
def test_no_masked_value_is_in_a_sample(live: Any, shadow: Any):
    sample = sample_of(unit(live, shadow), 7, masks("a", "b", "c"))
    assert SECRET not in str(sample)


def test_bodies_that_are_not_json_are_hidden_if_anything_is_masked():
    assert sample_of(unit(b"a,b", b"a,c"), 1, {}).fields == [FieldDifference(OTHER_FIELDS, '"a,b"', '"a,c"')]
    assert SECRET not in str(sample_of(unit(SECRET.encode(), b"a,c"), 1, masks("x")).fields)


def test_unknown_destinations_have_the_masks_of_all():
    found = unit({"a": SECRET}, {"a": 1}, "third")
    assert SECRET not in str(sample_of(found, 1, {ANY_DESTINATION: masks("a")["crm"]}))


def test_values_and_fields_are_bounded():
    long = sample_of(unit({"a": "x" * 9_999}, {"a": "é" * 9_999}), 1, {}).fields[0]
    assert [len(one or "") for one in (long.live, long.shadow)] == [MOST_VALUE_CHARS, MOST_VALUE_CHARS]
    deep = {"n" * 90: {"n" * 90: {"n" * 90: 1}}}
    assert field_names(unit(deep, {"n" * 90: {"n" * 90: {}}}), {}) == [".".join(["n" * 90] * 2)]
    many = {f"f{number}": number for number in range(200)}
    assert len(sample_of(unit(many, {}), 1, {}).fields) == MOST_SAMPLE_FIELDS
    assert OTHER_FIELDS in field_names(unit(many, {}), {})


def test_newest_samples_of_each_kind_and_destination_are_kept_in_order():
    samples = [ShadowSample("different", name, number, 0) for number in range(20) for name in ("crm", "log")]
    kept = newest(samples)
    assert [one.position for one in kept if one.destination == "crm"] == list(range(20 - MOST_SAMPLES, 20))
    assert len(kept) == 2 * MOST_SAMPLES
