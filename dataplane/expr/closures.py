"""The closures that expressions consist of. A hot path for every message: decisions are made at compile time."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from dataplane.expr.frame import (
    BUDGET,
    CHARS_PER_UNIT,
    ERROR_UNITS,
    WIDE_CHARS_PER_UNIT,
    Frame,
    charge,
    joined_units,
    text_units,
)
from dataplane.expr.operators import OPERATORS, ORDER, negate
from dataplane.expr.values import EvaluationError, equal, kind, weight

Code = Callable[[Frame], Any]
_CONTAINERS: Final = (list, dict)
MATCH_UNITS: Final = 5
STEPS_PER_UNIT: Final = 100  # a step is one byte read by one instruction of a pattern's program


def constant(value: Any) -> Code:
    """Return code for a constant."""
    return lambda _frame: value


def variable(slot: int) -> Code:
    """Return code for a root, or the variable of a comprehension."""
    return lambda frame: frame[slot]


def path(slot: int, fields: Sequence[str]) -> Code:
    """Return code for `root.field.field`."""
    if len(fields) == 1:
        return _path_of_one(slot, fields[0])

    def run(frame: Frame) -> Any:
        value = frame[slot]
        try:
            for field in fields:
                value = value[field]
        except (KeyError, TypeError):
            raise _missing(frame[slot], fields) from None
        return value

    return run


def _path_of_one(slot: int, field: str) -> Code:
    def run(frame: Frame) -> Any:
        try:
            return frame[slot][field]
        except (KeyError, TypeError):
            raise _missing(frame[slot], [field]) from None

    return run


def select(operand: Code, fields: Sequence[str]) -> Code:
    """Return code for `operand.field.field`."""

    def run(frame: Frame) -> Any:
        whole = value = operand(frame)
        try:
            for field in fields:
                value = value[field]
        except (KeyError, TypeError):
            raise _missing(whole, fields) from None
        return value

    return run


def _missing(value: Any, fields: Sequence[str]) -> EvaluationError:
    for field in fields:
        if type(value) is not dict:
            return EvaluationError(f".{field} needs a map, got {kind(value)}")
        if field not in value:
            return EvaluationError(f"no such field: {field}")
        value = value[field]
    raise AssertionError("nothing is missing")


def has(operand: Code, field: str) -> Code:
    """Return code for `has(operand.field)`."""

    def run(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is not dict:
            raise EvaluationError(f"has(.{field}) needs a map, got {kind(value)}")
        return field in value

    return run


def index(operand: Code, key: Code) -> Code:
    """Return code for `operand[key]`."""

    def run(frame: Frame) -> Any:
        value, at = operand(frame), key(frame)
        if type(value) is dict:
            if type(at) is str:
                if len(at) >= WIDE_CHARS_PER_UNIT:
                    charge(frame, text_units(at))
                if at in value:
                    return value[at]
            raise EvaluationError("no such key")
        if type(value) is not list:
            raise EvaluationError(f"[] needs a list or a map, got {kind(value)}")
        if type(at) is not int:
            raise EvaluationError(f"a list needs an int in [], got {kind(at)}")
        if not 0 <= at < len(value):
            raise EvaluationError("index out of range")
        return value[at]

    return run


def invert(operand: Code) -> Code:
    """Return code for `!operand`."""

    def run(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is not bool:
            raise EvaluationError(f"! needs a bool, got {kind(value)}")
        return not value

    return run


def minus(operand: Code) -> Code:
    """Return code for `-operand`."""
    return lambda frame: negate(operand(frame))


def binary(op: str, left: Code, right: Code) -> Code:
    """Return code for an operator between two values; building or walking large values is charged."""
    operate, charge_operands = OPERATORS[op], _CHARGES.get(op)
    if charge_operands is None:
        return lambda frame: operate(left(frame), right(frame))

    def run(frame: Frame) -> Any:
        one, other = left(frame), right(frame)
        charge_operands(frame, one, other)
        return operate(one, other)

    return run


def _charge_sum(frame: Frame, one: Any, other: Any) -> None:
    if type(one) is str and type(other) is str:
        charge(frame, joined_units(one, other, len(one) + len(other)))
    elif type(one) is list and type(other) is list:
        charge(frame, len(one) + len(other))


def _charge_equality(frame: Frame, one: Any, other: Any) -> None:
    if type(one) is str and type(other) is str:
        if len(one) == len(other):
            charge(frame, text_units(one))
    elif type(one) in _CONTAINERS and type(other) in _CONTAINERS:
        charge(frame, weight(one, frame[BUDGET]))


def _charge_order(frame: Frame, one: Any, other: Any) -> None:
    if type(one) is str and type(other) is str:
        charge(frame, joined_units(one, other, min(len(one), len(other))))


def _charge_search(frame: Frame, needle: Any, holder: Any) -> None:
    units = text_units(needle) if type(needle) is str else 0
    if type(holder) is list:
        units = weight(holder, frame[BUDGET]) if type(needle) in _CONTAINERS else len(holder) * (1 + units)
    charge(frame, units)


_CHARGES: Final[dict[str, Callable[[Frame, Any, Any], None]]] = {
    "+": _charge_sum,
    "==": _charge_equality,
    "!=": _charge_equality,
    "in": _charge_search,
    **dict.fromkeys(ORDER, _charge_order),
}


def may_charge(op: str, *, constant: bool) -> bool:
    """Return whether an operator's cost may grow with its operands; a constant limits what is compared."""
    return op == "+" or (op in _CHARGES and not constant)


