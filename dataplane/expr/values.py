"""Values of expressions: JSON values, timestamps and durations; their equality, order, and conversion to JSON."""

from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

NS: Final = 1_000_000_000
INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1


class EvaluationError(Exception):
    """An expression has no value for this message. `||` and `&&` absorb it if another operand decides.

    The text names what was needed and the kind of value that came, never the value.
    """


class CostLimitError(Exception):
    """An expression exceeds the cost limit of a message. No operator absorbs it."""


class Timestamp(Struct, frozen=True, order=True):
    """Point in time: nanoseconds since 1970-01-01 UTC, in the years 1 to 9999."""

    ns: int


class Duration(Struct, frozen=True, order=True):
    """Signed number of nanoseconds, at most 64 bits."""

    ns: int


_KINDS: Final = {
    bool: "bool",
    int: "int",
    float: "double",
    Decimal: "double",
    str: "string",
    list: "list",
    dict: "map",
    type(None): "null",
    Timestamp: "timestamp",
    Duration: "duration",
}
_ALIKE: Final = frozenset({int, str, float, bool, type(None), Timestamp, Duration})
_NUMBERS: Final = frozenset({int, float, Decimal})
_ORDERED: Final = frozenset({int, str, float, bool, Timestamp, Duration})


def kind(value: Any) -> str:
    """Return the name of a value's kind, for error texts."""
    return _KINDS.get(type(value), "value")


def equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal by CEL's `==`, which raises no error.

    Numbers are compared across their types, containers by their parts, all others only within a type.
    """
    first, second = type(one), type(other)
    if first is second and first in _ALIKE:
        return bool(one == other)
    if first in _NUMBERS and second in _NUMBERS:
        return bool(one == other)
    if first is list and second is list:
        return len(one) == len(other) and all(map(equal, one, other))
    if first is dict and second is dict:
        return len(one) == len(other) and all(key in other and equal(value, other[key]) for key, value in one.items())
    return False


def comparable(one: Any, other: Any) -> None:
    """Raise EvaluationError unless the two have an order: two numbers, or two values of one ordered type."""
    first, second = type(one), type(other)
    if not (first is second and first in _ORDERED) and not (first in _NUMBERS and second in _NUMBERS):
        raise EvaluationError(f"cannot order {kind(one)} and {kind(other)}")


def weight(value: Any, most: int) -> int:
    """Return the number of values in a value, itself included, plus one for each 64 characters in them.

    Counting stops beyond `most`.
    """
    total, rest = 0, [[value]]
    while rest and total <= most:
        parts: Any = rest.pop()
        if type(parts) is dict:
            total += sum(map(len, parts)) // 64
            parts = parts.values()
        total += len(parts)
        for part in parts:
            kind_of = type(part)
            if kind_of is list or kind_of is dict:
                rest.append(part)
            elif kind_of is str and len(part) >= 64:
                total += len(part) // 64
    return total
