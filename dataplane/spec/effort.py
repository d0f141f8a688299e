"""How many parts of a schema may look at one value of an event, where the event has as many values as it likes. Pure.

Ingest serves all tenants. A named field is looked at once an event; items, and fields that nobody named, are looked at
as often as the sender writes them, each by every alternative that may fit.
"""

from collections.abc import Iterable
from typing import Any, Final

SLOW: Final = 10  # a comparison with a fraction, or with a number of more than 64 bits, in parts
_NUMBERS: Final = ("const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
# Schemas that look at the very value that the one they stand in looks at.
_BESIDE: Final = ("not", "if", "then", "else")
_BESIDE_MANY: Final = ("allOf", "anyOf", "oneOf")
_FIELDS: Final = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ITEMS: Final = ("items", "contains", "unevaluatedItems")


def crowd(schema: Any, *, repeated: bool = False) -> int:
    """The most parts that look at one repeated value; a bound, never too low. `schema` has its `$ref`s written out."""
    parts = list(_beside(schema))
    here = sum(map(_cost, parts)) if repeated else 0
    return max(here, sum(_below(part, repeated=repeated) for part in parts))


def _beside(schema: Any) -> Iterable[dict[str, Any]]:
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


def _below(part: dict[str, Any], *, repeated: bool) -> int:
    named = max((crowd(one, repeated=repeated) for one in part.get("properties", {}).values()), default=0)
    unnamed = [part.get(word) for word in _FIELDS] + list(part.get("patternProperties", {}).values())
    items = [part.get(word) for word in _ITEMS]
    first = max((crowd(one, repeated=repeated) for one in part.get("prefixItems", ())), default=0)
    return max(named + _all(unnamed), first + _all(items))


def _all(schemas: Iterable[Any]) -> int:
    return sum(crowd(one, repeated=True) for one in schemas)


def _cost(part: dict[str, Any]) -> int:
    """One, and what comparing with listed values costs: those of one plain kind are looked up."""
    values = part.get("enum", ())
    listed = 0 if all(type(one) is str for one in values) or all(type(one) is int for one in values) else 1
    compared = [*values, *(part.get(word) for word in _NUMBERS)]
    return 1 + sum(SLOW * _slow(one) for one in compared) + listed * len(values)


def _slow(value: Any) -> int:
    if isinstance(value, dict | list):
        return sum(map(_slow, value.values() if isinstance(value, dict) else value))
    return int(isinstance(value, float) or (isinstance(value, int) and value.bit_length() > 63))
