"""Effect of each step on one body, and its failures, which name path and cause, never the value."""

import copy
import tracemalloc
from contextlib import suppress
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.expr import CostAllowance
from dataplane.plan.stage import CompiledSteps, StageError, decode, encode
from dataplane.spec import (
    CastStep,
    DefaultStep,
    FilterStep,
    KeepStep,
    MapStep,
    MaskStep,
    PeekStepSpec,
    RemoveStep,
    RenameStep,
    SetStep,
    Step,
)
from dataplane.stages.errors import StepError
from dataplane.stages.explode import MAX_CHILDREN, explode
from dataplane.stages.paths import MISSING, compile_path, get, put, remove
from dataplane.stages.steps import DROPPED, StepContext, compile_step
from tests.support.cpu import cpu_s

ORDER = {"id": 7, "total": "12.50", "lines": [{"sku": "a", "n": 1}, {"sku": "b"}], "who": {"mail": "ada@x.example"}}


def changed(step: Step, body: Any = ORDER, **about: Any) -> Any:
    return compile_step(step, b"salt")(copy.deepcopy(body), StepContext(**about), CostAllowance())


def staged(steps: list[Step], body: bytes) -> bytes:
    return encode(CompiledSteps("normalize", steps)(decode(body)), "normalize")


@pytest.mark.parametrize(
    ("step", "path", "expected"),
    [
        pytest.param(SetStep("a", 1), "a", 1, id="set a new field"),
        pytest.param(SetStep("a.b.c", None), "a.b.c", None, id="set makes the objects on the way"),
        pytest.param(SetStep("id", [1]), "id", [1], id="set over a value of another type"),
        pytest.param(SetStep("lines.1.sku", "c"), "lines.1.sku", "c", id="set inside an array"),
        pytest.param(RemoveStep("who.mail"), "who", {}, id="remove leaves the holder"),
        pytest.param(RemoveStep("lines.0"), "lines", [{"sku": "b"}], id="remove an element"),
        pytest.param(RenameStep("total", "sum.gross"), "sum.gross", "12.50", id="rename into a new object"),
        pytest.param(RenameStep("id", "id.value"), "id.value", 7, id="rename below itself"),
        pytest.param(CastStep("id", "string"), "id", "7", id="number to text"),
        pytest.param(MaskStep("total"), "total", "***", id="redact"),
        pytest.param(MaskStep("who.mail", "partial"), "who.mail", "***mple", id="partial keeps four"),
        pytest.param(MaskStep("total", "partial"), "total", "***", id="partial hides short values whole"),
        pytest.param(MaskStep("lines"), "lines", "***", id="mask a whole branch"),
        pytest.param(SetStep("lines.*.n", 0), "lines", [{"sku": "a", "n": 0}, {"sku": "b", "n": 0}], id="set in each"),
        pytest.param(RemoveStep("lines.*.sku"), "lines", [{"n": 1}, {}], id="remove from each"),
        pytest.param(RemoveStep("lines.*"), "lines", [], id="remove each element"),
        pytest.param(RemoveStep("*.mail"), "who", {}, id="remove from each value of an object"),
        pytest.param(MaskStep("lines.*.sku"), "lines", [{"sku": "***", "n": 1}, {"sku": "***"}], id="mask in each"),
        pytest.param(DefaultStep("total", 0), "total", "12.50", id="default leaves what is there"),
        pytest.param(DefaultStep("sum", 0), "sum", 0, id="default puts what is absent"),
        pytest.param(DefaultStep("lines.*.n", 9), "lines.1.n", 9, id="default in each"),
        pytest.param(
            DefaultStep("who.name.first", []), "who.name", {"first": []}, id="default makes objects on the way"
        ),
        pytest.param(MapStep("sum", "double(body.total) * 2.0"), "sum", 25.0, id="map computes"),
        pytest.param(MapStep("skus", "body.lines.map(l, l.sku)"), "skus", ["a", "b"], id="map gives containers"),
        pytest.param(
            MapStep("at", "timestamp('2026-01-31T12:00:00+01:00')"), "at", "2026-01-31T11:00:00Z", id="map times"
        ),
        pytest.param(MapStep("$", "body.lines[0]"), "sku", "a", id="map of the whole body"),
        pytest.param(KeepStep(["id", "who.mail"]), "who", {"mail": "ada@x.example"}, id="keep a nested field"),
        pytest.param(KeepStep(["lines.*.sku"]), "lines", [{"sku": "a"}, {"sku": "b"}], id="keep in each"),
        pytest.param(KeepStep(["lines.1"]), "lines", [{"sku": "b"}], id="keep an element"),
        pytest.param(CastStep("lines.0.n", "decimal"), "lines.0.n", Decimal(1), id="cast inside an array"),
    ],
)
def test_step_changes_its_field(step: Step, path: str, expected: Any):
    assert get(changed(step), compile_path(path)) == expected


