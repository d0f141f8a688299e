"""The look-ups of a spec: which row of which table goes where in the body."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from dataplane.spec.checks import EACH, WHOLE_BODY, check_constant, check_expression
from dataplane.spec.errors import SpecError
from dataplane.spec.names import Name
from dataplane.spec.steps import Expression, Path


class Enrich(Struct, forbid_unknown_fields=True, frozen=True):
    """Put the row of `table` that the expression `key` names at `into`: an object, whole.

    A key is text, or a whole number taken as its text; null is the key of no row. Without a row `on_missing` decides:
    the message goes on as it is (`keep`), is dead, or gets the constant `default` at `into`.
    """

    table: Name
    key: Expression
    into: Path
    on_missing: Literal["keep", "dead", "default"] = "keep"
    default: Any = None


Enrichments = Annotated[list[Enrich], Meta(max_length=20)]


def check_enrich(steps: Sequence[Enrich]) -> None:
    """Raises SpecError, naming the step and its field."""
    for number, step in enumerate(steps):
        where = f"$.enrich[{number}]"
        check_expression(f"{where}.key", step.key)
        if step.into == WHOLE_BODY or EACH in step.into.split("."):
            raise SpecError(f"{where}.into", "needs a path below the body, without *")
        check_constant(f"{where}.default", step.default)
        if step.default is not None and step.on_missing != "default":
            raise SpecError(f"{where}.default", f"needs to be left out when on_missing is {step.on_missing}")
