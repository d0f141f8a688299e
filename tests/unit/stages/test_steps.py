"""What each step does to one body, and how it fails: naming path and cause, never the value."""

import copy
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.plan.compiled import Stage, StageError
from dataplane.spec import Cast, Keep, Mask, Remove, Rename, Set, Step
from dataplane.stages.paths import MISSING, compile_path, get, put, remove
from dataplane.stages.steps import StepError, compile_step

ORDER = {"id": 7, "total": "12.50", "lines": [{"sku": "a", "n": 1}, {"sku": "b"}], "who": {"mail": "ada@x.example"}}


def changed(step: Step, body: Any = ORDER) -> Any:
    return compile_step(step)(copy.deepcopy(body))


@pytest.mark.parametrize(
    ("step", "path", "expected"),
    [
        pytest.param(Set("a", 1), "a", 1, id="set a new field"),
        pytest.param(Set("a.b.c", None), "a.b.c", None, id="set makes the objects on the way"),
        pytest.param(Set("id", [1]), "id", [1], id="set over a value of another type"),
        pytest.param(Set("lines.1.sku", "c"), "lines.1.sku", "c", id="set inside an array"),
        pytest.param(Remove("who.mail"), "who", {}, id="remove leaves the holder"),
        pytest.param(Remove("lines.0"), "lines", [{"sku": "b"}], id="remove an element"),
        pytest.param(Rename("total", "sum.gross"), "sum.gross", "12.50", id="rename into a new object"),
        pytest.param(Rename("id", "id.value"), "id.value", 7, id="rename below itself"),
        pytest.param(Cast("id", "string"), "id", "7", id="number to text"),
        pytest.param(Mask("total"), "total", "***", id="redact"),
        pytest.param(Mask("who.mail", "partial"), "who.mail", "***mple", id="partial keeps four"),
        pytest.param(Mask("total", "partial"), "total", "***", id="partial hides short values whole"),
        pytest.param(Mask("lines"), "lines", "***", id="mask a whole branch"),
    ],
)
def test_a_step_changes_its_field(step: Step, path: str, expected: Any):
    assert get(changed(step), compile_path(path)) == expected


@pytest.mark.parametrize(
    "step", [Remove("nope.x"), Remove("lines.9"), Rename("nope", "a"), Mask("nope.x"), Remove("id.x")]
)
def test_what_is_absent_is_left_absent(step: Step):
    assert changed(step) == ORDER


@pytest.mark.parametrize(
    ("step", "body", "path", "cause"),
    [
        pytest.param(Set("id.x", 1), ORDER, "id.x", "needs an object", id="set below a number"),
        pytest.param(Set("lines.5", 1), ORDER, "lines.5", "needs an object", id="set past an array's end"),
        pytest.param(Set("a", 1), [1], "a", "needs an object", id="set a field of an array"),
        pytest.param(Set("a", 1), 3, "a", "needs an object", id="set a field of a scalar"),
        pytest.param(Rename("id", "total.x"), ORDER, "total.x", "needs an object", id="rename below text"),
        pytest.param(Keep(["a"]), [1], "$", "keep needs an object, got an array", id="keep of an array"),
        pytest.param(Keep(["a"]), None, "$", "got null", id="keep of null"),
        pytest.param(Cast("nope", "int"), ORDER, "nope", "got nothing", id="cast of nothing"),
        pytest.param(Cast("a", "int"), {"a": None}, "a", "got null", id="cast of null"),
        pytest.param(Cast("who", "string"), ORDER, "who", "an object cannot be cast to string", id="object to text"),
    ],
)
def test_a_step_that_cannot_be_done_names_path_and_cause(step: Step, body: Any, path: str, cause: str):
    with pytest.raises(StepError) as failed:
        changed(step, body)
    assert failed.value.path == path
    assert cause in failed.value.cause


