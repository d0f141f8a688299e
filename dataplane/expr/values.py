"""The values an expression meets: JSON's own, timestamps and durations; equality, order, and the way back to JSON."""

from decimal import Decimal
from math import isfinite
from typing import Any, Final

from msgspec import Struct

NS: Final = 1_000_000_000
INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
MAX_VALUES: Final = 50_000  # of a result


class EvalError(Exception):
    """An expression has no value for this message. `||` and `&&` absorb it where the other side decides alone.

    The text names what was needed and what kind of value came, never the value.
    """


class LimitError(Exception):
    """An expression needs more than a message may cost. Nothing absorbs it."""


class Timestamp(Struct, frozen=True, order=True):
    """A moment: nanoseconds since 1970-01-01 UTC, in the years 1 to 9999."""

    ns: int


class Duration(Struct, frozen=True, order=True):
    """A span of nanoseconds, at most 64 bits, signed."""

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
    """What an error calls a value."""
    return _KINDS.get(type(value), "value")


def equal(one: Any, other: Any) -> bool:
    """CEL's `==`: numbers across their types, containers by their parts, all else only within a type; no error."""
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
    """Raises EvalError unless the two have an order: two numbers, or two of one ordered type."""
    first, second = type(one), type(other)
    if not (first is second and first in _ORDERED) and not (first in _NUMBERS and second in _NUMBERS):
        raise EvalError(f"cannot order {kind(one)} and {kind(other)}")


def weight(value: Any, most: int) -> int:
    """Return how many values a value holds, itself included, and one more for each 64 characters in them.

    It stops counting beyond `most`.
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


def to_json(value: Any, max_bytes: int) -> Any:
    """Return a copy that JSON can carry: times as text, nothing shared with the body.

    Raises EvalError for a number that is not finite, LimitError if it has more than about `max_bytes` when written, or
    more than MAX_VALUES values.
    """
    return _Copy(max_bytes).of(value)


class _Copy:
    """Counts while it copies, so that a value which repeats a large part many times is stopped, not built."""

    def __init__(self, max_bytes: int) -> None:
        self._left = self._max = max_bytes
        self._values_left = MAX_VALUES

    def of(self, value: Any) -> Any:
        kind_of = type(value)
        if kind_of is str:
            self._take(_written_bytes(value))
            return value
        if kind_of is dict:
            self._take(2)
            return {self._key(key): self.of(part) for key, part in value.items()}
        if kind_of is list:
            self._take(2)
            return [self.of(part) for part in value]
        self._take(8)
        if kind_of is float and not isfinite(value):
            raise EvalError("JSON cannot carry a double that is not finite")
        if kind_of is Timestamp or kind_of is Duration:
            from dataplane.expr.times import time_text

            return time_text(value)
        return value

    def _key(self, key: str) -> str:
        self._left -= _written_bytes(key) + 2
        return key

    def _take(self, size_bytes: int) -> None:
        self._left -= size_bytes
        self._values_left -= 1
        if self._left < 0:
            raise LimitError(f"the result may have {self._max} bytes")
        if self._values_left < 0:
            raise LimitError(f"the result may have {MAX_VALUES} values")


def _written_bytes(text: str) -> int:
    """Return the bytes of a text in quotes; beyond ASCII the most that they can be."""
    return 2 + len(text) * (1 if text.isascii() else 4)
