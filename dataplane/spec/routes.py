"""The `routes` part of a spec: conditions that choose a message's destinations."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from dataplane.spec.names import Name
from dataplane.spec.steps import Expression


class RouteRule(Struct, forbid_unknown_fields=True, frozen=True):
    """One rule: the destinations `to` if the expression `when` is true."""

    when: Expression
    to: Annotated[list[Name], Meta(min_length=1, max_length=50)]


class RoutesSpec(Struct, forbid_unknown_fields=True, frozen=True):
    """Rules in order. `first`: the first matching rule decides. `all`: each matching rule adds its destinations.

    `otherwise` applies if no rule matches. A message without any destination ends as filtered (unrouted).
    """

    rules: Annotated[list[RouteRule], Meta(min_length=1, max_length=100)]
    mode: Literal["first", "all"] = "first"
    otherwise: Annotated[list[Name], Meta(max_length=50)] = []
