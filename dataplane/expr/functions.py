"""The functions of the tenant language, with their arguments, results, descriptions and tested examples.

An expression can call the functions in FUNCTIONS, and nothing else.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC
from decimal import Decimal
from math import isfinite, trunc
from typing import Any, Final

from msgspec import Struct

from dataplane.expr.frame import Frame, charge, joined_units, text_units
from dataplane.expr.times import (
    DURATION_PARTS,
    MOMENT_PARTS,
    duration,
    moment_of,
    read_duration,
    read_timestamp,
    time_text,
    timestamp,
    zone,
)
from dataplane.expr.values import INT_MAX, INT_MIN, NS, Duration, EvaluationError, Timestamp, kind

DIGITS_PER_UNIT: Final = 8  # of a string that is read as a double
_INT: Final = re.compile(r"[+-]?[0-9]{1,19}")
_DOUBLE: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
_TRUE: Final = ("true", "True", "TRUE", "t", "1")
_FALSE: Final = ("false", "False", "FALSE", "f", "0")


class Function(Struct, frozen=True):
    """One function.

    takes:    the kinds of its arguments, for people to read; the target of a method comes first
    units:    the fixed cost of a call; the part that grows with the arguments is charged by `call`
    examples: (expression, result as JSON) over the body {"total": 12.5, "name": "Ada", "lines": [1, 2, 3]}
    """

    name: str
    method: bool
    takes: Sequence[str]
    gives: str
    says: str
    examples: Sequence[tuple[str, str]]
    call: Callable[..., Any]  # (frame, *arguments)
    units: int = 2


def _size(frame: Frame, value: Any) -> int:  # noqa: ARG001
    if type(value) in (str, list, dict):
        return len(value)
    raise EvaluationError(f"size needs a string, a list or a map, got {kind(value)}")


def _texts(frame: Frame, name: str, *values: Any) -> None:
    """Check that all values are strings, and charge for reading them."""
    for value in values:
        if type(value) is not str:
            raise EvaluationError(f"{name} needs a string, got {kind(value)}")
        charge(frame, text_units(value))


def _on_text(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes strings only."""

    def run(frame: Frame, *values: Any) -> Any:
        _texts(frame, name, *values)
        return call(*values)

    return run


def _replace(frame: Frame, text: Any, old: Any, new: Any) -> str:
    _texts(frame, "replace", text, old, new)
    grown: int = len(text) + text.count(old) * max(0, len(new) - len(old))
    charge(frame, joined_units(text, new, grown))
    result: str = text.replace(old, new)
    return result


def _split(frame: Frame, text: Any, separator: Any) -> list[str]:
    _texts(frame, "split", text, separator)
    charge(frame, text.count(separator) + 1)
    return text.split(separator) if separator else list(text)


def _join(frame: Frame, parts: Any, separator: Any) -> str:
    if type(parts) is not list:
        raise EvaluationError(f"join needs a list, got {kind(parts)}")
    charge(frame, len(parts) * (1 + text_units(separator)) if type(separator) is str else 0)
    _texts(frame, "join", separator, *parts)
    result: str = separator.join(parts)
    return result


