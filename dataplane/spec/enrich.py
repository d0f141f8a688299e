"""The `enrich` part of a spec: look-ups that add a table's row to the body."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from dataplane.spec.checks import EACH, WHOLE_BODY, check_constant, check_expression
from dataplane.spec.errors import SpecError
from dataplane.spec.names import Name
from dataplane.spec.steps import Expression, FieldPath


class EnrichSpec(Struct, forbid_unknown_fields=True, frozen=True):
    """Look-up: put the row of `table` whose key is the value of the expression `key` at `into`, as one object.

    A key is text, or an integer converted to text; null matches no row. Without a row `on_missing` decides: the message
    continues unchanged (`keep`), is dead-lettered (`dead`), or gets the constant `default` at `into`.
    """

    table: Name
    key: Expression
    into: FieldPath
    on_missing: Literal["keep", "dead", "default"] = "keep"
    default: Any = None


Enrichments = Annotated[list[EnrichSpec], Meta(max_length=20)]


def check_enrich(steps: Sequence[EnrichSpec]) -> None:
    """Check all look-ups. Raises SpecError, with the step and its field."""
    for number, step in enumerate(steps):
        where = f"$.enrich[{number}]"
        check_expression(f"{where}.key", step.key)
        if step.into == WHOLE_BODY or EACH in step.into.split("."):
            raise SpecError(f"{where}.into", "needs a path below the body, without *")
        check_constant(f"{where}.default", step.default)
        if step.default is not None and step.on_missing != "default":
            raise SpecError(f"{where}.default", f"must be omitted if on_missing is {step.on_missing}")