@pytest.mark.parametrize(
    "step",
    [RemoveStep("nope.x"), RemoveStep("lines.9"), RenameStep("nope", "a"), MaskStep("nope.x"), RemoveStep("id.x")],
)
def test_absent_field_stays_absent(step: Step):
    assert changed(step) == ORDER


@pytest.mark.parametrize(
    ("step", "body", "path", "cause"),
    [
        pytest.param(SetStep("id.x", 1), ORDER, "id.x", "needs an object", id="set below a number"),
        pytest.param(SetStep("lines.5", 1), ORDER, "lines.5", "needs an object", id="set past an array's end"),
        pytest.param(SetStep("a", 1), [1], "a", "needs an object", id="set a field of an array"),
        pytest.param(SetStep("a", 1), 3, "a", "needs an object", id="set a field of a scalar"),
        pytest.param(RenameStep("id", "total.x"), ORDER, "total.x", "needs an object", id="rename below text"),
        pytest.param(KeepStep(["a"]), [1], "$", "keep needs an object, got an array", id="keep of an array"),
        pytest.param(KeepStep(["a"]), None, "$", "got null", id="keep of null"),
        pytest.param(CastStep("nope", "int"), ORDER, "nope", "got nothing", id="cast of nothing"),
        pytest.param(CastStep("a", "int"), {"a": None}, "a", "got null", id="cast of null"),
        pytest.param(
            CastStep("who", "string"), ORDER, "who", "an object cannot be cast to string", id="object to text"
        ),
        pytest.param(
            CastStep("lines.*.n", "int"), ORDER, "lines.*.n", "got nothing", id="cast of nothing in one of each"
        ),
        pytest.param(
            FilterStep("body.gone > 1"), ORDER, "when", "no such field: gone", id="filter on what is not there"
        ),
        pytest.param(
            FilterStep("body.id"), ORDER, "when", "a condition needs a bool, got int", id="filter by a number"
        ),
        pytest.param(MapStep("a", "body.gone"), ORDER, "a", "no such field: gone", id="map of what is not there"),
        pytest.param(MapStep("a", "0.0 / 0.0"), ORDER, "a", "not finite", id="map to not-a-number"),
        pytest.param(MapStep("id.x", "1"), ORDER, "id.x", "needs an object", id="map below a number"),
        pytest.param(
            MapStep("a", "body.l.map(x, body.s)"),
            {"l": [1] * 1_000, "s": "a" * 10_000},
            "a",
            "the result is larger than 262144 bytes",
            id="map to something huge",
        ),
    ],
)
def test_failed_step_names_path_and_cause(step: Step, body: Any, path: str, cause: str):
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
        ("uuid", "{A987FBC9-4BED-3078-CF07-9141BA07C9F3}", "a987fbc9-4bed-3078-cf07-9141ba07c9f3"),
        ("uuid", "urn:uuid:a987fbc94bed3078cf079141ba07c9f3", "a987fbc9-4bed-3078-cf07-9141ba07c9f3"),
        ("money", "12.5 EUR", {"amount": "12.50", "currency": "EUR"}),
        ("money", "JPY 1200", {"amount": "1200", "currency": "JPY"}),
        ("money", "-1.234KWD", {"amount": "-1.234", "currency": "KWD"}),
    ],
)  # fmt: skip
def test_cast_gives_the_expected_value_and_type(to: Any, value: Any, expected: Any):
    result = changed(CastStep("v", to), {"v": value})["v"]
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(("value", "amount"), [(12.5, "12.50"), (3, "3.00"), ("7.1", "7.10"), ("EUR 1", "1.00")])
def test_money_without_a_currency_gets_the_currency_of_the_step(value: Any, amount: str):
    result = changed(CastStep("v", "money", "EUR"), {"v": value})["v"]
    assert result == {"amount": amount, "currency": "EUR"}


