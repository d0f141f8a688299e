"""Routes: which destinations a message goes to, by conditions over it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from dataplane.spec.names import Name
from dataplane.spec.steps import Expression


class Rule(Struct, forbid_unknown_fields=True, frozen=True):
    """When the expression is true, these destinations."""

    when: Expression
    to: Annotated[list[Name], Meta(min_length=1, max_length=50)]


class Routes(Struct, forbid_unknown_fields=True, frozen=True):
    """Rules in order. `first`: the first that holds decides. `all`: each that holds adds its destinations.

    Where none holds: `otherwise`. A message that goes nowhere ends as filtered (unrouted).
    """

    rules: Annotated[list[Rule], Meta(min_length=1, max_length=100)]
    mode: Literal["first", "all"] = "first"
    otherwise: Annotated[list[Name], Meta(max_length=50)] = []
