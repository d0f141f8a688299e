"""Turn decoded Avro into Python values with logical types, or into values of JSON. Pure.

Decoders give the numbers and bytes below the logical types, without the branch of a union that was written; the check
of the bytes knows the branches. JSON has them as text: bytes as in Avro's own JSON encoding (one character for each
byte), decimals exactly, times as of RFC 3339, floats that JSON lacks as "NaN" and "Infinity". A value of a union is
`{"<branch>": value}` only where it would otherwise be read as of an earlier branch.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from dataplane.schemas.avro import MAX_PRECISION, AvroType, LogicalType
from dataplane.schemas.bad_value import BadValueError
from dataplane.schemas.from_values import FAILED_STEPS, MAX_STEPS, TOO_MANY_STEPS, ValueReader, may_accept
from dataplane.schemas.standard import EPOCH, EPOCH_DAY, TIMESTAMP_UNITS
from dataplane.schemas.tree_compiler import TreeCompiler

_EXACT: Final = Context(prec=MAX_PRECISION)
_NANOS: Final = 1_000_000_000
_CHANGED_IN_JSON: Final = ("float", "double", "bytes", "fixed")
_TIME_OF_DAY: Final = {"time-millis": 1_000, "time-micros": 1}


class ValueStyle(Enum):
    """Style of decoded values: values of Python, or of JSON with decimals as numbers or as texts."""

    PYTHON = auto()
    JSON_NUMBERS = auto()
    JSON_TEXTS = auto()


class StepBudget:
    """Steps that are left for the unions of one value; each earlier branch of each of them costs some."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_STEPS


def is_ambiguous(union: AvroType, branch: AvroType, value: Any, budget: StepBudget) -> bool:
    """Return True if a reader would take a value of JSON, without the name of its branch, for one of another branch.

    Raises BadValueError if the budget is used up.
    """
    if isinstance(value, dict) and len(value) == 1 and any(one.branch_name in value for one in union.branches):
        return True
    if isinstance(value, float) and math.isfinite(value):
        value = Decimal(repr(value))  # as a reader of the JSON gets it
    for one in union.branches:
        if one is branch:
            return False
        if value is not None and one.kind != "null" and may_accept(one, value) and _accepts(one, value, budget):
            return True
    return False


def _accepts(node: AvroType, value: Any, budget: StepBudget) -> bool:
    reader = ValueReader(None, budget.left)
    try:
        reader.read(node, value)
    except BadValueError:
        budget.left = reader.steps_left - FAILED_STEPS
        if budget.left < 0:
            raise BadValueError(TOO_MANY_STEPS) from None
        return False
    budget.left = reader.steps_left
    return True


class _Presentation:
    """State of presenting one value: the branches of its unions that are left, and the steps for comparing them."""

    __slots__ = ("branches", "budget")

    def __init__(self, branches: Iterable[int]) -> None:
        self.branches = iter(branches)
        self.budget = StepBudget()


PresentStep = Callable[[_Presentation, Any], Any]


def present(tree: AvroType, value: Any, branches: Iterable[int], style: ValueStyle) -> Any:
    """Return a decoded value with its logical types; it takes over the value's objects and arrays.

    branches: of the unions, in the order of the bytes

    Raises BadValueError if its unions have more branches than may be compared.
    """
    step = _compiled(tree, style)
    return value if step is None else step(_Presentation(branches), value)


@lru_cache(maxsize=1_000)
def _compiled(tree: AvroType, style: ValueStyle) -> PresentStep | None:
    return _Compiler(style).compile(tree)


