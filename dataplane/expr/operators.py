"""Arithmetic, order and membership, with CEL's errors: 64-bit overflow, division by zero, operands of wrong kinds."""

import operator
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from math import copysign, inf, nan
from typing import Any, Final

from dataplane.expr.times import duration, timestamp
from dataplane.expr.values import INT_MAX, INT_MIN, Duration, EvaluationError, Timestamp, comparable, equal, kind

Operator = Callable[[Any, Any], Any]


def _multiply_ints(one: int, other: int) -> int:
    _check_range(one, other)
    return _checked(one * other)


def _divide_ints(one: int, other: int) -> int:
    """Divide toward zero."""
    _check_range(one, other)
    if not other:
        raise EvaluationError("division by zero")
    quotient = abs(one) // abs(other)
    return _checked(quotient if (one < 0) == (other < 0) else -quotient)


def _remainder(one: int, other: int) -> int:
    """Return the remainder, with the sign of the dividend."""
    _check_range(one, other)
    if not other:
        raise EvaluationError("division by zero")
    if one == INT_MIN and other == -1:
        raise EvaluationError("integer overflow")
    rest = abs(one) % abs(other)
    return rest if one >= 0 else -rest


def _divide_doubles(one: float, other: float) -> float:
    if other:
        return one / other
    if one == 0 or one != one:  # noqa: PLR0124 (not a number)
        return nan
    return copysign(inf, one) * copysign(1, other)


# Operations by operator and operand types. Nothing is converted: CEL adds no int to a double.
_ARITHMETIC: Final[dict[str, dict[tuple[type, type], Operator]]] = {
    "+": {
        (int, int): lambda one, other: _checked(one + other),
        (float, float): operator.add,
        (str, str): operator.add,
        (list, list): operator.add,
        (Timestamp, Duration): lambda one, other: timestamp(one.ns + other.ns),
        (Duration, Timestamp): lambda one, other: timestamp(one.ns + other.ns),
        (Duration, Duration): lambda one, other: duration(one.ns + other.ns),
    },
    "-": {
        (int, int): lambda one, other: _checked(one - other),
        (float, float): operator.sub,
        (Timestamp, Timestamp): lambda one, other: duration(one.ns - other.ns),
        (Timestamp, Duration): lambda one, other: timestamp(one.ns - other.ns),
        (Duration, Duration): lambda one, other: duration(one.ns - other.ns),
    },
    "*": {(int, int): _multiply_ints, (float, float): operator.mul},
    "/": {(int, int): _divide_ints, (float, float): _divide_doubles},
    "%": {(int, int): _remainder},
}


def _arithmetic(sign: str) -> Operator:
    takes = _ARITHMETIC[sign]

    def operate(one: Any, other: Any) -> Any:
        operation = takes.get((type(one), type(other)))
        if operation is not None:
            return operation(one, other)
        if Decimal in (type(one), type(other)):  # from a cast step; expressions treat it as a double
            return operate(*(float(part) if type(part) is Decimal else part for part in (one, other)))
        hint = "; write double(...) around the int" if {kind(one), kind(other)} == {"int", "double"} else ""
        raise EvaluationError(f"{sign} cannot take {kind(one)} and {kind(other)}{hint}")

    return operate


def negate(value: Any) -> Any:
    """Return the negative of an int or a double. Raises EvaluationError."""
    if type(value) is int:
        return _checked(-value)
    if type(value) is float or type(value) is Decimal:
        return -value
    raise EvaluationError(f"- needs a number, got {kind(value)}")


def contains(needle: Any, holder: Any) -> bool:
    """Return `needle in holder`: a value in a list, a key in a map. Raises EvaluationError."""
    if type(holder) is list:
        return any(equal(needle, one) for one in holder)
    if type(holder) is dict:
        return type(needle) is str and needle in holder
    raise EvaluationError(f"in needs a list or a map, got {kind(holder)}")


def ordered(compare: Operator) -> Operator:
    """Return the comparison with CEL's type rules."""

    def check(one: Any, other: Any) -> Any:
        comparable(one, other)
        try:
            return compare(one, other)
        except InvalidOperation:  # a decimal compared with NaN
            return False

    return check


def unequal(one: Any, other: Any) -> bool:
    """Return whether two values differ; never raises."""
    return not equal(one, other)


ORDER: Final[dict[str, Operator]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
OPERATORS: Final[dict[str, Operator]] = {
    **{sign: _arithmetic(sign) for sign in _ARITHMETIC},
    **{sign: ordered(compare) for sign, compare in ORDER.items()},
    "==": equal,
    "!=": unequal,
    "in": contains,
}


def _check_range(*numbers: int) -> None:
    """Raise EvaluationError for a JSON number beyond 64 bits before computing with it: it may have 4,300 digits."""
    for number in numbers:
        _checked(number)


def _checked(number: int) -> int:
    if INT_MIN <= number <= INT_MAX:
        return number
    raise EvaluationError("integer overflow")
