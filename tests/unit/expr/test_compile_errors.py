"""Invalid expressions are refused when they are saved: with line, column, and what was expected."""

import pytest

from dataplane.expr import ExpressionError, compile_expr
from dataplane.expr.nodes import TextPosition
from dataplane.expr.parse import MAX_NODES, MAX_TEXT_BYTES


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        pytest.param("", 1, 1, "needs a value, got the end", id="nothing"),
        pytest.param("1 +", 1, 4, "needs a value, got the end", id="half an operation"),
        pytest.param("(1", 1, 3, "needs `)`, got the end", id="a parenthesis that stays open"),
        pytest.param("[1, 2", 1, 6, "needs `,` or `]`, got the end", id="a list that stays open"),
        pytest.param("body.total = 3", 1, 12, "needs an operator, got `=` (equality is `==`)", id="assignment"),
        pytest.param("a & b", 1, 3, "needs an operator, got `&` (and is `&&`)", id="a single ampersand"),
        pytest.param("1 2", 1, 3, "got `2`", id="two values"),
        pytest.param("body.total >\n  && 1", 2, 3, "needs a value, got `&&`", id="on the second line"),
        pytest.param('body.a == "x', 1, 11, "needs the end of this string", id="a string that stays open"),
        pytest.param("body.a ? 1", 1, 11, "needs an operator or `:`, got the end", id="half a condition"),
        pytest.param("body.", 1, 6, "needs a name, got the end", id="a path that ends in a dot"),
        pytest.param("body.a #", 1, 8, "needs an operator, got `#`", id="a character of no meaning"),
        pytest.param("\x00", 1, 1, "needs a value, got U+0000", id="a control character"),
        pytest.param("!-body.a", 1, 2, "needs a value", id="minus after not"),
        pytest.param("total > 3", 1, 1, "needs one of body, meta, table, got total", id="an unknown root"),
        pytest.param("body.a > 3 || x", 1, 15, "needs one of body, meta, table, got x", id="an unknown name"),
        pytest.param("body.l.map(x, x) == x", 1, 21, "got x", id="a variable outside its comprehension"),
        pytest.param("eval(body.a)", 1, 1, "needs a known function, got eval", id="an unknown function"),
        pytest.param("body.a.__class__()", 1, 1, "needs a known function, got __class__", id="an unknown method"),
        pytest.param("size()", 1, 1, "size needs size(string, list or map)", id="too few arguments"),
        pytest.param("body.a.contains()", 1, 1, "string.contains(string), got 1 values", id="of a method"),
        pytest.param("has(body)", 1, 1, "has needs one field", id="has of a root"),
        pytest.param("body.l.all(x > 1)", 1, 1, "all needs (name, test)", id="a comprehension without a variable"),
        pytest.param(
            "body.l.all(body, true)",
            1,
            1,
            "needs a variable name other than body, meta, table",
            id="a variable named as a root",
        ),
        pytest.param("9223372036854775808", 1, 1, "at most 64 bits", id="a large integer"),
        pytest.param("1e999", 1, 1, "needs a double below 1.8e308", id="a large double"),
        pytest.param("1u", 1, 1, "no unsigned integers", id="unsigned"),
        pytest.param('b"a"', 1, 1, "no bytes", id="bytes"),
        pytest.param(r'"\q"', 1, 1, "needs a known escape", id="an unknown escape"),
        pytest.param(r'"\ud800"', 1, 1, "needs a valid Unicode code point", id="half a character"),
        pytest.param('{1: "a"}', 1, 2, "needs different strings as the keys", id="a key that is no string"),
        pytest.param('{"a": 1, "a": 2}', 1, 10, "needs different strings as the keys", id="a key twice"),
        pytest.param(
            "body.s.matches(body.p)", 1, 1, "needs a string and a literal pattern", id="a pattern from the event"
        ),
        pytest.param('body.s.matches("a{2000}")', 1, 16, "RE2", id="a huge repetition"),
        pytest.param(r'body.s.matches("(a)\\1")', 1, 16, "RE2", id="a back reference"),
        pytest.param('body.s.matches("(((a{100}){100}){100})")', 1, 16, "RE2", id="repetitions inside each other"),
        pytest.param('timestamp(0).getHours("Mars/Base")', 1, 23, "needs a time zone", id="an unknown zone"),
        pytest.param('timestamp(0).getHours("../../etc/passwd")', 1, 23, "needs a time zone", id="a path for a zone"),
        pytest.param("a" * (MAX_TEXT_BYTES + 1), 1, 1, "needs at most 2048 bytes, got 2049", id="too much text"),
        pytest.param("[" + "1," * MAX_NODES + "1]", 1, 1000, "needs at most 500 parts", id="too many parts"),
        pytest.param("[" * 150 + "]" * 150, 1, 101, "needs at most 100 levels", id="too deep"),
        pytest.param("-" * 1_000 + "1", 1, 101, "needs at most 100 levels", id="too many signs"),
        pytest.param(
            "body.l.map(x, x.map(y, y.map(z, z)))",
            1,
            24,
            "needs at most 2 nested comprehensions",
            id="three comprehensions",
        ),
    ],
)
def test_error_names_line_column_and_what_was_expected(text: str, line: int, column: int, expected: str):
    with pytest.raises(ExpressionError) as refused:
        compile_expr(text)
    assert refused.value.at == TextPosition(line, column)
    assert expected in refused.value.reason
    assert str(refused.value).startswith(f"line {line}, column {column}: ")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('id')", "().__class__.__bases__", "body.__class__.__mro__()", "lambda: 1", "`id`",
        "[x for x in body]", "exec('1')", "getattr(body, 'a')", "open('/etc/passwd')", "import os", "a; b", "f'{1}'",
    ],
)  # fmt: skip
def test_python_code_is_no_expression(text: str):
    with pytest.raises(ExpressionError):
        compile_expr(text)


def test_python_attributes_are_no_fields():
    from dataplane.expr import EvaluationError

    for text in ("body.__class__", "body.l.__len__", "body.s.upper", "body.keys"):
        with pytest.raises(EvaluationError):
            compile_expr(text)({"l": [], "s": ""})


def test_many_parentheses_are_not_deep():
    assert compile_expr("(" * 900 + "1" + ")" * 900)({}) == 1


def test_long_chain_is_not_deep():
    assert compile_expr(" || ".join(["body.a"] * 200)).test({"a": True})


def test_only_declared_roots_are_known():
    with pytest.raises(ExpressionError, match="needs one of body, got meta"):
        compile_expr("meta.id", roots=("body",))
