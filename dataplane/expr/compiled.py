"""Syntax tree to closures. Nothing of the tenant's text is ever evaluated by Python: each node becomes one of ours."""

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any, Final

from dataplane.expr import closures, loops
from dataplane.expr.closures import Code
from dataplane.expr.frame import BUDGET, COST_LIMIT, FIRST_VARIABLE, ROOTS, Allowance, used_up
from dataplane.expr.functions import FUNCTIONS, Function
from dataplane.expr.nodes import (
    At,
    Binary,
    Call,
    Comprehension,
    Conditional,
    Constant,
    ExprError,
    Has,
    Index,
    ListOf,
    Logical,
    MapOf,
    Name,
    Node,
    Select,
    Unary,
)
from dataplane.expr.parse import MAX_COMPREHENSIONS, parse
from dataplane.expr.patterns import compile_pattern
from dataplane.expr.times import zone
from dataplane.expr.values import EvalError, LimitError, kind

_VARIABLES: Final = (None,) * MAX_COMPREHENSIONS
_NOTHING: Final[Mapping[str, Any]] = {}


def _too_deep() -> LimitError:
    return LimitError("the value is nested too deeply")


class Expr:
    """A compiled expression. Pure, and safe to share between threads.

    `uses` are the roots it names, so that nobody makes a `meta` that nobody reads.
    """

    __slots__ = ("_charges", "_code", "text", "uses")

    def __init__(self, text: str, code: Code, uses: frozenset[str], *, charges: bool) -> None:
        """`charges`: it holds something that costs more the larger the message is."""
        self.text = text
        self.uses = uses
        self._code = code
        self._charges = charges

    def __call__(
        self, body: Any, meta: Any = _NOTHING, table: Any = _NOTHING, allowance: Allowance | None = None
    ) -> Any:
        """Return the value for a message; parts of the body come back uncopied.

        What it costs is taken from `allowance`, if one is given. Raises EvalError, LimitError.
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
        except LimitError:
            if most == COST_LIMIT:
                raise
            raise used_up() from None
        except RecursionError:
            raise _too_deep() from None
        allowance.units -= most - frame[BUDGET]
        return value

    def test(self, body: Any, meta: Any = _NOTHING, table: Any = _NOTHING, allowance: Allowance | None = None) -> bool:
        """Return the value of a predicate. Raises EvalError (also if it is no bool), LimitError."""
        value = self(body, meta, table, allowance)
        if value is True:
            return True
        if value is False:
            return False
        raise EvalError(f"a condition needs a bool, got {kind(value)}")


@lru_cache(maxsize=256)
def compile_expr(text: str, roots: tuple[str, ...] = ROOTS) -> Expr:
    """Return the expression that a text means; `roots` are the names it may begin with.

    A spec is checked, then compiled, and asked what it uses, with each of its expressions: compiling takes up to 40 ms.

    Raises ExprError with line, column and what was expected: for what does not parse, is too large or too deep, names
    what is not there, or calls what is not in FUNCTIONS.
    """
    compiler = _Compiler(roots)
    code = compiler.code(parse(text))
    return Expr(text, code, frozenset(compiler.uses), charges=compiler.charges)


class _Compiler:
    def __init__(self, roots: Collection[str]) -> None:
        self._places = {name: ROOTS.index(name) for name in roots}
        self._roots = sorted(roots)
        self._scope: dict[str, int] = {}
        self.uses: set[str] = set()
        self.charges = False

    def code(self, node: Node) -> Code:
        rule: Callable[[Any], Code] = getattr(self, f"_{type(node).__name__.lower()}")
        return rule(node)

    def _constant(self, node: Constant) -> Code:
        return closures.constant(node.value)

    def _name(self, node: Name) -> Code:
        return closures.variable(self._place(node))

    def _place(self, node: Name) -> int:
        if node.name in self._scope:
            return self._scope[node.name]
        if node.name not in self._places:
            raise ExprError(node.at, f"needs one of {', '.join(self._roots)}, got {node.name}")
        self.uses.add(node.name)
        return self._places[node.name]

    def _select(self, node: Select) -> Code:
        fields, operand = [node.field], node.operand
        while isinstance(operand, Select):
            fields.append(operand.field)
            operand = operand.operand
        fields.reverse()
        if isinstance(operand, Name):
            return closures.path(self._place(operand), fields)
        return closures.select(self.code(operand), fields)

    def _has(self, node: Has) -> Code:
        return closures.has(self.code(node.operand), node.field)

    def _index(self, node: Index) -> Code:
        self.charges = True
        return closures.index(self.code(node.operand), self.code(node.key))

    def _unary(self, node: Unary) -> Code:
        return (closures.invert if node.op == "!" else closures.minus)(self.code(node.operand))

    def _binary(self, node: Binary) -> Code:
        left, right = self.code(node.left), self.code(node.right)
        self.charges |= closures.may_charge(node.op, constant=isinstance(node.right, Constant))
        if isinstance(node.right, Constant):
            return closures.binary_constant(node.op, left, node.right.value)
        if node.op == "in" and isinstance(node.right, ListOf) and _all_constant(node.right):
            return closures.among(left, [item.value for item in node.right.items if isinstance(item, Constant)])
        return closures.binary(node.op, left, right)

    def _logical(self, node: Logical) -> Code:
        return closures.logical(node.op == "||", [self.code(part) for part in node.parts])

    def _conditional(self, node: Conditional) -> Code:
        return closures.conditional(self.code(node.test), self.code(node.yes), self.code(node.no))

    def _listof(self, node: ListOf) -> Code:
        return closures.list_of([self.code(item) for item in node.items])

    def _mapof(self, node: MapOf) -> Code:
        seen: set[Any] = set()
        for key, _ in node.entries:
            if isinstance(key, Constant):
                if type(key.value) is not str or key.value in seen:
                    raise ExprError(key.at, "needs different strings as the keys of a map, as JSON does")
                seen.add(key.value)
        return closures.map_of([(self.code(key), self.code(value)) for key, value in node.entries])

    def _comprehension(self, node: Comprehension) -> Code:
        if node.variable in ROOTS:
            raise ExprError(node.at, f"needs a name that is no root, got {node.variable}")
        self.charges = True
        over, outer = self.code(node.over), dict(self._scope)
        place = FIRST_VARIABLE + len(set(outer.values()))
        self._scope[node.variable] = place
        test = self.code(node.test) if node.test is not None else None
        result = self.code(node.result)
        self._scope = outer
        return loops.comprehension(node.kind, over, loops.Round(place, test, result, node.nodes))

    def _call(self, node: Call) -> Code:
        self.charges = True
        if node.name == "matches":
            return self._matches(node)
        given = ([] if node.target is None else [node.target]) + node.arguments
        function = FUNCTIONS.get((node.name, node.target is not None, len(given)))
        if function is None:
            raise ExprError(node.at, _unknown(node, len(given)))
        if "zone" in function.takes:
            _check_zone(given[-1])
        return closures.call(function.call, function.units, [self.code(argument) for argument in given])

    def _matches(self, node: Call) -> Code:
        given = ([] if node.target is None else [node.target]) + node.arguments
        if len(given) != 2 or not isinstance(given[1], Constant) or type(given[1].value) is not str:
            raise ExprError(node.at, 'matches needs a text and a pattern that stands there, such as "^a+$"')
        return closures.matches(self.code(given[0]), _pattern(given[1].at, given[1].value))


def _all_constant(node: ListOf) -> bool:
    return all(isinstance(item, Constant) for item in node.items)


def _unknown(node: Call, given: int) -> str:
    known = [one for one in FUNCTIONS.values() if one.name == node.name]
    if not known:
        return f"needs a known function, got {node.name}"
    return f"{node.name} needs {' or '.join(dict.fromkeys(map(_shape, known)))}, got {given} values"


def _shape(function: Function) -> str:
    first, *rest = function.takes
    return f"{first}.{function.name}({', '.join(rest)})" if function.method else f"{function.name}({first})"


def _check_zone(node: Node) -> None:
    if not isinstance(node, Constant) or type(node.value) is not str:
        raise ExprError(node.at, "needs a time zone that stands there as text")
    try:
        zone(node.value)
    except EvalError as exc:
        raise ExprError(node.at, str(exc)) from exc


def _pattern(at: At, text: str) -> Any:
    try:
        return compile_pattern(text)
    except ValueError as exc:
        raise ExprError(at, f"needs a pattern that RE2 takes: {exc}") from exc
