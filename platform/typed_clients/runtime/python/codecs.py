"""Checks of values, and their form in JSON, as Penstock's ingest takes them. Decimals, times and ids are texts."""

import json
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, Generic, TypeVar
from uuid import UUID

from .time_uuid import TimeUuid

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)
R = TypeVar("R", bound="EventPart")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_NANOSECONDS = 9  # digits after the second
_NANOSECOND_YEARS = range(1678, 2262)  # of which each nanosecond is a number of 64 bits
_TIME = re.compile(r"(\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?", re.ASCII)


class InvalidValueError(ValueError):
    """A value does not fit its type. `pointer`: JSON pointer to it; `reason`: what is needed."""

    def __init__(self, reason: str, pointer: str = "") -> None:
        super().__init__(f"{pointer}: {reason}" if pointer else reason)
        self.reason = reason
        self.pointer = pointer

    def below(self, name: str) -> "InvalidValueError":
        """Return the error as seen from the value that contains this one."""
        return InvalidValueError(self.reason, "/" + name.replace("~", "~0").replace("/", "~1") + self.pointer)


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """Turns values of a type into JSON and back. Both functions raise InvalidValueError."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], T]


@dataclass(frozen=True, slots=True)
class FieldCodec:
    """Codec of a field. `name`: in JSON; `attribute`: in the class; `is_optional`: omitted if it is None."""

    name: str
    attribute: str
    codec: Codec[Any]
    is_optional: bool = False


class EventPart:
    """Base of all generated classes with fields. Their values are checked when they are created."""

    __slots__ = ()

    @classmethod
    def fields(cls) -> tuple[FieldCodec, ...]:
        """Return the fields. Raises NotImplementedError here; generated classes have them."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        """Check the value. Raises InvalidValueError."""
        self.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON as Python values. Raises InvalidValueError."""
        found: dict[str, Any] = {}
        for one in self.fields():
            value = getattr(self, one.attribute)
            if value is None and one.is_optional:
                continue
            try:
                found[one.name] = one.codec.encode(value)
            except InvalidValueError as exc:
                raise exc.below(one.name) from None
        return found

    def to_json(self) -> str:
        """Return the JSON. Raises InvalidValueError."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_dict(cls: type[R], value: Any) -> R:
        """Return the value of decoded JSON; unknown fields are ignored. Raises InvalidValueError."""
        if not isinstance(value, dict):
            raise InvalidValueError("needs an object")
        given: dict[str, Any] = {}
        for one in cls.fields():
            if one.name not in value:
                if not one.is_optional:
                    raise InvalidValueError("is required, but missing").below(one.name)
                continue
            if value[one.name] is None and one.is_optional:
                continue
            try:
                given[one.attribute] = one.codec.decode(value[one.name])
            except InvalidValueError as exc:
                raise exc.below(one.name) from None
        return cls(**given)

    @classmethod
    def from_json(cls: type[R], text: str | bytes) -> R:
        """Return the value of a JSON text. Raises InvalidValueError."""
        return cls.from_dict(parse_json(text))


def parse_json(text: str | bytes) -> Any:
    """Return decoded JSON whose numbers are exact. Raises InvalidValueError."""
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as exc:
        raise InvalidValueError(f"needs JSON: {exc}") from None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def null() -> Codec[None]:
    """Return the codec of null."""
    return Codec(_null, _null)


def _null(value: Any) -> None:
    if value is not None:
        raise InvalidValueError("needs null")


def boolean() -> Codec[bool]:
    """Return the codec of true and false."""

    def check(value: Any) -> bool:
        if not isinstance(value, bool):
            raise InvalidValueError("needs a boolean")
        return value

    return Codec(check, check)


def integer(low: int, high: int) -> Codec[int]:
    """Return the codec of whole numbers, `low` and `high` included."""

    def check(value: Any) -> int:
        if not _is_whole(value) or not low <= value <= high:
            raise InvalidValueError(f"needs a whole number of {low} to {high}")
        return int(value)

    def read(value: Any) -> int:
        return check(int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value)

    return Codec(check, read)


def number(*, finite: bool = False, single: bool = False) -> Codec[float]:
    """Return the codec of floating-point numbers.

    finite: NaN and infinity are refused
    single: the numbers have 32 bits; others are rounded to the nearest one
    """

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidValueError("needs a number")
        try:
            found = float(value)
            return float(struct.unpack("<f", struct.pack("<f", found))[0]) if single else found
        except OverflowError:
            raise InvalidValueError("needs a number in the range of its type") from None

    def write(value: Any) -> float | str:
        found = check(value)
        if math.isfinite(found):
            return found
        if finite:
            raise InvalidValueError("needs a finite number")
        return "NaN" if math.isnan(found) else "Infinity" if found > 0 else "-Infinity"

    def read(value: Any) -> float:
        if isinstance(value, str) and value in _NAMED_FLOATS and not finite:
            return _NAMED_FLOATS[value]
        return check(float(value) if isinstance(value, Decimal) else value)

    return Codec(write, read)


def text(low: int | None = None, high: int | None = None) -> Codec[str]:
    """Return the codec of texts of `low` to `high` characters."""

    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise InvalidValueError("needs a text")
        if any("\ud800" <= one <= "\udfff" for one in value):
            raise InvalidValueError("has half of a character (a lone surrogate)")
        _check_size(len(value), low, high, "characters")
        return str(value)

    return Codec(check, check)


def octets(low: int | None = None, high: int | None = None) -> Codec[bytes]:
    """Return the codec of bytes: in JSON, one character for each byte."""

    def write(value: Any) -> str:
        if not isinstance(value, bytes):
            raise InvalidValueError("needs bytes")
        _check_size(len(value), low, high, "bytes")
        return value.decode("latin-1")

    def read(value: Any) -> bytes:
        try:
            found = value.encode("latin-1") if isinstance(value, str) else None
        except UnicodeEncodeError:
            found = None
        if found is None:
            raise InvalidValueError("needs a text with one character for each byte")
        _check_size(len(found), low, high, "bytes")
        return found

    return Codec(write, read)


def _check_size(size: int, low: int | None, high: int | None, unit: str) -> None:
    if low is not None and size < low:
        raise InvalidValueError(f"needs at least {low} {unit}, got {size}")
    if high is not None and size > high:
        raise InvalidValueError(f"needs at most {high} {unit}, got {size}")


def unique_id() -> Codec[UUID]:
    """Return the codec of UUIDs."""

    def write(value: Any) -> str:
        if not isinstance(value, UUID):
            raise InvalidValueError("needs a UUID")
        return str(value)

    def read(value: Any) -> UUID:
        if not isinstance(value, str) or not _UUID.fullmatch(value):
            raise InvalidValueError("needs a UUID")
        return UUID(value)

    return Codec(write, read)


def time_uuid() -> Codec[TimeUuid]:
    """Return the codec of TimeUuids."""

    def write(value: Any) -> str:
        if not isinstance(value, TimeUuid):
            raise InvalidValueError("needs a TimeUuid")
        return str(value)

    def read(value: Any) -> TimeUuid:
        if not isinstance(value, str):
            raise InvalidValueError("needs a UUID of version 1 or 7")
        try:
            return TimeUuid(value)
        except ValueError as exc:
            raise InvalidValueError(str(exc)) from None

    return Codec(write, read)


def decimal(precision: int, scale: int) -> Codec[Decimal]:
    """Return the codec of decimals with `scale` digits after the point and `precision` digits in total."""

    def check(value: Any) -> Decimal:
        if not isinstance(value, Decimal) and not _is_whole(value):
            raise InvalidValueError("needs a Decimal")
        found = Decimal(value)
        if not found.is_finite():
            raise InvalidValueError("needs a finite number")
        _, digits, exponent = found.as_tuple()
        if not any(digits):
            return found
        whole = len(digits) + int(exponent)  # digits before the point
        if whole > precision - scale:
            raise InvalidValueError(f"needs at most {precision - scale} digits before the point")
        if any(digits[max(0, whole + scale) :]):
            raise InvalidValueError(f"needs at most {scale} digits after the point")
        return found

    def read(value: Any) -> Decimal:
        try:
            return check(Decimal(value) if isinstance(value, str) else value)
        except InvalidOperation:
            raise InvalidValueError("needs a number as text, such as 12.50") from None

    return Codec(lambda value: format(check(value), "f"), read)


def timestamp(digits: int) -> Codec[datetime]:
    """Return the codec of moments with a zone, with up to `digits` digits after the second; Python has six."""
    return Codec(lambda value: _moment_text(value, digits, is_local=False), lambda value: _moment(value, digits, False))


def local_timestamp(digits: int) -> Codec[datetime]:
    """Return the codec of moments without a zone."""
    return Codec(lambda value: _moment_text(value, digits, is_local=True), lambda value: _moment(value, digits, True))


def _moment_text(value: Any, digits: int, *, is_local: bool) -> str:
    if not isinstance(value, datetime) or is_local is not (value.tzinfo is None):
        raise InvalidValueError(f"needs a datetime with{'out' if is_local else ''} a zone")
    clock = value if is_local else value.astimezone(UTC).replace(tzinfo=None)
    if digits == _NANOSECONDS and clock.year not in _NANOSECOND_YEARS:
        raise InvalidValueError("needs a year of 1678 to 2261, because it is counted in nanoseconds")
    return clock.replace(microsecond=0).isoformat() + _fraction(clock.microsecond, digits) + ("" if is_local else "Z")


def _fraction(microsecond: int, digits: int) -> str:
    """Return the digits after the second: none for whole seconds, else as many as the type has."""
    if digits < 6 and microsecond % 10 ** (6 - digits):
        raise InvalidValueError(f"needs at most {digits} digits after the second")
    return "." + f"{microsecond:06}".ljust(digits, "0")[:digits] if microsecond else ""


def _moment(value: Any, digits: int, is_local: bool) -> datetime:
    try:
        if _is_whole(value):
            found = _EPOCH + timedelta(microseconds=value * 1_000_000 // 10**digits)
            return found.replace(tzinfo=None) if is_local else found
        parts = _MOMENT.fullmatch(value) if isinstance(value, str) else None
        if parts is not None and is_local is (parts[4] is None):
            micros = (parts[3] or "").ljust(6, "0")[:6]
            return datetime.fromisoformat(f"{parts[1]}T{parts[2]}.{micros}{(parts[4] or '').upper()}")
    except (ValueError, OverflowError):
        pass
    raise InvalidValueError("needs a time as of RFC 3339, such as 2026-11-25T08:00:00.123Z")


def day() -> Codec[date]:
    """Return the codec of dates."""

    def write(value: Any) -> str:
        if not isinstance(value, date) or isinstance(value, datetime):
            raise InvalidValueError("needs a date")
        return value.isoformat()

    def read(value: Any) -> date:
        try:
            if _is_whole(value):
                return date(1970, 1, 1) + timedelta(days=value)
            if isinstance(value, str):
                return date.fromisoformat(value)
        except (ValueError, OverflowError):
            pass
        raise InvalidValueError("needs a date, such as 2026-11-25")

    return Codec(write, read)


def time_of_day(digits: int) -> Codec[time]:
    """Return the codec of times of day with up to `digits` digits after the second."""

    def write(value: Any) -> str:
        if not isinstance(value, time) or value.tzinfo is not None:
            raise InvalidValueError("needs a time without a zone")
        return value.replace(microsecond=0).isoformat() + _fraction(value.microsecond, digits)

    def read(value: Any) -> time:
        try:
            if _is_whole(value) and 0 <= value < 86_400 * 10**digits:
                return (_EPOCH + timedelta(microseconds=value * 1_000_000 // 10**digits)).time()
            parts = _TIME.fullmatch(value) if isinstance(value, str) else None
            if parts is not None:
                return time.fromisoformat(f"{parts[1]}.{(parts[2] or '').ljust(6, '0')[:6]}")
        except ValueError:
            pass
        raise InvalidValueError("needs a time of day, such as 08:00:00.123")

    return Codec(write, read)


def any_json() -> Codec[Any]:
    """Return the codec of any JSON."""

    def write(value: Any) -> Any:
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as exc:
            raise InvalidValueError(f"needs JSON: {exc}") from None
        return value

    return Codec(write, _with_floats)


def _with_floats(value: Any) -> Any:
    match value:
        case Decimal():
            return float(value)
        case list():
            return [_with_floats(one) for one in value]
        case dict():
            return {name: _with_floats(one) for name, one in value.items()}
    return value


def enum(kind: type[E]) -> Codec[E]:
    """Return the codec of an enum."""

    def write(value: Any) -> str:
        if not isinstance(value, kind):
            raise InvalidValueError(f"needs a {kind.__name__}")
        return value.value

    def read(value: Any) -> E:
        try:
            return kind(value)
        except ValueError:
            raise InvalidValueError(f"needs one of {', '.join(kind)}"[:200]) from None

    return Codec(write, read)


def record(kind: type[R]) -> Codec[R]:
    """Return the codec of a generated class."""

    def write(value: Any) -> Any:
        if not isinstance(value, kind):
            raise InvalidValueError(f"needs a {kind.__name__}")
        return value.to_dict()

    return Codec(write, kind.from_dict)


def listing(item: Codec[T], low: int | None = None, high: int | None = None) -> Codec[Sequence[T]]:
    """Return the codec of lists of `low` to `high` items."""

    def walk(value: Any, turn: Callable[[Any], Any]) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise InvalidValueError("needs a list")
        _check_size(len(value), low, high, "items")
        return [_at(str(place), turn, one) for place, one in enumerate(value)]

    return Codec(lambda value: walk(value, item.encode), lambda value: walk(value, item.decode))


def mapping(item: Codec[T]) -> Codec[Mapping[str, T]]:
    """Return the codec of values by text."""
    name = text()

    def walk(value: Any, turn: Callable[[Any], Any]) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise InvalidValueError("needs a mapping")
        return {name.encode(key): _at(str(key), turn, one) for key, one in value.items()}

    return Codec(lambda value: walk(value, item.encode), lambda value: walk(value, item.decode))


def _at(name: str, turn: Callable[[Any], Any], value: Any) -> Any:
    try:
        return turn(value)
    except InvalidValueError as exc:
        raise exc.below(name) from None


def nullable(item: Codec[T]) -> Codec[T | None]:
    """Return the codec of a type that also has null."""
    return Codec(
        lambda value: None if value is None else item.encode(value),
        lambda value: None if value is None else item.decode(value),
    )


def union(*branches: tuple[str, Codec[Any]]) -> Codec[Any]:
    """Return the codec of a union; a value is of the first branch that takes it.

    In JSON it is `{"<branch>": value}` if it could be taken for an earlier branch, else the value.
    """
    labels = {label for label, _ in branches}

    def write(value: Any) -> Any:
        for place, (label, branch) in enumerate(branches):
            try:
                found = branch.encode(value)
            except InvalidValueError:
                continue
            is_named = isinstance(found, dict) and len(found) == 1 and labels & found.keys()
            if is_named or any(_reads(one, found) for _, one in branches[:place]):
                return {label: found}
            return found
        raise InvalidValueError(f"needs a value of {', '.join(sorted(labels))}"[:200])

    def read(value: Any) -> Any:
        if isinstance(value, dict) and len(value) == 1:
            ((given, inner),) = value.items()
            for label, branch in branches:
                if label == given:
                    return _at(label, branch.decode, inner)
        for _, branch in branches:
            if _reads(branch, value):
                return branch.decode(value)
        raise InvalidValueError(f"needs a value of {', '.join(sorted(labels))}"[:200])

    return Codec(write, read)


def _reads(codec: Codec[Any], value: Any) -> bool:
    try:
        codec.decode(value)
    except InvalidValueError:
        return False
    return True