def test_decimal_keeps_its_digits_on_the_wire():
    assert staged([CastStep("v", "decimal")], b'{"v":"12.50"}') == b'{"v":12.50}'


@pytest.mark.parametrize(
    ("to", "value"),
    [
        ("int", "1.5"), ("int", 1.5), ("int", True), ("int", "x"), ("int", {}), ("int", "9" * 5_000),
        ("int", "9" * 501), ("int", "1_000"), ("int", "\uff11\uff12"), ("decimal", "1_0.5"), ("decimal", "\u0661"),
        ("decimal", "1E+309"), ("decimal", "1.8e308"), ("decimal", "-1e-401"), ("decimal", "0E+309"),
        ("decimal", "1E+999999999999999999999"), ("decimal", "9" * 501), ("decimal", 10**400), ("money", 10**400),
        ("datetime", 10**400), ("datetime", "2" * 101),
        ("decimal", "NaN"), ("decimal", "Infinity"), ("decimal", "1,5"), ("decimal", True), ("decimal", []),
        ("bool", "yes"), ("bool", 2), ("bool", {}), ("bool", "TRUE"),
        ("string", {}), ("string", []),
        ("datetime", "2026-01-02T03:04:05"), ("datetime", "yesterday"), ("datetime", True), ("datetime", {}),
        ("datetime", 1e17), ("datetime", -1e18), ("datetime", 1e300), ("datetime", 2**62),
        ("uuid", "a987fbc9"), ("uuid", 7), ("uuid", "a987fbc9-4bed-3078-cf07-9141ba07c9fg"), ("uuid", "{" * 40),
        ("money", "12.5"), ("money", 12.5), ("money", "12.505 EUR"), ("money", "1.5 JPY"), ("money", "EUR 1 EUR"),
        ("money", "1,5 EUR"), ("money", True), ("money", {}), ("money", "EUR"), ("money", 1e300),
        ("datetime", "0001-01-01T00:00:00+14:00"), ("datetime", "9999-12-31T23:59:59-14:00"),
    ],
)  # fmt: skip
def test_impossible_casts_are_failed_steps(to: Any, value: Any):
    with pytest.raises(StepError, match=f"cannot be cast to {to}") as failed:
        changed(CastStep("v", to), {"v": value})
    assert failed.value.path == "v"


LARGE_NUMBERS = (
    "1E+80000",
    "-1E+80000",
    "1E-80000",
    "0E+80000",
    "1E+2000000",
    "1" * 80_000,
    "0." + "0" * 80_000 + "1",
)


@pytest.mark.parametrize("then", ["int", "decimal", "bool", "string", "datetime", "uuid", "money"])
@pytest.mark.parametrize("number", LARGE_NUMBERS, ids=lambda number: number[:12])
def test_no_number_makes_a_cast_slow_or_memory_hungry(number: str, then: Any):
    def cast() -> None:
        for steps in ([CastStep("v", "decimal"), CastStep("v", then)], [CastStep("v", then)]):
            with suppress(StageError):
                CompiledSteps("normalize", steps)({"v": number})

    assert cpu_s(cast, 0.01) < 0.01
    tracemalloc.start()
    cast()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 1_000_000


