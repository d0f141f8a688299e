"""Turn JSON or Python values into the values that an Avro encoder writes. Pure.

Nothing is lost or guessed: a field that the schema lacks, a number that its type cannot hold exactly and a time with
too many digits are refused, with the place. In a union, `{"<branch>": value}` names the branch, as in Avro's own JSON
encoding; any other value is of the first branch that accepts it.
"""

import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

import msgspec

from dataplane.schemas.avro import INT_BITS, NO_DEFAULT, AvroField, AvroType, LogicalType
from dataplane.schemas.bad_value import BadValueError, WrongKindError
from dataplane.schemas.binary import MAX_DEPTH, TOO_DEEP, TOO_MANY
from dataplane.schemas.standard import (
    EPOCH,
    EPOCH_DAY,
    RANGES,
    TIMESTAMP_UNITS,
    currency_problem,
    number_problem,
    time_uuid_problem,
    unscaled_number,
    uuid_bytes,
    uuid_problem,
)
from dataplane.spec.effort import MAX_VALUES

MAX_STEPS: Final = 2 * MAX_VALUES  # values compared with a branch
FAILED_STEPS: Final = 3  # what a branch that does not accept the value counts; it costs as much as several values
FIELDS_PER_STEP: Final = 16  # fields of a record that are looked for at the cost of one value
TOO_MANY_STEPS: Final = f"needs at most {MAX_STEPS} values, each counted once for each branch it may be of"
MAX_NUMBER: Final = 1_200  # characters of a number
_NAMED_FLOATS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_TIME: Final = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?", re.ASCII)
_TIME_UNITS: Final = {"time-millis": 1_000, "time-micros": 1_000_000}
_MICRO: Final = timedelta(microseconds=1)
Leaf = Callable[[AvroType, Any], Any]


def exact_number(text: str) -> Decimal:
    """Return the number of a JSON text. Raises BadValueError if it is longer than any type holds."""
    if len(text) > MAX_NUMBER:
        raise BadValueError(f"needs numbers of at most {MAX_NUMBER} characters")
    return Decimal(text)


exact_json: Final = msgspec.json.Decoder(float_hook=exact_number).decode  # raises BadValueError, too


class ValueReader:
    """Reads one value; `now_us`: our clock, for the clocks of TimeUuids. `steps_left`: what is left of its limit."""

    def __init__(self, now_us: int | None, steps: int = MAX_STEPS) -> None:
        self._now_us = now_us
        self.steps_left = steps
        self._values = MAX_VALUES
        self._depth = MAX_DEPTH
        self._is_raw = False

    def read(self, node: AvroType, value: Any) -> Any:
        """Return the value as the encoder takes it. Raises BadValueError."""
        self.steps_left -= 1
        if self.steps_left < 0:
            raise BadValueError(TOO_MANY_STEPS)
        match node.kind:
            case "record" | "array" | "map":
                return self._container(node, value)
            case "union":
                return self._union(node, value)
        if self._is_raw and node.logical is not None:
            node = replace(node, logical=None)
        return _leaf(node, value, self._now_us)

    def _container(self, node: AvroType, value: Any) -> Any:
        is_array = node.kind == "array"
        if isinstance(value, list) is not is_array or isinstance(value, dict) is is_array:
            raise WrongKindError(node, value)
        self._depth -= 1
        self._values -= len(node.fields) + 1 if node.kind == "record" else len(value)
        if self._depth < 0 or self._values < 0:
            self._depth += 1
            raise BadValueError(TOO_DEEP if self._depth == 0 else TOO_MANY)
        try:
            if is_array:
                return [self._below(node.inner, one, str(place)) for place, one in enumerate(value)]
            if node.kind == "map":
                return {_text(node, key): self._below(node.inner, one, key) for key, one in value.items()}
            return self._record(node, value)
        finally:
            self._depth += 1

    def _record(self, node: AvroType, value: dict[str, Any]) -> dict[str, Any]:
        self.steps_left -= len(node.fields) // FIELDS_PER_STEP  # a wide record that fails is not free
        if self.steps_left < 0:
            raise BadValueError(TOO_MANY_STEPS)
        built: dict[str, Any] = {one.name: None for one in node.fields}
        # Before the fields are read: in a union, records of other fields are then ruled out at once.
        for one in node.fields:
            if one.name not in value and one.default is NO_DEFAULT:
                raise BadValueError("is required, but missing").below(one.name)
        for name in value:
            if name not in built:
                raise BadValueError("is not a field of the schema").below(str(name))
        for one in node.fields:
            is_given = one.name in value
            built[one.name] = self._below(one.type, value[one.name], one.name) if is_given else self.default(one)
        if node.logical is not None and (problem := money_problem(built["currency"])):
            raise BadValueError(problem).below("currency")
        return built

    def default(self, one: AvroField) -> Any:
        """Return a field's default, stated without logical types: a decimal as the text of its bytes."""
        was_raw, self._is_raw = self._is_raw, True
        try:
            return self._below(one.type, one.default, one.name)
        finally:
            self._is_raw = was_raw

    def _below(self, node: AvroType, value: Any, name: str) -> Any:
        try:
            return self.read(node, value)
        except BadValueError as exc:
            raise exc.below(name) from None

    def _union(self, node: AvroType, value: Any) -> tuple[str, Any]:
        if isinstance(value, dict) and len(value) == 1:
            ((label, inner),) = value.items()
            for branch in node.branches:
                if label == branch.branch_name:
                    return label, self._below(branch, inner, label)
        deep: list[BadValueError] = []
        for branch in node.branches:
            if not may_accept(branch, value):
                continue
            values = self._values
            try:
                return branch.branch_name, self.read(branch, value)
            except BadValueError as exc:
                self._values = values
                if self.steps_left < 0:
                    raise
                self.steps_left -= FAILED_STEPS
                if exc.parts or not exc.is_mismatch:
                    deep.append(exc.with_traceback(None))  # its frames would keep every value alive
        # The error of the only branch of this shape says more than that no branch accepts the value.
        raise deep[0] if len(deep) == 1 else WrongKindError(node, value)


