"""Turn decoded Avro into Python values with logical types, or into values of JSON. Pure.

Decoders give the numbers and bytes below the logical types, without the branch of a union that was written; the check
of the bytes knows the branches. JSON has them as text: bytes as in Avro's own JSON encoding (one character for each
byte), decimals exactly, times as of RFC 3339, floats that JSON lacks as "NaN" and "Infinity". A value of a union is
`{"<branch>": value}` only where it would otherwise be read as of an earlier branch.
"""

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from enum import Enum, auto
from typing import Any, Final
from uuid import UUID

from dataplane.schemas.avro import MAX_PRECISION, AvroType, LogicalType
from dataplane.schemas.bad_value import BadValueError
from dataplane.schemas.from_values import FAILED_STEPS, MAX_STEPS, TOO_MANY_STEPS, ValueReader, may_accept
from dataplane.schemas.standard import EPOCH, EPOCH_DAY, TIMESTAMP_UNITS

_EXACT: Final = Context(prec=MAX_PRECISION)
_NANOS: Final = 1_000_000_000
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


class Presenter:
    """Presents one decoded value with its logical types."""

    def __init__(self, branches: Iterable[int], style: ValueStyle) -> None:
        """`branches`: of the unions, in the order of the bytes."""
        self._branches = iter(branches)
        self._style = style
        self._budget = StepBudget()

    def present(self, node: AvroType, value: Any) -> Any:
        """Return the value. Raises BadValueError if its unions have more branches than may be compared."""
        match node.kind:
            case "record":
                return {one.name: self.present(one.type, value[one.name]) for one in node.fields}
            case "union":
                branch = node.branches[next(self._branches)]
                found = self.present(branch, value)
                is_named = self._style is not ValueStyle.PYTHON and is_ambiguous(node, branch, found, self._budget)
                return {branch.branch_name: found} if is_named else found
            case "array":
                return [self.present(node.inner, one) for one in value]
            case "map":
                return {key: self.present(node.inner, one) for key, one in value.items()}
        found = value if node.logical is None else _logical(node.logical, value)
        return found if self._style is ValueStyle.PYTHON else _json(found, self._style)


def _logical(logical: LogicalType, value: Any) -> Any:
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