@pytest.mark.parametrize(
    ("to", "value", "expected"),
    [
        ("int", "42", 42), ("int", -1, -1), ("int", 3.0, 3), ("int", "007", 7),
        ("bool", "true", True), ("bool", "0", False), ("bool", 1, True), ("bool", False, False),
        ("string", 1.5, "1.5"), ("string", True, "true"), ("string", "x", "x"),
        ("datetime", "2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
        ("datetime", 0, "1970-01-01T00:00:00Z"), ("datetime", 1.5, "1970-01-01T00:00:01.500000Z"),
        ("datetime", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
    ],
)  # fmt: skip
def test_casts(to: Any, value: Any, expected: Any):
    result = changed(Cast("v", to), {"v": value})["v"]
    assert result == expected
    assert type(result) is type(expected)


def test_a_decimal_keeps_its_digits_on_the_wire():
    assert Stage("normalize", [Cast("v", "decimal")])(b'{"v":"12.50"}') == b'{"v":12.50}'


@pytest.mark.parametrize(
    ("to", "value"),
    [
        ("int", "1.5"), ("int", 1.5), ("int", True), ("int", "x"), ("int", {}), ("int", "9" * 5_000),
        ("decimal", "NaN"), ("decimal", "Infinity"), ("decimal", "1,5"), ("decimal", True), ("decimal", []),
        ("bool", "yes"), ("bool", 2), ("bool", {}), ("bool", "TRUE"),
        ("string", {}), ("string", []),
        ("datetime", "2026-01-02T03:04:05"), ("datetime", "yesterday"), ("datetime", True), ("datetime", {}),
        ("datetime", 1e17), ("datetime", -1e18), ("datetime", 1e300), ("datetime", 2**62),
        ("datetime", "0001-01-01T00:00:00+14:00"), ("datetime", "9999-12-31T23:59:59-14:00"),
    ],
)  # fmt: skip
def test_casts_that_cannot_be_done_are_failed_steps(to: Any, value: Any):
    with pytest.raises(StepError, match=f"cannot be cast to {to}") as failed:
        changed(Cast("v", to), {"v": value})
    assert failed.value.path == "v"


def test_a_constant_that_is_a_container_is_not_shared_between_messages():
    edit = compile_step(Set("tags", ["new"]))
    first = edit({})
    first["tags"].append("changed")
    assert edit({}) == {"tags": ["new"]}


SECRET = "the-payload-itself"


@pytest.mark.parametrize("to", ["int", "decimal", "bool", "datetime"])
def test_an_error_never_carries_the_value(to: Any):
    with pytest.raises(StageError) as failed:
        Stage("normalize", [Cast("v", to)])(msgspec.json.encode({"v": SECRET}))
    assert SECRET not in str(failed.value)
    assert failed.value.detail.startswith("normalize[0] cast v:")


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        pytest.param(b"\x00\x01", "decode", id="binary"),
        pytest.param(b'{"a":"\xff"}', "decode", id="text that is not UTF-8"),
        pytest.param(b'"\xff"', "decode", id="bare text that is not UTF-8"),
        pytest.param(b"", "decode", id="empty"),
        pytest.param(b"[" * 50_000, "decode", id="too deep"),
        pytest.param(b'{"a":NaN}', "decode", id="NaN"),
        pytest.param(b"[1]", "step", id="a body of another shape"),
    ],
)
def test_a_body_no_step_can_work_on_is_a_failed_stage_and_no_crash(body: bytes, cause: str):
    with pytest.raises(StageError) as failed:
        Stage("normalize", [Set("b", 1)])(body)
    assert failed.value.cause == cause


@given(st.binary(max_size=200))
def test_without_steps_the_bytes_pass_untouched(body: bytes):
    assert Stage("normalize", [])(body) is body


@given(st.binary(max_size=60))
def test_no_bytes_whatever_end_a_stage_with_another_error(body: bytes):
    with suppress(StageError):
        Stage("normalize", [Set("a", 1), Cast("v", "datetime"), Keep(["a"])])(body)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
bodies = st.dictionaries(st.sampled_from("abcdef"), json_values, max_size=6)


@given(bodies, st.sets(st.sampled_from("abcdef"), min_size=1))
def test_keep_leaves_the_rest_unchanged_and_in_order(body: dict[str, Any], fields: set[str]):
    kept = compile_step(Keep(sorted(fields)))(dict(body))
    assert list(kept.items()) == [(name, value) for name, value in body.items() if name in fields]


@given(bodies, st.sampled_from("abcdef"))
def test_remove_leaves_the_rest_unchanged(body: dict[str, Any], field: str):
    rest = compile_step(Remove(field))(dict(body))
    assert list(rest.items()) == [(name, value) for name, value in body.items() if name != field]


@given(bodies, st.sampled_from("abcdef"))
def test_rename_moves_one_value_and_leaves_the_rest_unchanged(body: dict[str, Any], field: str):
    renamed = compile_step(Rename(field, "new"))(dict(body))
    expected = {name: value for name, value in body.items() if name != field}
    assert renamed == (expected | {"new": body[field]} if field in body else expected)


names = st.text(
    st.characters(blacklist_characters=".", blacklist_categories=("Zs", "Cc", "Cs")), min_size=1, max_size=4
)


@given(st.lists(names, min_size=1, max_size=5), json_values)
def test_what_was_put_is_got_and_what_was_removed_is_missing(segments: list[str], value: Any):
    body: dict[str, Any] = {}
    put(body, tuple(segments), value)
    assert get(body, tuple(segments)) == value
    assert remove(body, tuple(segments)) == value
    assert get(body, tuple(segments)) is MISSING
    assert remove(body, tuple(segments)) is MISSING


@given(json_values, st.lists(names | st.sampled_from(["0", "1", "-1", "٣", "²"]), min_size=1, max_size=4))
def test_no_path_into_any_value_ends_in_another_error(body: Any, segments: list[str]):
    get(body, tuple(segments))
    try:
        put(body, tuple(segments), 1)
    except TypeError:
        return
    assert get(body, tuple(segments)) == 1