def binary_constant(op: str, left: Code, value: Any) -> Code:
    """Return code for an operator with a constant on its right: the usual predicate.

    A comparison reads no more than the length of the constant.
    """
    operate, kind_of = OPERATORS[op], type(value)
    if op == "+" and kind_of is str:
        return binary(op, left, constant(value))
    if op in ORDER and kind_of in (int, float, str):
        return _order_constant(op, left, value)
    if op == "==" and kind_of is str:
        return lambda frame: bool(left(frame) == value)  # only a string equals a string
    return lambda frame: operate(left(frame), value)


def _order_constant(op: str, left: Code, value: Any) -> Code:
    compare, slow, kind_of = ORDER[op], OPERATORS[op], type(value)

    def run(frame: Frame) -> Any:
        one = left(frame)
        return compare(one, value) if type(one) is kind_of else slow(one, value)

    return run


def among(left: Code, values: Sequence[Any]) -> Code:
    """Return code for `left in [constants]`."""
    if all(type(value) is str for value in values):
        texts = frozenset(values)

        def run_texts(frame: Frame) -> bool:
            value = left(frame)
            return type(value) is str and value in texts

        return run_texts

    def run(frame: Frame) -> bool:
        value = left(frame)
        return any(equal(value, one) for one in values)

    return run


def logical(decides: bool, parts: Sequence[Code]) -> Code:
    """Return code for `||` (decided by true) or `&&` (decided by false).

    An operand that decides absorbs the errors of all others.
    """

    def run(frame: Frame) -> bool:
        error: EvaluationError | None = None
        for part in parts:
            try:
                value: object = part(frame)
            except EvaluationError as exc:
                charge(frame, ERROR_UNITS)
                error = error or exc
                continue
            if value is decides:
                return decides
            if type(value) is not bool:
                error = error or EvaluationError(f"{'||' if decides else '&&'} needs bools, got {kind(value)}")
        if error is not None:
            raise error
        return not decides

    return run


def conditional(test: Code, yes: Code, no: Code) -> Code:
    """Return code for `test ? yes : no`; only the chosen branch runs."""

    def run(frame: Frame) -> Any:
        value = test(frame)
        if type(value) is not bool:
            raise EvaluationError(f"? needs a bool, got {kind(value)}")
        return yes(frame) if value else no(frame)

    return run


def list_of(items: Sequence[Code]) -> Code:
    """Return code for `[items]`."""
    return lambda frame: [item(frame) for item in items]


def map_of(entries: Sequence[tuple[Code, Code]]) -> Code:
    """Return code for `{key: value}`."""

    def run(frame: Frame) -> dict[str, Any]:
        built = {}
        for key, value in entries:
            name = key(frame)
            if type(name) is not str:
                raise EvaluationError(f"a map needs strings as keys, got {kind(name)}")
            built[name] = value(frame)
        if len(built) != len(entries):
            raise EvaluationError("a map needs different keys")
        return built

    return run


def call(function: Callable[..., Any], units: int, arguments: Sequence[Code]) -> Code:
    """Return code for a call of a function in FUNCTIONS; `units` is its fixed cost."""

    def run(frame: Frame) -> Any:
        charge(frame, units)
        return function(frame, *[argument(frame) for argument in arguments])

    return run


def matches(text: Code, pattern: Any) -> Code:
    """Return code for a search for the pattern anywhere in the text.

    When RE2 abandons its automaton because it grows too large, a byte takes about 9 ns for each instruction of the
    pattern's program: 1.8 s for a text of 250 KB and the largest of the patterns that were tried.
    """
    search, instructions = pattern.search, int(pattern.programsize)

    def run(frame: Frame) -> bool:
        value = text(frame)
        if type(value) is not str:
            raise EvaluationError(f"matches needs a string, got {kind(value)}")
        size_bytes = len(value) * (1 if value.isascii() else CHARS_PER_UNIT // WIDE_CHARS_PER_UNIT)
        charge(frame, MATCH_UNITS + size_bytes * instructions // STEPS_PER_UNIT)
        found: bool = search(value) is not None
        return found

    return run