@pytest.mark.parametrize("text", ["1e308", "5e-324", "-1.7976931348623157e308", "0.1", "1" * 300, "12.50"])
def test_decimal_is_read_back_with_the_same_value(text: str):
    written = staged([CastStep("v", "decimal")], msgspec.json.encode({"v": text}))
    assert float(decode(written)["v"]) == float(text)


def test_constant_container_is_not_shared_between_messages():
    for step in (SetStep("tags", ["new"]), DefaultStep("tags", ["new"])):
        edit = compile_step(step)
        first = edit({}, StepContext(), CostAllowance())
        first["tags"].append("changed")
        assert edit({}, StepContext(), CostAllowance()) == {"tags": ["new"]}


def test_computed_container_is_not_shared_with_the_body_of_its_origin():
    body = staged([MapStep("copy", "body.who"), SetStep("copy.mail", "x")], b'{"who":{"mail":"ada"}}')
    assert body == b'{"who":{"mail":"ada"},"copy":{"mail":"x"}}'


@pytest.mark.parametrize(
    ("when", "passes"), [("body.id == 7", True), ("body.id > 7", False), ("meta.source == 'shop'", True)]
)
def test_filter_passes_messages_whose_condition_is_true(when: str, passes: bool):
    result = changed(FilterStep(when), meta={"source": "shop"})
    assert (result is not DROPPED) == passes
    assert not passes or result == ORDER


def test_peek_copies_the_share_of_messages_whose_chance_is_below_it():
    about = StepContext(chance=0.2)
    for share in (0.1, 0.2, 0.3):
        assert compile_step(PeekStepSpec("here", share))({"a": 1}, about, CostAllowance()) == {"a": 1}
    assert about.peeked == [("here", b'{"a":1}')]


def test_hash_is_the_same_within_a_tenant_and_differs_between_tenants():
    def hashed(value: Any, salt: bytes) -> Any:
        return compile_step(MaskStep("v", "hash"), salt)({"v": value}, StepContext(), CostAllowance())["v"]

    assert hashed("ada", b"one") == hashed("ada", b"one")
    assert hashed("ada", b"one") != hashed("ada", b"two")
    assert hashed("ada", b"one") != hashed("Ada", b"one")
    assert hashed({"a": 1, "b": 2}, b"one") == hashed({"b": 2, "a": 1}, b"one")
    assert len(hashed(None, b"one")) == 32


@pytest.mark.parametrize(
    ("path", "body", "children"),
    [
        pytest.param("l", {"id": 7, "l": [1, {"a": 2}]}, [b'{"id":7,"l":1}', b'{"id":7,"l":{"a":2}}'], id="in place"),
        pytest.param("a.b", {"a": {"b": [[]]}}, [b'{"a":{"b":[]}}'], id="nested"),
        pytest.param("$", [{"a": 1}, None], [b'{"a":1}', b"null"], id="the body itself"),
        pytest.param("lines", {"lines": []}, [], id="nothing in it"),
    ],
)  # fmt: skip
def test_explode_makes_one_body_for_each_element(path: str, body: Any, children: list[bytes]):
    assert explode(body, compile_path(path), path) == children


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        pytest.param({}, "explode needs an array, got nothing", id="nothing there"),
        pytest.param({"lines": {"a": 1}}, "explode needs an array, got an object", id="an object"),
        pytest.param({"lines": [0] * (MAX_CHILDREN + 1)}, "at most 1000 elements, got 1001", id="too many"),
        pytest.param({"lines": [0] * 1_000, "s": "a" * 10_000}, "children of at most", id="too large together"),
    ],
)
def test_impossible_explode_is_a_failed_step(body: Any, cause: str):
    with pytest.raises(StepError, match=cause):
        explode(body, ("lines",), "lines")