def _leaf(node: AvroType, value: Any, now_us: int | None) -> Any:
    found = _LEAVES[node.kind](node, value)
    if node.logical is not None and node.logical.name == "time-uuid":
        raw = uuid_bytes(found) if isinstance(found, str) else found
        if problem := time_uuid_problem(raw, now_us):
            raise BadValueError(problem)
    return found


def accepts_leaf(node: AvroType, value: Any, now_us: int | None = None) -> bool:
    """Return True if a type without inner types accepts the value. `now_us`: our clock, for the clocks of TimeUuids."""
    try:
        _leaf(node, value, now_us)
    except BadValueError:
        return False
    return True


def may_accept(branch: AvroType, value: Any) -> bool:
    """Return False if a branch cannot accept a value of this kind: most branches, at no cost."""
    match value:
        case None:
            return branch.kind == "null"
        case bool():
            return branch.kind == "boolean"
        case dict():
            return branch.kind in ("record", "map")
        case list():
            return branch.kind == "array"
        case str():
            is_text = branch.kind in ("string", "bytes", "fixed", "enum")
            return is_text or branch.logical is not None or value in _NAMED_FLOATS
    return branch.kind in ("int", "long", "float", "double") or branch.logical is not None or not isinstance(value, int)


def money_problem(currency: Any) -> str | None:
    """Return what is wrong with a currency in text; a schema lists the symbols of an enum itself."""
    return currency_problem(currency) if isinstance(currency, str) else None


def _null(node: AvroType, value: Any) -> None:
    if value is not None:
        raise WrongKindError(node, value)


def _boolean(node: AvroType, value: Any) -> bool:
    if not isinstance(value, bool):
        raise WrongKindError(node, value)
    return value


def _whole(node: AvroType, value: Any) -> int:
    if node.logical is not None and node.logical.name in RANGES:
        number = _dated(node, node.logical, value)
        if problem := number_problem(node.logical, number):
            raise BadValueError(problem)
        return number
    return _integer(node, value)