class _Compiler(TreeCompiler[PresentStep | None]):
    """Compiles one schema to functions, None for values that are presented as they are decoded."""

    def __init__(self, style: ValueStyle) -> None:
        super().__init__()
        self._style = style

    def record(self, node: AvroType) -> PresentStep | None:
        """Return the function of a record."""
        steps = [(one.name, self.compile(one.type)) for one in node.fields]
        return _fields([(name, step) for name, step in steps if step is not None])

    def later(self, _node: AvroType, cell: list[PresentStep | None]) -> PresentStep | None:
        """Return a function that calls the one in `cell`."""
        return _later(cell)

    def union(self, node: AvroType, branches: Sequence[PresentStep | None]) -> PresentStep | None:
        """Return the function of a union."""
        is_text = self._style is not ValueStyle.PYTHON
        compared = [is_text and _may_be_ambiguous(node, number) for number in range(len(node.branches))]

        def union(state: _Presentation, value: Any) -> Any:
            number = next(state.branches)
            step = branches[number]
            found = value if step is None else step(state, value)
            if compared[number] and is_ambiguous(node, node.branches[number], found, state.budget):
                return {node.branches[number].branch_name: found}
            return found

        return union

    def array(self, item: PresentStep | None) -> PresentStep | None:
        """Return the function of an array."""
        return _array(item)

    def map(self, inner: PresentStep | None) -> PresentStep | None:
        """Return the function of a map."""
        return _map(inner)

    def leaf(self, node: AvroType) -> PresentStep | None:
        """Return the function of a type without inner types."""
        logical, style = node.logical, self._style
        if style is ValueStyle.PYTHON:
            return None if logical is None else lambda _, value: logical_value(logical, value)
        if logical is not None:
            return lambda _, value: _json(logical_value(logical, value), style)
        return (lambda _, value: _json(value, style)) if node.kind in _CHANGED_IN_JSON else None


def _may_be_ambiguous(union: AvroType, number: int) -> bool:
    """Return False if no value of a branch can be taken for one of another: all earlier branches are null."""
    branch = union.branches[number]
    return branch.kind in ("record", "map") or any(one.kind != "null" for one in union.branches[:number])


def _later(cell: list[PresentStep | None]) -> PresentStep:
    """Return the function of a record that is being compiled: its own field calls it."""

    def later(state: _Presentation, value: Any) -> Any:
        step = cell[0]
        return value if step is None else step(state, value)

    return later


def _fields(steps: list[tuple[str, PresentStep]]) -> PresentStep | None:
    def record(state: _Presentation, value: dict[str, Any]) -> Any:
        for name, step in steps:
            value[name] = step(state, value[name])
        return value

    return record if steps else None


def _array(item: PresentStep | None) -> PresentStep | None:
    if item is None:
        return None
    return lambda state, value: [item(state, one) for one in value]


def _map(inner: PresentStep | None) -> PresentStep | None:
    if inner is None:
        return None
    return lambda state, value: {key: inner(state, one) for key, one in value.items()}


def logical_value(logical: LogicalType, value: Any) -> Any:
    """Return the Python value of a decoded number, text or bytes: Decimal, UUID, date, time or datetime."""
    name = logical.name
    if name == "decimal":
        value = Decimal(int.from_bytes(value, signed=True)).scaleb(-logical.scale, _EXACT)
    elif name in ("uuid", "time-uuid"):
        value = UUID(value) if isinstance(value, str) else UUID(bytes=value)
    elif name == "date":
        value = EPOCH_DAY + timedelta(days=value)
    elif name in _TIME_OF_DAY:
        value = (EPOCH + timedelta(microseconds=value * _TIME_OF_DAY[name])).time()
    elif name in TIMESTAMP_UNITS:
        value = _moment(name.startswith("local"), value, TIMESTAMP_UNITS[name])
    return value  # duration: 12 bytes


def _moment(is_local: bool, value: int, units: int) -> Any:
    if units == _NANOS:
        return _Nanoseconds(value, is_local)
    moment = EPOCH + timedelta(microseconds=value * (1_000_000 // units))
    return moment.replace(tzinfo=None) if is_local else moment


class _Nanoseconds(int):
    """Nanoseconds since 1970, for which Python has no type; a number that knows how JSON shows it."""

    local: bool

    def __new__(cls, value: int, local: bool) -> "_Nanoseconds":
        built = super().__new__(cls, value)
        built.local = local
        return built

    def isoformat(self) -> str:
        """Return the moment as of RFC 3339."""
        seconds, rest = divmod(int(self), _NANOS)
        moment = (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
        return f"{moment}.{rest:09}" + ("" if self.local else "Z")


def _json(value: Any, style: ValueStyle) -> Any:
    match value:
        case Decimal() if style is ValueStyle.JSON_TEXTS:
            return format(value, "f")
        case bytes():
            return value.decode("latin-1")
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
        case UUID():
            return str(value)
        case datetime() if value.tzinfo is UTC:
            return value.replace(tzinfo=None).isoformat() + "Z"
    return value.isoformat() if hasattr(value, "isoformat") else value
