"""The declarative steps a stage may hold. Data only: what a step does is in dataplane.stages."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

# Dotted path into an object or array: `order.lines.0.price`. Empty segments are refused by the pattern.
# (?!\n): `$` alone lets a final newline pass.
Path = Annotated[str, Meta(pattern=r"^[^.\s]+(\.[^.\s]+)*(?!\n)$", max_length=200)]


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
    """Keep only the named top-level fields."""

    fields: Annotated[list[Annotated[str, Meta(min_length=1, max_length=200)]], Meta(min_length=1, max_length=200)]


class Cast(Struct, tag="cast", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Turn the value at `path` into another type; a value that cannot be turned is a failed step."""

    path: Path
    to: Literal["int", "decimal", "bool", "string", "datetime"]


class Mask(Struct, tag="mask", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Hide the value at `path`: `redact` writes ***, `partial` keeps the last four characters."""

    path: Path
    how: Literal["redact", "partial"] = "redact"


Step = Set | Remove | Rename | Keep | Cast | Mask