def _integer(node: AvroType, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongKindError(node, value)
    bits = INT_BITS[node.kind]
    if not -(1 << bits) <= value < 1 << bits:
        raise BadValueError(f"needs a number of at most {bits + 1} bits")
    return int(value)


def _dated(node: AvroType, logical: LogicalType, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return _integer(node, value)
    if logical.name in TIMESTAMP_UNITS:
        return _moment(node, logical.name, value)
    if logical.name in _TIME_UNITS and isinstance(value, str | time):
        return _time_number(logical.name, value if isinstance(value, str) else value.isoformat())
    return _day(node, value)


def _day(node: AvroType, value: Any) -> int:
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value)
        except ValueError as exc:
            raise BadValueError("needs a date, such as 2026-11-25") from exc
    if not isinstance(value, date) or isinstance(value, datetime):
        raise WrongKindError(node, value)
    return (value - EPOCH_DAY).days


def _moment(node: AvroType, name: str, value: Any) -> int:
    if isinstance(value, datetime):
        return _moment_number(name, value, 0)
    if isinstance(value, str):
        return _moment_text(name, value)
    raise WrongKindError(node, value)


def _moment_text(name: str, text: str) -> int:
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise BadValueError("needs a time as of RFC 3339, such as 2026-11-25T08:00:00.123Z")
    day, clock, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{(zone or '').upper()}")
    except ValueError as exc:
        raise BadValueError("needs a day and a time that exist") from exc
    return _moment_number(name, moment, int((fraction or "").ljust(9, "0")))


def _moment_number(name: str, moment: datetime, nanos: int) -> int:
    is_local = name.startswith("local")
    if is_local is not (moment.tzinfo is None):
        raise BadValueError("needs a time without a zone" if is_local else "needs a zone, such as Z or +01:00")
    since = moment.replace(tzinfo=UTC) - EPOCH if is_local else moment - EPOCH
    return _in_units(since // _MICRO * 1_000 + nanos, TIMESTAMP_UNITS[name])


def _time_number(name: str, text: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise BadValueError("needs a time of day, such as 08:00:00.123")
    hours, minutes, seconds = map(int, found.groups()[:3])
    if hours > 23 or minutes > 59 or seconds > 59:
        raise BadValueError("needs a time that exists")
    nanos = int((found[4] or "").ljust(9, "0"))
    return _in_units(((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + nanos, _TIME_UNITS[name])


def _in_units(nanos: int, units: int) -> int:
    number, rest = divmod(nanos, 1_000_000_000 // units)
    if rest:
        raise BadValueError(f"needs at most {len(str(units)) - 1} digits after the second")
    return number


def _double(node: AvroType, value: Any) -> float:
    found = _number(node, value)
    if math.isfinite(found) and Decimal(repr(found)) != Decimal(value) and found != value:
        raise BadValueError("has more digits than a double holds")
    return found


def _float(node: AvroType, value: Any) -> float:
    found = _number(node, value)
    if not math.isfinite(found):
        return found
    try:
        (single,) = struct.unpack("<f", struct.pack("<f", found))
    except OverflowError as exc:
        raise BadValueError("needs a number that a float holds") from exc
    wanted = Decimal(value)
    if found != single and all(Decimal(f"{single:.{digits}g}") != wanted for digits in range(6, 10)):
        raise BadValueError("has more digits than a float holds")
    return found


def _number(node: AvroType, value: Any) -> float:
    if isinstance(value, str) and value in _NAMED_FLOATS:
        return _NAMED_FLOATS[value]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise WrongKindError(node, value)
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if math.isinf(found) and not isinstance(value, float):
        raise BadValueError(f"needs a number that a {node.kind} holds")
    return found


def _text(node: AvroType, value: Any) -> str:
    if isinstance(value, UUID) and node.logical is not None:
        return str(value)
    if not isinstance(value, str):
        raise WrongKindError(node, value)
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        raise BadValueError("has half of a character (a lone surrogate)") from exc
    if node.logical is not None and (problem := uuid_problem(value)):
        raise BadValueError(problem)
    return value


def _bytes(node: AvroType, value: Any) -> bytes:
    logical = node.logical
    if logical is not None and logical.name == "decimal":
        return _decimal(node, logical, value)
    if logical is not None and logical.name in ("uuid", "time-uuid") and not isinstance(value, bytes):
        text = str(value) if isinstance(value, UUID) else value
        if not isinstance(text, str):
            raise WrongKindError(node, value)
        if problem := uuid_problem(text):
            raise BadValueError(problem)
        return uuid_bytes(text)
    if isinstance(value, str):
        try:
            value = value.encode("latin-1")
        except UnicodeEncodeError as exc:
            raise BadValueError("needs one character of U+0000 to U+00FF for each byte") from exc
    if not isinstance(value, bytes):
        raise WrongKindError(node, value)
    if node.kind == "fixed" and len(value) != node.size:
        raise BadValueError(f"needs {node.size} bytes, got {len(value)}")
    return value


def _decimal(node: AvroType, logical: LogicalType, value: Any) -> bytes:
    if isinstance(value, str):
        try:
            value = exact_number(value)
        except InvalidOperation as exc:
            raise BadValueError("needs a number as text, such as 12.50") from exc
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise WrongKindError(node, value)
    try:
        number = unscaled_number(logical, Decimal(value))
    except ValueError as exc:
        raise BadValueError(str(exc)) from exc
    size = node.size if node.kind == "fixed" else number.bit_length() // 8 + 1
    return number.to_bytes(size, signed=True)


def _enum(node: AvroType, value: Any) -> str:
    if not isinstance(value, str):
        raise WrongKindError(node, value)
    if value not in node.symbols:
        raise BadValueError(f"needs a symbol of {node}")
    return value


_LEAVES: Final[Mapping[str, Leaf]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _whole,
    "long": _whole,
    "float": _float,
    "double": _double,
    "string": _text,
    "bytes": _bytes,
    "fixed": _bytes,
    "enum": _enum,
}
