"""How much of ingest's time a schema may take for one event, and how large events may be so that it does not. Pure.

Ingest serves all tenants on one event loop, and a check is one call that nobody can interrupt. A named field is looked
at once an event; items, and fields that nobody named, are looked at as often as the sender writes them, each by every
alternative that may fit; patterns and formats read every byte.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from dataplane.expr.patterns import compile_pattern

SLOW: Final = 10  # a comparison with a fraction, or with a number of more than 64 bits, in parts
DIGITS_BITS: Final = 256  # of such a number: so many more cost as much again
LOOKS: Final = 150_000  # of parts at values of one event, 0.25 us each
STEPS: Final = 4_000_000  # of patterns' programs over bytes of one event: 9 ns each, where the engine is at its slowest
MAX_VALUES: Final = 10_000  # of an event, whatever its schema is
MAX_BYTES: Final = 1024 * 1024  # of an event; ingest takes no larger ones
BRIEF_STEPS: Final = 20_000  # of a pattern on a named field of bounded length: that is nothing
UNKNOWN_STEPS: Final = 500  # of a pattern that RE2 does not know, for each byte
_NUMBERS: Final = ("const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
# Schemas that look at the very value that the one they stand in looks at.
_BESIDE: Final = ("not", "if", "then", "else")
_BESIDE_MANY: Final = ("allOf", "anyOf", "oneOf")
_FIELDS: Final = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ITEMS: Final = ("items", "contains", "unevaluatedItems")
Part = dict[str, Any]
Cost = Callable[[Part, bool], int]  # of one part at one value; whether an event may have many such values


class Limits(NamedTuple):
    """How many values and bytes an event may have, so that its check takes some 40 ms at most."""

    values: int
    size_bytes: int


def limits_of(schema: Any) -> Limits:
    """Return what events a schema has time for. `schema` has its `$ref`s written out."""
    return Limits(
        min(MAX_VALUES, LOOKS // max(1, crowd(schema))), min(MAX_BYTES, STEPS // max(1, _most(schema, _steps, False)))
    )


def crowd(schema: Any) -> int:
    """Return the most parts that look at one repeated value; a bound, never too low."""
    return max(_most(schema, _looks, False), _unevaluated(schema))


def _most(schema: Any, cost: Cost, repeated: bool) -> int:
    """The most that all parts together cost at any one value."""
    parts = list(_beside(schema))
    here = sum(cost(part, repeated) for part in parts)
    return max(here, sum(_below(part, cost, repeated) for part in parts))


def _beside(schema: Any) -> Iterable[Part]:
    if not isinstance(schema, dict):
        return
    yield schema
    for word in _BESIDE:
        yield from _beside(schema.get(word))
    for word in _BESIDE_MANY:
        for one in schema.get(word, ()):
            yield from _beside(one)
    for one in schema.get("dependentSchemas", {}).values():
        yield from _beside(one)


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
    """One, and what comparing with listed values costs: those of one plain kind are looked up."""
    if not repeated:
        return 0  # a named field comes once
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
    """What a byte of a text costs, in steps of a pattern's program."""
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
    """Each value that nobody named is looked for in all parts, a dozen of them in the time of one look."""
    if isinstance(schema, list):
        return max(map(_unevaluated, schema), default=0)
    if not isinstance(schema, dict):
        return 0
    here = sum(1 for _ in _beside(schema)) // 12 if {"unevaluatedProperties", "unevaluatedItems"} & schema.keys() else 0
    return max(here, *map(_unevaluated, schema.values()), 0)
