"""What each declarative step does to one decoded body.

`compile_step` turns a step into a function that changes the body in place. All of them:
In:     a decoded JSON body (dict, list or scalar), owned by the caller.
Out:    the body to go on with (the same object, changed).
Raises: StepError, naming path and cause; the message is then dead, the rest of its batch goes on.
Cost:   O(length of the path), keep: O(fields); no copy of the body.
"""

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from dataplane.spec import Cast, Keep, Mask, Remove, Rename, Set, Step
from dataplane.stages.paths import MISSING, compile_path, get, put, remove

Edit = Callable[[Any], Any]


class StepError(Exception):
    """A step cannot be done on this message. `path` is the field, `cause` what was needed; never the value itself."""

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"{path}: {cause}")
        self.path = path
        self.cause = cause


def compile_step(step: Step) -> Edit:
    """The step as a function of the body."""
    match step:
        case Set(path, value):
            return _set(path, value)
        case Remove(path):
            return _remove(path)
        case Rename(path, to):
            return _rename(path, to)
        case Keep(fields):
            return _keep(frozenset(fields))
        case Cast(path, to):
            return _cast(path, _CASTS[to], to)
        case Mask(path, how):
            return _mask(path, how)


def _set(path: str, value: Any) -> Edit:
    segments = compile_path(path)
    shared = not isinstance(value, dict | list)  # a container would be changed by later steps, for all messages

    def edit(body: Any) -> Any:
        _put(body, segments, value if shared else deepcopy(value), path)
        return body

    return edit


def _remove(path: str) -> Edit:
    segments = compile_path(path)

    def edit(body: Any) -> Any:
        remove(body, segments)
        return body

    return edit


def _rename(path: str, to: str) -> Edit:
    segments, target = compile_path(path), compile_path(to)

    def edit(body: Any) -> Any:
        value = remove(body, segments)
        if value is not MISSING:
            _put(body, target, value, to)
        return body

    return edit


def _keep(fields: frozenset[str]) -> Edit:
    def edit(body: Any) -> Any:
        if not isinstance(body, dict):
            raise StepError("$", f"keep needs an object, got {_kind(body)}")
        return {field: value for field, value in body.items() if field in fields}

    return edit


def _cast(path: str, convert: Callable[[Any], Any], to: str) -> Edit:
    segments = compile_path(path)

    def edit(body: Any) -> Any:
        value = get(body, segments)
        if value is MISSING or value is None:
            raise StepError(path, f"cast to {to} needs a value, got {'null' if value is None else 'nothing'}")
        try:
            put(body, segments, convert(value))
        except (ValueError, TypeError, InvalidOperation, OverflowError, OSError) as exc:  # OSError: a far date
            raise StepError(path, f"{_kind(value)} cannot be cast to {to}") from exc
        return body

    return edit


def _mask(path: str, how: str) -> Edit:
    segments = compile_path(path)

    def edit(body: Any) -> Any:
        value = get(body, segments)
        if value is not MISSING:
            text = str(value)
            put(body, segments, "***" + text[-4:] if how == "partial" and len(text) > 8 else "***")
        return body

    return edit


def _put(body: Any, segments: tuple[str, ...], value: Any, path: str) -> None:
    try:
        put(body, segments, value)
    except TypeError as exc:
        raise StepError(path, str(exc)) from exc


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _to_int(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise TypeError
    return int(value)


def _to_decimal(value: Any) -> Decimal:
    if isinstance(value, bool):
        raise TypeError
    number = Decimal(str(value))
    if not number.is_finite():
        raise ValueError
    return number


def _to_bool(value: Any) -> bool:
    meanings = {True: True, False: False, "true": True, "false": False, "1": True, "0": False}
    if value in meanings:
        return meanings[value]
    raise ValueError


def _to_string(value: Any) -> str:
    if isinstance(value, dict | list):
        raise TypeError
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _to_datetime(value: Any) -> str:
    """RFC 3339 text (an offset is needed) or seconds since the epoch, to RFC 3339 in UTC."""
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, int | float):
        moment = datetime.fromtimestamp(value, UTC)
    else:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


_CASTS: dict[str, Callable[[Any], Any]] = {
    "int": _to_int,
    "decimal": _to_decimal,
    "bool": _to_bool,
    "string": _to_string,
    "datetime": _to_datetime,
}
