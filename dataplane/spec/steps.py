"""The declarative steps of a stage. Data only: dataplane.stages implements them.

A path is a list of names separated by dots, `order.lines.0.price`: a number is an index into an array, `*` is every
element of an array or every value of an object (not in rename, explode and map).
"""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

# Empty segments are refused. (?!\n): `$` alone lets a final newline pass.
PATH: Final = r"^[^.\s]+(\.[^.\s]+)*(?!\n)$"
FieldPath = Annotated[str, Meta(pattern=PATH, max_length=200)]
Expression = Annotated[str, Meta(min_length=1, max_length=2_048)]
PEEK_NAME: Final = r"^[a-z0-9][a-z0-9-]{0,39}(?!\n)$"


class SetStep(Struct, tag="set", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Put a constant at `path`; missing objects on the path are created."""

    path: FieldPath
    value: Any


class RemoveStep(Struct, tag="remove", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Remove the value at `path`, if there is one."""

    path: FieldPath


class RenameStep(Struct, tag="rename", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Move the value at `path`, if there is one, to `to`."""

    path: FieldPath
    to: FieldPath


class KeepStep(Struct, tag="keep", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Keep only the named fields, each a path."""

    fields: Annotated[list[FieldPath], Meta(min_length=1, max_length=200)]


class CastStep(Struct, tag="cast", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Convert the value at `path` to another type; a value that cannot be converted fails the step.

    `money` gives `{"amount": "12.50", "currency": "EUR"}`, from text with a currency or from a number and `currency`.
    """

    path: FieldPath
    to: Literal["int", "decimal", "bool", "string", "datetime", "uuid", "money"]
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}(?!\n)$")] | None = None


class DefaultStep(Struct, tag="default", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Put a constant at `path` if the value is missing or null."""

    path: FieldPath
    value: Any


class MaskStep(Struct, tag="mask", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Hide the value at `path`: `redact` writes ***, `partial` keeps the last four characters, `hash` a keyed hash.

    The hash uses a salt of the tenant: equal values have equal hashes within the tenant, and other tenants cannot
    compare them.
    """

    path: FieldPath
    how: Literal["redact", "partial", "hash"] = "redact"


class ExplodeStep(Struct, tag="explode", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Make one message of each element of the array at `path`: the body with the element in place of the array.

    `$` is the body itself. Allowed once, and only in `normalize`.
    """

    path: FieldPath


class PeekStepSpec(Struct, tag="peek", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Copy a share of the messages at this step to the live tail; they continue unchanged. A dry run copies all."""

    name: Annotated[str, Meta(pattern=PEEK_NAME)]
    share: Annotated[float, Meta(gt=0, le=1)] = 0.01


class FilterStep(Struct, tag="filter", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Keep only messages for which the expression `when` is true; the others end as filtered."""

    when: Expression


class MapStep(Struct, tag="map", tag_field="op", forbid_unknown_fields=True, frozen=True):
    """Put the value of the expression `expr` at `path`; missing objects are created, `$` is the whole body."""

    path: FieldPath
    expr: Expression


Step = (
    SetStep
    | RemoveStep
    | RenameStep
    | KeepStep
    | CastStep
    | DefaultStep
    | MaskStep
    | ExplodeStep
    | PeekStepSpec
    | FilterStep
    | MapStep
)
STEP_TYPES: Final = (
    SetStep,
    RemoveStep,
    RenameStep,
    KeepStep,
    CastStep,
    DefaultStep,
    MaskStep,
    ExplodeStep,
    PeekStepSpec,
    FilterStep,
    MapStep,
)


def keeps_body(step: Step) -> bool:
    """Return True if a step only reads the body, so that its bytes stay as they were received."""
    return isinstance(step, FilterStep | PeekStepSpec)


def paths_overlap(one: str, other: str) -> bool:
    """Return True if one path is the other or leads to it; `*` is any element."""
    return all(
        left == right or "*" in (left, right) for left, right in zip(one.split("."), other.split("."), strict=False)
    )
