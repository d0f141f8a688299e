"""Cost of a schema check for one event, and the event size limits that bound it. Pure.

Ingest serves all tenants on one event loop, and a check is one call that cannot be interrupted. A named field is
checked once per event; items and unnamed fields as often as the sender writes them, each by every alternative that may
match; patterns and formats read every byte.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from dataplane.expr.patterns import compile_pattern

SLOW: Final = 10  # cost, in parts, of a comparison with a fraction or a number of more than 64 bits
DIGITS_BITS: Final = 256  # of such a number; each further so many bits cost as much again
LOOKS: Final = 150_000  # checks of one value by one part, per event; 0.25 us each
STEPS: Final = 4_000_000  # steps of patterns' programs over the bytes of one event; up to 9 ns each
MAX_VALUES: Final = 10_000  # of an event, for any schema
MAX_BYTES: Final = 1024 * 1024  # of an event; ingest accepts no larger ones
BRIEF_STEPS: Final = 20_000  # of a pattern on a named field of bounded length; below it the cost is ignored
UNKNOWN_STEPS: Final = 500  # per byte, of a pattern that RE2 does not accept
_NUMBERS: Final = ("const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
# Keywords whose subschemas check the same value as the schema that contains them.
_IN_PLACE: Final = ("not", "if", "then", "else")
_IN_PLACE_LISTS: Final = ("allOf", "anyOf", "oneOf")
_FIELDS: Final = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ITEMS: Final = ("items", "contains", "unevaluatedItems")
Part = dict[str, Any]
# (part, repeated) -> cost of one part at one value; repeated: an event may have many such values
Cost = Callable[[Part, bool], int]


class Limits(NamedTuple):
    """Maximum values and bytes of an event, so that its check takes about 40 ms at most."""

    values: int
    size_bytes: int


def limits_of(schema: Any) -> Limits:
    """Return the event size limits of a schema whose `$ref`s are expanded."""
    return Limits(
        min(MAX_VALUES, LOOKS // max(1, crowd(schema))), min(MAX_BYTES, STEPS // max(1, _most(schema, _steps, False)))
    )


def crowd(schema: Any) -> int:
    """Return an upper bound of the number of parts that check one repeated value."""
    return max(_most(schema, _looks, False), _unevaluated(schema))


def _most(schema: Any, cost: Cost, repeated: bool) -> int:
    """Return the maximum, over all values, of the total cost of the parts that check one value."""
    parts = list(_in_place(schema))
    here = sum(cost(part, repeated) for part in parts)
    return max(here, sum(_below(part, cost, repeated) for part in parts))


def _in_place(schema: Any) -> Iterable[Part]:
    if not isinstance(schema, dict):
        return
    yield schema
    for word in _IN_PLACE:
        yield from _in_place(schema.get(word))
    for word in _IN_PLACE_LISTS:
        for one in schema.get(word, ()):
            yield from _in_place(one)
    for one in schema.get("dependentSchemas", {}).values():
        yield from _in_place(one)


def _below(part: Part, cost: Cost, repeated: bool) -> int:
    named = max((_most(one, cost, repeated) for one in part.get("properties", {}).values()), default=0)
    unnamed = [part.get(word) for word in _FIELDS] + list(part.get("patternProperties", {}).values())
    names = sum(_steps({"pattern": one}, True) for one in part.get("patternProperties", {})) if cost is _steps else 0
    items = [part.get(word) for word in _ITEMS]
    first = max((_most(one, cost, repeated) for one in part.get("prefixItems", ())), default=0)
    return max(names, named + _all(unnamed, cost), first + _all(items, cost))


def _all(schemas: Iterable[Any], cost: Cost) -> int:
    return sum(_most(one, cost, True) for one in schemas)


def _looks(part: Part, repeated: bool) -> int:
    """Return 1 plus the cost of comparisons with listed values; lists of only strings or only integers are hashed."""
    if not repeated:
        return 0  # a named field occurs once
    values = part.get("enum", ())
    listed = 0 if all(type(one) is str for one in values) or all(type(one) is int for one in values) else 1
    compared = [*values, *(part.get(word) for word in _NUMBERS)]
    return 1 + sum(SLOW * _slow(one) for one in compared) + listed * len(values)


def _slow(value: Any) -> int:
    if isinstance(value, dict | list):
        return sum(map(_slow, value.values() if isinstance(value, dict) else value))
    if isinstance(value, int) and value.bit_length() > 63:
        return 1 + value.bit_length() // DIGITS_BITS
    return int(isinstance(value, float))


def _steps(part: Part, repeated: bool) -> int:
    """Return the cost of one byte of a text, in steps of a pattern's program."""
    steps = int("format" in part)
    if "pattern" in part:
        instructions = _instructions(part["pattern"])
        brief = not repeated and instructions * int(part.get("maxLength", MAX_BYTES)) <= BRIEF_STEPS
        steps += 0 if brief else instructions
    return steps


def _instructions(pattern: str) -> int:
    try:
        return int(compile_pattern(pattern).programsize)
    except ValueError:
        return UNKNOWN_STEPS


def _unevaluated(schema: Any) -> int:
    """Return the cost of unevaluated keywords: each unnamed value is searched in all parts, 12 of them per check."""
    if isinstance(schema, list):
        return max(map(_unevaluated, schema), default=0)
    if not isinstance(schema, dict):
        return 0
    here = (
        sum(1 for _ in _in_place(schema)) // 12 if {"unevaluatedProperties", "unevaluatedItems"} & schema.keys() else 0
    )
    return max(here, *map(_unevaluated, schema.values()), 0)
