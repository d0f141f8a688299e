"""The syntax tree of an expression: plain data with the source position of each node."""

from typing import Literal as Choice
from typing import NamedTuple

from msgspec import Struct

ComprehensionKind = Choice["all", "exists", "exists_one", "filter", "map"]


class TextPosition(NamedTuple):
    """Line and column in the text, both counted from 1."""

    line: int
    column: int


class ExpressionError(Exception):
    """The text is not a valid expression. `reason` says what was needed and what came; its author sees it."""

    def __init__(self, at: TextPosition, reason: str) -> None:
        super().__init__(f"line {at.line}, column {at.column}: {reason}")
        self.at = at
        self.reason = reason


class ConstantNode(Struct, frozen=True):
    """Literal: null, a boolean, an integer, a double or a string."""

    at: TextPosition
    value: bool | int | float | str | None


class NameNode(Struct, frozen=True):
    """A root (`body`) or the variable of a comprehension."""

    at: TextPosition
    name: str


class SelectNode(Struct, frozen=True):
    """`operand.field`."""

    at: TextPosition
    operand: "Node"
    field: str


class HasNode(Struct, frozen=True):
    """`has(operand.field)`: true if the field is present."""

    at: TextPosition
    operand: "Node"
    field: str


class IndexNode(Struct, frozen=True):
    """`operand[key]`."""

    at: TextPosition
    operand: "Node"
    key: "Node"


class UnaryNode(Struct, frozen=True):
    """`!` or `-`."""

    at: TextPosition
    op: str
    operand: "Node"


class BinaryNode(Struct, frozen=True):
    """Arithmetic, comparison or `in`."""

    at: TextPosition
    op: str
    left: "Node"
    right: "Node"


class LogicalNode(Struct, frozen=True):
    """Operands joined by `||`, or by `&&`. Flat, so that a long chain is not deep."""

    at: TextPosition
    op: Choice["||", "&&"]
    parts: list["Node"]


class ConditionalNode(Struct, frozen=True):
    """`test ? yes : no`."""

    at: TextPosition
    test: "Node"
    yes: "Node"
    no: "Node"


class ListNode(Struct, frozen=True):
    """`[a, b]`."""

    at: TextPosition
    items: list["Node"]


class MapNode(Struct, frozen=True):
    """`{"a": b}`."""

    at: TextPosition
    entries: list[tuple["Node", "Node"]]


class CallNode(Struct, frozen=True):
    """`name(arguments)` or `target.name(arguments)`."""

    at: TextPosition
    name: str
    target: "Node | None"
    arguments: list["Node"]


class ComprehensionNode(Struct, frozen=True):
    """`over.kind(variable, [test,] result)`.

    test:  only in `map` with three arguments
    nodes: number of nodes that one iteration runs
    """

    at: TextPosition
    kind: ComprehensionKind
    over: "Node"
    variable: str
    test: "Node | None"
    result: "Node"
    nodes: int


Node = (
    ConstantNode
    | NameNode
    | SelectNode
    | HasNode
    | IndexNode
    | UnaryNode
    | BinaryNode
    | LogicalNode
    | ConditionalNode
    | ListNode
    | MapNode
    | CallNode
    | ComprehensionNode
)
