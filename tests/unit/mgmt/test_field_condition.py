"""A condition over one field, from a form, means the same on any event."""

from typing import Any

import pytest

from dataplane.expr import EvaluationError, compile_expr
from dataplane.spec.checks import EXPRESSION_ROOTS
from mgmt.messages.field_condition import FieldCondition, FieldConditionError

BODY = {
    "order": {"id": "A-1001", "total": 12.5, "count": 7, "text": "12.5", "paid": True, "note": None, "0": "zero"},
    "lines": [{"sku": "a-1"}, {"sku": "b-2", "tags": ["red", "new"]}],
    'odd "name"\\': "é😀\n\x01",
    "zip": "00123",
}


def matches(path: str, operator: str, value: str = "", body: Any = BODY) -> bool:
    condition = compile_expr(FieldCondition(path, operator, value).expression(), EXPRESSION_ROOTS)
    try:
        return condition.test(body, {})
    except EvaluationError:
        return False


@pytest.mark.parametrize(
    ("path", "operator", "value", "expected"),
    [
        ("order.id", "is", "A-1001", True),
        ("order.id", "is", "A-100", False),
        ("order.total", "is", "12.5", True),
        ("order.text", "is", "12.5", True),
        ("order.count", "is", "7", True),
        ("order.count", "is", "7.0", True),
        ("order.paid", "is", "true", True),
        ("order.note", "is", "null", True),
        ("order.gone", "is", "1", False),
        ("zip", "is", "00123", True),
        ("zip", "is", "123", False),
        ("order.id", "contains", "100", True),
        ("order.count", "contains", "7", True),
        ("order", "contains", "7", False),
        ("order.total", "above", "12", True),
        ("order.total", "above", "12.5", False),
        ("order.text", "above", "12", True),
        ("order.count", "below", "8", True),
        ("order.id", "below", "B", True),
        ("order.paid", "above", "0", False),
        ("order.note", "exists", "", True),
        ("order", "exists", "", True),
        ("order.gone", "exists", "", False),
        ("gone.order", "exists", "", False),
        ("lines.1.sku", "is", "b-2", True),
        ("lines.5.sku", "is", "b-2", False),
        ("lines.*.sku", "is", "b-2", True),
        ("lines.*.sku", "is", "c-3", False),
        ("lines.*.tags.*", "is", "new", True),
        ("odd", "exists", "", False),
        ("order.id", "is", '" || true || "', False),
    ],
)
def test_condition_on_a_field(path: str, operator: str, value: str, expected: bool):
    assert matches(path, operator, value) is expected


def test_names_and_values_are_quoted():
    body = {'odd"\\': {"x": 'é😀\n\x01\u2028"'}}
    assert matches('odd"\\.x', "is", 'é😀\n\x01\u2028"', body)
    assert not matches('odd"\\.x', "is", "é", body)


@pytest.mark.parametrize(
    "value", ["9" * 15, "-1.5", "1e3", "0x1F", "99999999999999999999", "NaN", "--1", "1.", "'", "\\"]
)
def test_any_value_gives_a_valid_expression(value: str):
    for operator in ("is", "contains", "above", "below", "exists"):
        assert matches("a", operator, value, {"a": value}) is (operator not in ("above", "below"))


@pytest.mark.parametrize(
    ("condition", "field"),
    [
        (FieldCondition("", "is", "1"), "field"),
        (FieldCondition("a..b", "is", "1"), "field"),
        (FieldCondition("a b", "is", "1"), "field"),
        (FieldCondition("a\n", "is", "1"), "field"),
        (FieldCondition("a" * 201, "is", "1"), "field"),
        (FieldCondition("a.*.b.*.c.*", "is", "1"), "field"),
        (FieldCondition("a", "like", "1"), "op"),
        (FieldCondition("a", "above", ""), "value"),
        (FieldCondition("a", "is", "x" * 201), "value"),
        (FieldCondition("a", "is", "\x00"), "value"),
    ],
)
def test_condition_that_cannot_be_used_names_the_field_of_the_form(condition: FieldCondition, field: str):
    with pytest.raises(FieldConditionError) as caught:
        condition.expression()
    assert caught.value.field == field
