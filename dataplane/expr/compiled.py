"""Compile a syntax tree to closures. Python never evaluates the tenant's text: each node becomes a closure of ours."""

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any, Final

from dataplane.expr import closures, loops
from dataplane.expr.closures import Code
from dataplane.expr.frame import BUDGET, COST_LIMIT, FIRST_VARIABLE, ROOTS, CostAllowance, used_up
from dataplane.expr.functions import FUNCTIONS, Function
from dataplane.expr.nodes import (
    BinaryNode,
    CallNode,
    ComprehensionNode,
    ConditionalNode,
    ConstantNode,
    ExpressionError,
    HasNode,
    IndexNode,
    ListNode,
    LogicalNode,
    MapNode,
    NameNode,
    Node,
    SelectNode,
    TextPosition,
    UnaryNode,
)
from dataplane.expr.parse import MAX_COMPREHENSIONS, parse
from dataplane.expr.patterns import compile_pattern
from dataplane.expr.times import zone
from dataplane.expr.values import CostLimitError, EvaluationError, kind

_VARIABLES: Final = (None,) * MAX_COMPREHENSIONS
_NOTHING: Final[Mapping[str, Any]] = {}


def _too_deep() -> CostLimitError:
    return CostLimitError("the value is nested too deeply")


class CompiledExpression:
    """A compiled expression. Pure, and safe to share between threads.

    text: the source of the expression
    uses: the roots that it names, so that callers build `meta` only if it is read
    """

    __slots__ = ("_charges", "_code", "text", "uses")

    def __init__(self, text: str, code: Code, uses: frozenset[str], *, charges: bool) -> None:
        """Create the expression; `charges`: its cost may grow with the size of the message."""
        self.text = text
        self.uses = uses
        self._code = code
        self._charges = charges

    def __call__(
        self, body: Any, meta: Any = _NOTHING, table: Any = _NOTHING, allowance: CostAllowance | None = None
    ) -> Any:
        """Return the value for a message; parts of the body are returned uncopied.

        The cost is charged to `allowance`, if one is given. Raises EvaluationError, CostLimitError.
        """
        if allowance is None or not self._charges:
            try:
                return self._code([body, meta, table, COST_LIMIT, *_VARIABLES])
            except RecursionError:
                raise _too_deep() from None
        most = min(COST_LIMIT, allowance.units)
        frame = [body, meta, table, most, *_VARIABLES]
        try:
            value = self._code(frame)
        except CostLimitError:
            if most == COST_LIMIT:
                raise
            raise used_up() from None
        except RecursionError:
            raise _too_deep() from None
        allowance.units -= most - frame[BUDGET]
        return value

    def test(
        self, body: Any, meta: Any = _NOTHING, table: Any = _NOTHING, allowance: CostAllowance | None = None
    ) -> bool:
        """Return the value of a predicate. Raises EvaluationError (also if it is not a bool), CostLimitError."""
        value = self(body, meta, table, allowance)
        if value is True:
            return True
        if value is False:
            return False
        raise EvaluationError(f"a condition needs a bool, got {kind(value)}")


@lru_cache(maxsize=256)
def compile_expr(text: str, roots: tuple[str, ...] = ROOTS) -> CompiledExpression:
    """Return the compiled expression; `roots` are the names that it may begin with.

    Cached, because each expression of a spec is compiled several times (check, compile, inspect `uses`), which takes up
    to 40 ms.

    Raises ExpressionError with line, column and what was expected: for text that does not parse, is too large or too
    deep, uses unknown names, or calls a function that is not in FUNCTIONS.
    """
    compiler = _Compiler(roots)
    code = compiler.code(parse(text))
    return CompiledExpression(text, code, frozenset(compiler.uses), charges=compiler.charges)