def _lower(text: str) -> str:
    """Lower A-Z only: bytes have no other letters."""
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _upper(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").upper().decode("utf-8", "surrogatepass")


def _substring(frame: Frame, text: Any, start: Any, end: Any = None) -> str:
    _texts(frame, "substring", text)
    last = len(text) if end is None else end
    if type(start) is not int or type(last) is not int:
        raise EvaluationError("substring needs int indexes")
    if not 0 <= start <= last <= len(text):
        raise EvaluationError("substring needs indexes within the string, the first not above the second")
    part: str = text[start:last]
    return part


def _int(frame: Frame, value: Any) -> int:
    kind_of = type(value)
    if kind_of is int:
        return _in_range(value)
    if kind_of is float or kind_of is Decimal:
        if not isfinite(value):
            raise EvaluationError("int needs a finite number")
        return _in_range(trunc(value))
    if kind_of is str:
        _texts(frame, "int", value)
        if _INT.fullmatch(value):
            return _in_range(int(value))
        raise EvaluationError("int needs a string of digits")
    if kind_of is Timestamp:
        seconds: int = value.ns // NS
        return seconds
    raise EvaluationError(f"int needs a number, a string or a timestamp, got {kind(value)}")


def _in_range(number: int) -> int:
    if INT_MIN <= number <= INT_MAX:
        return number
    raise EvaluationError("integer overflow")


def _double(frame: Frame, value: Any) -> float:
    if type(value) in (int, float, Decimal):
        try:
            return float(value)
        except OverflowError as exc:
            raise EvaluationError("double needs a number below 1.8e308") from exc
    if type(value) is not str:
        raise EvaluationError(f"double needs a number or a string, got {kind(value)}")
    _texts(frame, "double", value)
    charge(frame, len(value) // DIGITS_PER_UNIT)
    if _DOUBLE.fullmatch(value):
        return float(value)
    raise EvaluationError("double needs a string that is a number")


def _string(frame: Frame, value: Any) -> str:  # noqa: ARG001
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return _digits(value)
        case float():
            return repr(value).removesuffix(".0")
        case Timestamp() | Duration():
            return time_text(value)
    raise EvaluationError(f"string needs a scalar, got {kind(value)}")


def _digits(value: Any) -> str:
    if type(value) is int and value.bit_length() > 1_300:  # Python refuses to convert far longer ones
        raise EvaluationError("string needs a number of at most 400 digits")
    return str(value)


def _bool(frame: Frame, value: Any) -> bool:  # noqa: ARG001
    if type(value) is bool:
        return value
    if type(value) is str and value in _TRUE + _FALSE:
        return value in _TRUE
    raise EvaluationError(f"bool needs true or false, got {'another string' if type(value) is str else kind(value)}")


def _timestamp(frame: Frame, value: Any) -> Timestamp:  # noqa: ARG001
    match value:
        case Timestamp():
            return value
        case str():
            return read_timestamp(value)
        case int() if value is not True and value is not False:
            return timestamp(value * NS)
    raise EvaluationError(f"timestamp needs a string or seconds as an int, got {kind(value)}")


def _duration(frame: Frame, value: Any) -> Duration:  # noqa: ARG001
    match value:
        case Duration():
            return value
        case str():
            return read_duration(value)
        case int() if value is not True and value is not False:
            return duration(value * NS)
    raise EvaluationError(f"duration needs a string or seconds as an int, got {kind(value)}")


def _part(name: str) -> Callable[..., int]:
    """Return a function for a part of a timestamp, or for a duration as a whole number of that unit."""

    def run(frame: Frame, value: Any, where: Any = None) -> int:  # noqa: ARG001
        if type(value) is Duration and name in DURATION_PARTS and where is None:
            return DURATION_PARTS[name](value.ns)
        if type(value) is not Timestamp:
            raise EvaluationError(f"{name} needs a timestamp, got {kind(value)}")
        return MOMENT_PARTS[name](moment_of(value, UTC if where is None else zone(where)))

    return run


_TEXT = ("string",)
_CONVERSIONS = [
    Function("int", False, ("value",), "int", "A number truncated toward zero, a string of digits as an int, or a "
             "timestamp in seconds.", [('int("42")', "42"), ("int(body.total)", "12"), ("int(-1.9)", "-1")], _int, 3),
    Function("double", False, ("value",), "double", "A number as a double; JSON numbers with a point are doubles, "
             "those without are ints.", [("double(3) * 1.5", "4.5"), ('double("0.25")', "0.25")], _double, 5),
    Function("string", False, ("value",), "string", "A scalar as a string; a timestamp in RFC 3339, a duration in "
             "seconds.", [("string(1.5)", '"1.5"'),
              ("string(true)", '"true"'), ('string(duration("1h"))', '"3600s"')], _string, 5),
    Function("bool", False, ("value",), "bool", "A bool from the string true, false, 1, 0, t or f.",
             [('bool("true")', "true")], _bool),
    Function("timestamp", False, ("value",), "timestamp", "A timestamp from an RFC 3339 string, or from seconds "
             "since 1970 as an int.",
             [('timestamp("2026-01-31T12:00:00Z") < timestamp("2026-02-01T00:00:00+02:00")', "true"),
              ("string(timestamp(0))", '"1970-01-01T00:00:00Z"')], _timestamp, 12),
    Function("duration", False, ("value",), "duration", "A duration from a string such as 1h30m, 1.5s or 20ms, or "
             "from seconds as an int.",
             [('duration("90m") == duration("1h30m")', "true"),
              ('string(timestamp(0) + duration("1m"))', '"1970-01-01T00:01:00Z"')], _duration, 15),
    Function("dyn", False, ("value",), "value", "The value itself.", [("dyn(1)", "1")], lambda _frame, value: value),
]  # fmt: skip
_STRINGS = [
    Function("size", False, ("string, list or map",), "int", "The number of characters, elements or entries.",
             [("size(body.lines)", "3"), ('size("é")', "1")], _size),
    Function("size", True, ("string, list or map",), "int", "Same as `size(value)`.",
             [("body.name.size()", "3")], _size),
    Function("contains", True, ("string", "string"), "bool", "True if the string contains the other.",
             [('body.name.contains("d")', "true")], _on_text("contains", lambda text, part: part in text)),
    Function("startsWith", True, ("string", "string"), "bool", "True if the string starts with the other.",
             [('body.name.startsWith("A")', "true")], _on_text("startsWith", str.startswith)),
    Function("endsWith", True, ("string", "string"), "bool", "True if the string ends with the other.",
             [('body.name.endsWith("b")', "false")], _on_text("endsWith", str.endswith)),
    Function("lowerAscii", True, _TEXT, "string", "The string with A-Z in lower case.",
             [("body.name.lowerAscii()", '"ada"')], _on_text("lowerAscii", _lower)),
    Function("upperAscii", True, _TEXT, "string", "The string with a-z in upper case.",
             [("body.name.upperAscii()", '"ADA"')], _on_text("upperAscii", _upper)),
    Function("trim", True, _TEXT, "string", "The string without white space at its ends.", [('" a ".trim()', '"a"')],
             _on_text("trim", str.strip)),
    Function("replace", True, ("string", "string", "string"), "string", "The string with each occurrence of the first "
             "argument replaced by the second.", [('"a-b-c".replace("-", ".")', '"a.b.c"')], _replace),
    Function("split", True, ("string", "string"), "list", "The parts of the string between separators.",
             [('"a,b".split(",")', '["a","b"]')], _split),
    Function("join", True, ("list", "string"), "string", "The strings of the list, joined with a separator.",
             [('["a", "b"].join("-")', '"a-b"')], _join),
    Function("substring", True, ("string", "int"), "string", "The string from an index on, counted from 0.",
             [("body.name.substring(1)", '"da"')], _substring),
    Function("substring", True, ("string", "int", "int"), "string", "The string from one index up to, but not "
             "including, another.", [("body.name.substring(0, 1)", '"A"')], _substring),
    Function("indexOf", True, ("string", "string"), "int", "The index of the first occurrence of the other, or -1.",
             [('body.name.indexOf("a")', "2")], _on_text("indexOf", str.find)),
]  # fmt: skip
_COUNTED: Final = {
    "getFullYear": ("The year.", "2026"),
    "getMonth": ("The month, from 0.", "0"),
    "getDate": ("The day of the month, from 1.", "31"),
    "getDayOfMonth": ("The day of the month, from 0.", "30"),
    "getDayOfWeek": ("The day of the week, 0 is Sunday.", "6"),
    "getDayOfYear": ("The day of the year, from 0.", "30"),
    "getHours": ("The hour; of a duration: whole hours.", "12"),
    "getMinutes": ("The minute; of a duration: whole minutes.", "30"),
    "getSeconds": ("The second; of a duration: whole seconds.", "5"),
    "getMilliseconds": ("The milliseconds below the second.", "250"),
}
_MOMENT = 'timestamp("2026-01-31T12:30:05.25Z")'
_PARTS = [
    Function(name, True, ("timestamp or duration" if name in DURATION_PARTS else "timestamp",), "int", says,
             [(f"{_MOMENT}.{name}()", result)], _part(name), 8)
    for name, (says, result) in _COUNTED.items()
]  # fmt: skip
_PARTS_THERE = [
    Function(name, True, ("timestamp", "zone"), "int", "The same in a time zone, which must be a string literal.",
             [(f'{_MOMENT}.{name}("UTC")', result)], _part(name), 10)
    for name, (_, result) in _COUNTED.items()
]  # fmt: skip

FUNCTIONS: Final[dict[tuple[str, bool, int], Function]] = {
    (function.name, function.method, len(function.takes)): function
    for function in [*_CONVERSIONS, *_STRINGS, *_PARTS, *_PARTS_THERE]
}