@pytest.mark.parametrize(
    ("element", "rest"),
    [
        pytest.param({}, [{}] * 3_000, id="empty objects"),
        pytest.param(0, [{"": 0}] * 2_000, id="small objects"),
        pytest.param([], [[]] * 10_000, id="arrays"),
    ],
)
def test_explode_counts_the_decoded_size_of_its_children(element: Any, rest: list[Any]):
    body = {"lines": [element] * MAX_CHILDREN, "rest": rest}
    with pytest.raises(StepError, match="fewer objects and arrays"):
        explode(body, ("lines",), "lines")
    assert len(explode({"lines": [element] * 10, "rest": rest}, ("lines",), "lines")) == 10


ONES = {"l": [1] * 50_000}


@pytest.mark.parametrize(
    ("step", "body"),
    [
        pytest.param(RemoveStep("l.*"), ONES, id="remove"),
        pytest.param(SetStep("l.*", "x" * 60_000), {"l": [1] * 100}, id="set something long"),
        pytest.param(SetStep("l.*.a.b.c.d.e.f.g.h", 1), {"l": [{}] * 3_000}, id="set deep down"),
        pytest.param(DefaultStep("l.*", [{}] * 100), {"l": [None] * 300}, id="default with objects"),
        pytest.param(CastStep("l.*", "int"), ONES, id="cast"),
        pytest.param(MaskStep("l.*", "hash"), ONES, id="mask"),
        pytest.param(KeepStep(["l.*.a"]), ONES, id="keep"),
        pytest.param(PeekStepSpec("here", 1.0), {"l": [{}] * 30_000}, id="peek"),
        pytest.param(MapStep("l", "body.l"), {"l": [1] * 45_000}, id="map"),
    ],
)
def test_steps_at_many_places_are_charged_for_each(step: Step, body: Any):
    with pytest.raises(StageError, match=r"the stage costs more than|the result (is larger|has more) than"):
        CompiledSteps("normalize", [step] * 3)(copy.deepcopy(body), StepContext(chance=0.0))


def test_hundred_steps_share_the_cost_limit_of_a_message():
    steps: list[Step] = [FilterStep("body.l.all(x, x == 1)")] * 100
    body = {"l": [1] * 5_000}
    assert CompiledSteps("normalize", steps[:2])(body) is body
    with pytest.raises(StageError, match=r"normalize\[3\] filter when: the stage costs more than 75000 units"):
        CompiledSteps("normalize", steps)(body)


def test_mask_reveals_nothing_of_a_branch():
    assert changed(MaskStep("lines", "partial"))["lines"] == "***"


SECRET = "the-payload-itself"


@pytest.mark.parametrize("to", ["int", "decimal", "bool", "datetime"])
def test_error_never_contains_the_value(to: Any):
    with pytest.raises(StageError) as failed:
        staged([CastStep("v", to)], msgspec.json.encode({"v": SECRET}))
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
def test_body_that_no_step_can_process_is_a_failed_stage_and_no_crash(body: bytes, cause: str):
    with pytest.raises(StageError) as failed:
        staged([SetStep("b", 1)], body)
    assert failed.value.cause == cause


@given(st.binary(max_size=60))
def test_arbitrary_bytes_end_a_stage_with_no_error_but_a_stage_error(body: bytes):
    with suppress(StageError):
        staged([SetStep("a", 1), CastStep("v", "datetime"), KeepStep(["a"])], body)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
bodies = st.dictionaries(st.sampled_from("abcdef"), json_values, max_size=6)


@given(bodies, st.sets(st.sampled_from("abcdef"), min_size=1))
def test_keep_leaves_the_kept_fields_unchanged_and_in_order(body: dict[str, Any], fields: set[str]):
    kept = changed(KeepStep(sorted(fields)), body)
    assert list(kept.items()) == [(name, value) for name, value in body.items() if name in fields]


@given(bodies, st.sampled_from("abcdef"))
def test_remove_leaves_the_rest_unchanged(body: dict[str, Any], field: str):
    rest = changed(RemoveStep(field), body)
    assert list(rest.items()) == [(name, value) for name, value in body.items() if name != field]


