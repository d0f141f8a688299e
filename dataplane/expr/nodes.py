"""The syntax tree of an expression: plain data with the place each node came from."""

from typing import Literal as Choice
from typing import NamedTuple

from msgspec import Struct

Comprehend = Choice["all", "exists", "exists_one", "filter", "map"]


class At(NamedTuple):
    """A place in the text, both counted from 1."""

    line: int
    column: int


class ExprError(Exception):
    """The text is no expression we run. `reason` says what was needed and what came; it is shown to its author."""

    def __init__(self, at: At, reason: str) -> None:
        super().__init__(f"line {at.line}, column {at.column}: {reason}")
        self.at = at
        self.reason = reason


class Constant(Struct, frozen=True):
    """null, a boolean, an integer, a double or a string."""

    at: At
    value: bool | int | float | str | None


class Name(Struct, frozen=True):
    """A root (`body`) or the variable of a comprehension."""

    at: At
    name: str


class Select(Struct, frozen=True):
    """`operand.field`."""

    at: At
    operand: "Node"
    field: str


class Has(Struct, frozen=True):
    """`has(operand.field)`: whether the field is there."""

    at: At
    operand: "Node"
    field: str


class Index(Struct, frozen=True):
    """`operand[key]`."""

    at: At
    operand: "Node"
    key: "Node"


class Unary(Struct, frozen=True):
    """`!` or `-`."""

    at: At
    op: str
    operand: "Node"


class Binary(Struct, frozen=True):
    """Arithmetic, comparison or `in`."""

    at: At
    op: str
    left: "Node"
    right: "Node"


class Logical(Struct, frozen=True):
    """A chain of one of `||` and `&&`, flat, so that a long one is not deep."""

    at: At
    op: Choice["||", "&&"]
    parts: list["Node"]


class Conditional(Struct, frozen=True):
    """`test ? yes : no`."""

    at: At
    test: "Node"
    yes: "Node"
    no: "Node"


class ListOf(Struct, frozen=True):
    """`[a, b]`."""

    at: At
    items: list["Node"]


class MapOf(Struct, frozen=True):
    """`{"a": b}`."""

    at: At
    entries: list[tuple["Node", "Node"]]


class Call(Struct, frozen=True):
    """`name(arguments)` or `target.name(arguments)`."""

    at: At
    name: str
    target: "Node | None"
    arguments: list["Node"]


class Comprehension(Struct, frozen=True):
    """`over.kind(variable, [test,] result)`: `test` only in the three-argument map, `nodes` how many one round runs."""

    at: At
    kind: Comprehend
    over: "Node"
    variable: str
    test: "Node | None"
    result: "Node"
    nodes: int


Node = (
    Constant
    | Name
    | Select
    | Has
    | Index
    | Unary
    | Binary
    | Logical
    | Conditional
    | ListOf
    | MapOf
    | Call
    | Comprehension
)
