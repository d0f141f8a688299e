"""The declarative steps a stage may hold. Data only: what a step does is in dataplane.stages.

A path is names with dots between them, `order.lines.0.price`: a number is a place in an array, `*` is every element of
an array or every value of an object (not in rename, explode and map).
"""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

# Empty segments are refused. (?!\n): `$` alone lets a final newline pass.
PATH: Final = r"^[^.\s]+(\.[^.\s]+)*(?!\n)$"
Path = Annotated[str, Meta(pattern=PATH, max_length=200)]
Expression = Annotated[str, Meta(min_length=1, max_length=2_048)]
PEEK_NAME: Final = r"^[a-z0-9][a-z0-9-]{0,39}(?!\n)$"


class Set(Struct, tag="set", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Put a constant at `path`, making the objects on the way."""

    path: Path
    value: Any


class Remove(Struct, tag="remove", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Take the value at `path` away; absent is fine."""

    path: Path


class Rename(Struct, tag="rename", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Move the value at `path` to `to`; absent is fine."""

    path: Path
    to: Path


class Keep(Struct, tag="keep", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Keep only the named fields, each a path."""

    fields: Annotated[list[Path], Meta(min_length=1, max_length=200)]


class Cast(Struct, tag="cast", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Turn the value at `path` into another type; a value that cannot be turned is a failed step.

    `money` makes `{"amount": "12.50", "currency": "EUR"}` of text with a currency, or of a number with `currency` here.
    """

    path: Path
    to: Literal["int", "decimal", "bool", "string", "datetime", "uuid", "money"]
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}(?!\n)$")] | None = None


class Default(Struct, tag="default", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Put a constant at `path` where there is nothing, or null."""

    path: Path
    value: Any


class Mask(Struct, tag="mask", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Hide the value at `path`: `redact` writes ***, `partial` keeps the last four characters, `hash` a keyed hash.

    The hash is made with a salt of the tenant's own: equal values stay equal within the tenant and tell nobody else
    anything.
    """

    path: Path
    how: Literal["redact", "partial", "hash"] = "redact"


class Explode(Struct, tag="explode", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Make one message of each element of the array at `path`: the body with the element in the array's place.

    `$` is the body itself. Only once, and only in `normalize`.
    """

    path: Path


class Peek(Struct, tag="peek", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Show a share of the messages as they are here, in the live tail; they go on unchanged. Dry runs show them all."""

    name: Annotated[str, Meta(pattern=PEEK_NAME)]
    share: Annotated[float, Meta(gt=0, le=1)] = 0.01


class Filter(Struct, tag="filter", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Go on only with messages for which the expression `when` is true; the others end as filtered."""

    when: Expression


class Map(Struct, tag="map", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Put the value of the expression `expr` at `path`, making the objects on the way; `$` is the whole body."""

    path: Path
    expr: Expression


Step = Set | Remove | Rename | Keep | Cast | Default | Mask | Explode | Peek | Filter | Map
STEP_TYPES: Final = (Set, Remove, Rename, Keep, Cast, Default, Mask, Explode, Peek, Filter, Map)