@given(bodies, st.sampled_from("abcdef"))
def test_rename_moves_one_value_and_leaves_the_rest_unchanged(body: dict[str, Any], field: str):
    renamed = changed(RenameStep(field, "new"), body)
    expected = {name: value for name, value in body.items() if name != field}
    assert renamed == (expected | {"new": body[field]} if field in body else expected)


names = st.text(
    st.characters(blacklist_characters=".", blacklist_categories=("Zs", "Cc", "Cs")), min_size=1, max_size=4
)


@given(st.lists(names, min_size=1, max_size=5), json_values)
def test_put_value_is_found_and_removed_value_is_missing(segments: list[str], value: Any):
    body: dict[str, Any] = {}
    put(body, tuple(segments), value)
    assert get(body, tuple(segments)) == value
    assert remove(body, tuple(segments)) == value
    assert get(body, tuple(segments)) is MISSING
    assert remove(body, tuple(segments)) is MISSING


@given(json_values, st.lists(names | st.sampled_from(["0", "1", "-1", "٣", "²"]), min_size=1, max_size=4))
def test_path_into_any_value_raises_no_error_but_a_type_error(body: Any, segments: list[str]):
    get(body, tuple(segments))
    try:
        put(body, tuple(segments), 1)
    except TypeError:
        return
    assert get(body, tuple(segments)) == 1


paths = st.lists(st.sampled_from([*"abc", "*", "0", "1"]), min_size=1, max_size=3).map(".".join)
every_step = (
    st.builds(SetStep, paths, json_values)
    | st.builds(DefaultStep, paths, json_values)
    | st.builds(RemoveStep, paths)
    | st.builds(KeepStep, st.lists(paths, min_size=1, max_size=3))
    | st.builds(CastStep, paths, st.sampled_from(["int", "decimal", "bool", "string", "datetime", "uuid", "money"]))
    | st.builds(MaskStep, paths, st.sampled_from(["redact", "partial", "hash"]))
    | st.builds(RenameStep, paths, paths)
    | st.builds(FilterStep, st.sampled_from(["body.a == 1", "has(body.a)", "body.a > 3"]))
    | st.builds(MapStep, paths, st.sampled_from(["body.a", "body", "size(body)", "[body.a, body.b]"]))
)


@given(st.lists(every_step, max_size=4), json_values)
def test_any_steps_on_any_body_give_json_or_a_failed_stage_that_names_the_step(steps: list[Step], body: Any):
    try:
        result = CompiledSteps("normalize", steps, b"salt")(copy.deepcopy(body))
    except StageError as failed:
        assert failed.cause in {"step", "encode"}  # noqa: PT017
        assert failed.detail.startswith("normalize")  # noqa: PT017
    else:
        assert result is DROPPED or encode(result, "normalize")


@given(bodies, st.sampled_from("abcdef"), json_values)
def test_default_changes_only_an_absent_field(body: dict[str, Any], field: str, value: Any):
    expected = body if body.get(field) is not None else body | {field: value}
    assert changed(DefaultStep(field, value), body) == expected


@given(st.lists(json_values, max_size=5), bodies)
def test_explode_keeps_every_element_in_order_and_the_rest_of_the_body(elements: list[Any], body: dict[str, Any]):
    children = explode(copy.deepcopy(body) | {"each": elements}, ("each",), "each")
    assert [decode(child) for child in children] == [body | {"each": element} for element in elements]


@given(st.lists(st.dictionaries(st.sampled_from("abc"), json_values, max_size=3), max_size=4))
def test_star_selects_every_element(elements: list[dict[str, Any]]):
    body = changed(SetStep("each.*.a", 1), {"each": elements})
    assert body == {"each": [element | {"a": 1} for element in elements]}
    assert changed(RemoveStep("each.*.a"), body) == {
        "each": [{k: v for k, v in e.items() if k != "a"} for e in elements]
    }
