"""Find the field or value that failing messages have in common and other events do not. Pure.

Values are read only of categories (dataplane.ledger.fields): short plain texts, never what a person typed.
Source: the talk, "detect common causes of non-recoverable failures".
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from dataplane.ledger.fields import FieldObservation

MOST_BYTES: Final = 65_536  # of a body that is read
MOST_FIELDS: Final = 50
DEEPEST: Final = 4
LEAST_MESSAGES: Final = 5  # fewer have something in common by chance
LEAST_EVENTS: Final = 20  # fewer say nothing about what is usual
RARE: Final = 0.5  # a value that more of the events have explains no failure
MOST_NAMED: Final = 3
_PLAIN: Final = re.compile(r"(?!.*[0-9]{4})[\w .:/+-]{1,24}")
_KINDS: Final[Mapping[type, str]] = {list: "array", dict: "object", type(None): "null"}
Fields = dict[str, str]  # path -> value in words, or its type in brackets


def fields_of(body: bytes) -> Fields | None:
    """Return the fields of a JSON object with their values, or types for values that are not categories; else None."""
    if len(body) > MOST_BYTES:
        return None
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    found: Fields = {}
    if not isinstance(decoded, dict):
        return None
    _collect(decoded, "", 1, found)
    return found


def with_messages(details: Mapping[str, Any], messages: Sequence[Fields]) -> dict[str, Any]:
    """Return the details of an alert after more failing messages: the fields that all of them share, and their number.

    A field with different values is kept with its type only, and one that a message lacks is dropped.
    """
    shared: Fields | None = details.get("shared")
    for message in messages:
        shared = dict(message) if shared is None else _intersection(shared, message)
    return {**details, "examined": details.get("examined", 0) + len(messages), "shared": shared or {}}


def named_fields(details: Mapping[str, Any], samples: Iterable[FieldObservation]) -> list[dict[str, Any]]:
    """Return the shared fields that set the failing messages apart from the pipe's events, the rarest first.

    samples: recent samples of the pipe's events. Without them nothing is named: what all events have is not a cause.
    """
    if details.get("examined", 0) < LEAST_MESSAGES:
        return []
    observed = list(samples)
    events = sum(one.events for one in observed)
    if events < LEAST_EVENTS:
        return []
    found = []
    for path, value in details["shared"].items():
        share = _matching(observed, path, value) / events
        if share < RARE:
            found.append({"field": path, "value": value, "share": round(share, 3)})
    return sorted(found, key=lambda one: (one["share"], one["field"]))[:MOST_NAMED]


def in_words(named: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return sentences about the named fields."""
    return [
        f"All have {one['field']} = {one['value']}, which {one['share']:.0%} of the events have"
        if not str(one["value"]).startswith("(")
        else f"All have the field {one['field']} {one['value']}, which {one['share']:.0%} of the events have"
        for one in named
    ]


def _collect(value: Mapping[str, Any], prefix: str, depth: int, found: Fields) -> None:
    for name, inner in value.items():
        if len(found) >= MOST_FIELDS:
            return
        path = f"{prefix}{name}"[:80]
        found[path] = _value_text(inner)
        if isinstance(inner, dict) and depth < DEEPEST:
            _collect(inner, f"{path}.", depth + 1, found)


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else "(string)"
    return f"({_KINDS.get(type(value), 'number')})"


def _intersection(shared: Fields, message: Fields) -> Fields:
    return {
        path: value if message[path] == value else _type_of(value)
        for path, value in shared.items()
        if path in message and _type_of(message[path]) == _type_of(value)
    }


def _type_of(value: str) -> str:
    if value.startswith("("):
        return value
    return "(boolean)" if value in ("true", "false") else "(string)"


def _matching(samples: Sequence[FieldObservation], path: str, value: str) -> int:
    """Count the sampled events that have this value, or type, in this field."""
    total = 0
    for sample in samples:
        for one in sample.fields:
            if one.path == path:
                by_type = one.types.get(value[1:-1], 0)
                total += by_type if value.startswith("(") else _with_value(one.values, one.types, value)
    return total


def _with_value(values: Mapping[str, int] | None, types: Mapping[str, int], value: str) -> int:
    if value in ("true", "false") and not (values and value in values):
        return types.get("boolean", 0)  # values of booleans may not be collected: never name what may be usual
    if values is None:
        return sum(types.values())
    return values.get(value, 0)