class _Compiler:
    def __init__(self, roots: Collection[str]) -> None:
        self._slots = {name: ROOTS.index(name) for name in roots}
        self._roots = sorted(roots)
        self._scope: dict[str, int] = {}
        self.uses: set[str] = set()
        self.charges = False

    def code(self, node: Node) -> Code:
        return _RULES[type(node)](self, node)

    def _constant(self, node: ConstantNode) -> Code:
        return closures.constant(node.value)

    def _name(self, node: NameNode) -> Code:
        return closures.variable(self._place(node))

    def _place(self, node: NameNode) -> int:
        if node.name in self._scope:
            return self._scope[node.name]
        if node.name not in self._slots:
            raise ExpressionError(node.at, f"needs one of {', '.join(self._roots)}, got {node.name}")
        self.uses.add(node.name)
        return self._slots[node.name]

    def _select(self, node: SelectNode) -> Code:
        fields, operand = [node.field], node.operand
        while isinstance(operand, SelectNode):
            fields.append(operand.field)
            operand = operand.operand
        fields.reverse()
        if isinstance(operand, NameNode):
            return closures.path(self._place(operand), fields)
        return closures.select(self.code(operand), fields)

    def _has(self, node: HasNode) -> Code:
        return closures.has(self.code(node.operand), node.field)

    def _index(self, node: IndexNode) -> Code:
        self.charges = True
        return closures.index(self.code(node.operand), self.code(node.key))

    def _unary(self, node: UnaryNode) -> Code:
        return (closures.invert if node.op == "!" else closures.minus)(self.code(node.operand))

    def _binary(self, node: BinaryNode) -> Code:
        left, right = self.code(node.left), self.code(node.right)
        self.charges |= closures.may_charge(node.op, constant=isinstance(node.right, ConstantNode))
        if isinstance(node.right, ConstantNode):
            return closures.binary_constant(node.op, left, node.right.value)
        if node.op == "in" and isinstance(node.right, ListNode):
            constants = [item.value for item in node.right.items if isinstance(item, ConstantNode)]
            if len(constants) == len(node.right.items):
                return closures.among(left, constants)
        return closures.binary(node.op, left, right)

    def _logical(self, node: LogicalNode) -> Code:
        return closures.logical(node.op == "||", [self.code(part) for part in node.parts])

    def _conditional(self, node: ConditionalNode) -> Code:
        return closures.conditional(self.code(node.test), self.code(node.yes), self.code(node.no))

    def _list(self, node: ListNode) -> Code:
        return closures.list_of([self.code(item) for item in node.items])

    def _map(self, node: MapNode) -> Code:
        seen: set[Any] = set()
        for key, _ in node.entries:
            if isinstance(key, ConstantNode):
                if type(key.value) is not str or key.value in seen:
                    raise ExpressionError(key.at, "needs different strings as the keys of a map, as in JSON")
                seen.add(key.value)
        return closures.map_of([(self.code(key), self.code(value)) for key, value in node.entries])

    def _comprehension(self, node: ComprehensionNode) -> Code:
        if node.variable in ROOTS:
            raise ExpressionError(node.at, f"needs a variable name other than {', '.join(ROOTS)}, got {node.variable}")
        self.charges = True
        over, outer = self.code(node.over), dict(self._scope)
        slot = FIRST_VARIABLE + len(set(outer.values()))
        self._scope[node.variable] = slot
        test = self.code(node.test) if node.test is not None else None
        result = self.code(node.result)
        self._scope = outer
        return loops.comprehension(node.kind, over, loops.LoopIteration(slot, test, result, node.nodes))

    def _call(self, node: CallNode) -> Code:
        self.charges = True
        if node.name == "matches":
            return self._matches(node)
        given = ([] if node.target is None else [node.target]) + node.arguments
        function = FUNCTIONS.get((node.name, node.target is not None, len(given)))
        if function is None:
            raise ExpressionError(node.at, _unknown(node, len(given)))
        if "zone" in function.takes:
            _check_zone(given[-1])
        return closures.call(function.call, function.units, [self.code(argument) for argument in given])

    def _matches(self, node: CallNode) -> Code:
        given = ([] if node.target is None else [node.target]) + node.arguments
        if len(given) != 2 or not isinstance(given[1], ConstantNode) or type(given[1].value) is not str:
            raise ExpressionError(node.at, 'matches needs a string and a literal pattern, such as "^a+$"')
        return closures.matches(self.code(given[0]), _pattern(given[1].at, given[1].value))


_RULES: Final[Mapping[type[Node], Callable[[_Compiler, Any], Code]]] = {
    BinaryNode: _Compiler._binary,
    CallNode: _Compiler._call,
    ComprehensionNode: _Compiler._comprehension,
    ConditionalNode: _Compiler._conditional,
    ConstantNode: _Compiler._constant,
    HasNode: _Compiler._has,
    IndexNode: _Compiler._index,
    ListNode: _Compiler._list,
    LogicalNode: _Compiler._logical,
    MapNode: _Compiler._map,
    NameNode: _Compiler._name,
    SelectNode: _Compiler._select,
    UnaryNode: _Compiler._unary,
}


def _unknown(node: CallNode, given: int) -> str:
    known = [function for function in FUNCTIONS.values() if function.name == node.name]
    if not known:
        return f"needs a known function, got {node.name}"
    return f"{node.name} needs {' or '.join(dict.fromkeys(map(_shape, known)))}, got {given} values"


def _shape(function: Function) -> str:
    first, *rest = function.takes
    return f"{first}.{function.name}({', '.join(rest)})" if function.method else f"{function.name}({first})"


def _check_zone(node: Node) -> None:
    if not isinstance(node, ConstantNode) or type(node.value) is not str:
        raise ExpressionError(node.at, "needs a time zone as a string literal")
    try:
        zone(node.value)
    except EvaluationError as exc:
        raise ExpressionError(node.at, str(exc)) from exc


def _pattern(at: TextPosition, text: str) -> Any:
    try:
        return compile_pattern(text)
    except ValueError as exc:
        raise ExpressionError(at, f"needs a pattern that RE2 accepts: {exc}") from exc
