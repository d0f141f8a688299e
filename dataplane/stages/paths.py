"""Paths into decoded JSON: `order.lines.0.price`, compiled once to segments; `*` matches every element or field."""

from collections.abc import Iterator
from typing import Any, Final

from dataplane.expr import CostAllowance

Segments = tuple[str, ...]
WHOLE_BODY: Final = "$"
EACH: Final = "*"
VISIT_UNITS: Final = 2  # of an element or field that `*` matches


class Missing:
    """Type of MISSING, which `get` returns if there is nothing at a path; JSON null is a value."""


MISSING: Final = Missing()


def compile_path(path: str) -> Segments:
    """Split a path into segments; the spec has refused empty ones. `$` is the body itself: no segments."""
    return () if path == WHOLE_BODY else tuple(path.split("."))


def get(body: Any, segments: Segments) -> Any:
    """Return the value at the path, or MISSING.

    A hot path, like `put` and `remove`: most holders are plain dicts.
    """
    value = body
    for segment in segments:
        value = value.get(segment, MISSING) if type(value) is dict else _child(value, segment)
    return value


def put(body: Any, segments: Segments, value: Any) -> None:
    """Set the value at the path, creating objects along the path.

    Raises TypeError if something along the path is neither an object nor an array with that index.
    """
    holder = body
    for segment in segments[:-1]:
        child = holder.get(segment, MISSING) if type(holder) is dict else _child(holder, segment)
        if child is MISSING:
            child = {}
            _assign(holder, segment, child)
        holder = child
    if type(holder) is dict:
        holder[segments[-1]] = value
    else:
        _assign(holder, segments[-1], value)


def remove(body: Any, segments: Segments) -> Any:
    """Remove and return the value at the path; MISSING if there is none."""
    holder = get(body, segments[:-1])
    if type(holder) is dict:
        return holder.pop(segments[-1], MISSING)
    value = _child(holder, segments[-1])
    if value is not MISSING:
        del holder[int(segments[-1])]
    return value


def places(body: Any, segments: Segments, allowance: CostAllowance) -> Iterator[tuple[Any, Segments]]:
    """Yield (holder, rest of the path) for every match of a path that contains `*`; the rest contains none.

    Arrays are walked from their last element, so that matches may be removed meanwhile. Raises CostLimitError.
    """
    at = segments.index(EACH)
    holder, rest = get(body, segments[:at]), segments[at + 1 :]
    if not isinstance(holder, dict | list):
        return
    allowance.charge(VISIT_UNITS * (1 + len(holder)))
    if not rest:
        for key in _keys(holder):
            yield holder, (key,)
        return
    for child in list(holder.values()) if isinstance(holder, dict) else reversed(holder):
        if EACH in rest:
            yield from places(child, rest, allowance)
        else:
            yield child, rest


def _keys(holder: Any) -> list[str]:
    if isinstance(holder, dict):
        return list(holder)
    return [str(index) for index in reversed(range(len(holder)))] if isinstance(holder, list) else []


def _child(holder: Any, segment: str) -> Any:
    if isinstance(holder, dict):
        return holder.get(segment, MISSING)
    if isinstance(holder, list) and segment.isdecimal() and int(segment) < len(holder):
        return holder[int(segment)]
    return MISSING


def _assign(holder: Any, segment: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[segment] = value
    elif isinstance(holder, list) and segment.isdecimal() and int(segment) < len(holder):
        holder[int(segment)] = value
    else:
        raise TypeError(f"needs an object (or an array with that index) to hold {segment!r}")
