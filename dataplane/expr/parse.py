"""Parse text to a syntax tree, with the static limits: 2 KB, 500 nodes, depth 100, two nested comprehensions."""

import re
from collections.abc import Callable
from functools import cache
from typing import Final, cast

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedToken

from dataplane.expr.grammar import BEGINS_VALUE, CLOSING, GRAMMAR, WORDS
from dataplane.expr.nodes import (
    BinaryNode,
    CallNode,
    ComprehensionKind,
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
from dataplane.expr.values import INT_MAX, INT_MIN

MAX_TEXT_BYTES: Final = 2_048
MAX_NODES: Final = 500
MAX_DEPTH: Final = 100
MAX_COMPREHENSIONS: Final = 2

_COMPREHENSIONS: Final = {"all": (2,), "exists": (2,), "exists_one": (2,), "filter": (2,), "map": (2, 3)}
_ESCAPE: Final = re.compile(
    r"\\(?:([0-3][0-7]{2})|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
# Strings and comments, as in the grammar: braces in them are text.
_BRACES: Final = re.compile(
    r"""//[^\n]*
    | [rR](?:\"{3}[\s\S]*?\"{3} | '{3}[\s\S]*?'{3} | "[^"\r\n]*" | '[^'\r\n]*')
    | \"{3}(?:\\[\s\S]|[^\\])*?\"{3} | '{3}(?:\\[\s\S]|[^\\])*?'{3}
    | "(?:\\.|[^"\\\r\n])*" | '(?:\\.|[^'\\\r\n])*'
    | [{}]""",
    re.VERBOSE,
)
_SHORT: Final = dict(zip("abfnrtv\\\"'`?", "\a\b\f\n\r\t\v\\\"'`?", strict=True))
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_Branch = Tree[Token] | Token | None


def parse(text: str) -> Node:
    """Return the syntax tree of an expression. Raises ExpressionError with line, column and what was expected."""
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_TEXT_BYTES:
        raise ExpressionError(TextPosition(1, 1), f"needs at most {MAX_TEXT_BYTES} bytes, got {size}")
    try:
        tree = _parser().parse(text)
    except UnexpectedToken as exc:
        came = "the end" if exc.token.type == "$END" else f"`{exc.token}`"
        at = _end_of(text) if exc.token.type == "$END" else TextPosition(exc.line, exc.column)
        raise ExpressionError(at, f"needs {_wanted(exc.accepts or exc.expected)}, got {came}") from exc
    except UnexpectedCharacters as exc:
        raise ExpressionError(TextPosition(exc.line, exc.column), _stray(exc, text)) from exc
    return _Reader().read(tree, 1)


def closing_brace(text: str) -> int | None:
    """Return the index of the first `}` that closes no brace of the expression before it; None if there is none."""
    opened = 0
    for found in _BRACES.finditer(text):
        if found[0] == "{":
            opened += 1
        elif found[0] == "}":
            if not opened:
                return found.start()
            opened -= 1
    return None


@cache
def _parser() -> "Lark":
    return Lark(GRAMMAR, parser="lalr", start="expr", propagate_positions=True, maybe_placeholders=False)


def _wanted(tokens: set[str]) -> str:
    if BEGINS_VALUE in tokens:
        words = ["a value", *sorted(CLOSING[token] for token in tokens & set(CLOSING))]
    else:
        words = sorted({WORDS[token] for token in tokens}, key=lambda word: (word.startswith("`"), word)) or [
            "an operator"
        ]
    if len(words) <= 1:
        return words[0] if words else "an operator"
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _stray(exc: UnexpectedCharacters, text: str) -> str:
    came = text[cast("int", exc.pos_in_stream)]
    if came in "\"'":
        return "needs the end of this string, got the end of the line"
    hint = {"=": " (equality is `==`)", "&": " (and is `&&`)", "|": " (or is `||`)", ";": " (one expression only)"}
    shown = f"`{came}`" if came.isprintable() else f"U+{ord(came):04X}"
    allowed = exc.allowed or set()  # after a value, nearly every token may follow
    wanted = "an operator" if "RELATION" in allowed else _wanted(allowed)
    return f"needs {wanted}, got {shown}{hint.get(came, '')}"


def _end_of(text: str) -> TextPosition:
    lines = text.split("\n")
    return TextPosition(len(lines), len(lines[-1]) + 1)


class _Reader:
    """Converts Lark's tree to our nodes, and counts them."""

    def __init__(self) -> None:
        self._nodes = 0
        self._loops = 0

    def read(self, branch: _Branch, depth: int) -> Node:
        tree = cast("Tree[Token]", branch)
        at = TextPosition(tree.meta.line, tree.meta.column)
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ExpressionError(at, f"needs at most {MAX_NODES} parts (values, names, operators, calls), got more")
        if depth > MAX_DEPTH:
            raise ExpressionError(at, f"needs at most {MAX_DEPTH} levels, got more")
        rule: Callable[[TextPosition, Tree[Token], int], Node] = getattr(self, f"_{tree.data}")
        return rule(at, tree, depth + 1)

    def _conditional(self, at: TextPosition, tree: "Tree[Token]", depth: int) -> Node:
        test, yes, no = tree.children
        return ConditionalNode(at, self.read(test, depth), self.read(yes, depth), self.read(no, depth))

    def _either(self, at: TextPosition, tree: "Tree[Token]", depth: int) -> Node:
        return LogicalNode(at, "||", [self.read(part, depth) for part in _chain(tree)])

    def _both(self, at: TextPosition, tree: "Tree[Token]", depth: int) -> Node:
        return LogicalNode(at, "&&", [self.read(part, depth) for part in _chain(tree)])

    def _binary(self, at: TextPosition, tree: "Tree[Token]", depth: int) -> Node:
        left, op, right = tree.children
        return BinaryNode(at, str(op), self.read(left, depth), self.read(right, depth))

    def _unary(self, at: TextPosition, tree: "Tree[Token]", depth: int) -> Node:
        op, child = tree.children
        if op == "-" and isinstance(child, Tree) and child.data == "literal" and _token(child, 0).type == "INT":
            return _integer(at, f"-{_token(child, 0)}")  # else the lowest integer could not be written
        return UnaryNode(at, str(op), self.read(child, depth))

    def _select(self, at: TextPosition, tree: "Tree[Token]", depth: int) -> Node:
        return SelectNode(at, self.read(tree.children[0], depth), str(tree.children[1]))

    def _index(self, at: TextPosition, tree: "Tree[Token]", depth: int) -> Node:
        operand, key = tree.children
        return IndexNode(at, self.read(operand, depth), self.read(key, depth))

    def _name(self, at: TextPosition, tree: "Tree[Token]", depth: int) -> Node:  # noqa: ARG002
        return NameNode(at, str(tree.children[0]))

    def _list(self, at: TextPosition, tree: "Tree[Token]", depth: int) -> Node:
        return ListNode(at, [self.read(item, depth) for item in _arguments(tree, 0)])

    def _map(self, at: TextPosition, tree: "Tree[Token]", depth: int) -> Node:
        pairs = [cast("Tree[Token]", entry).children for entry in _arguments(tree, 0)]
        return MapNode(at, [(self.read(key, depth), self.read(value, depth)) for key, value in pairs])

    def _call(self, at: TextPosition, tree: "Tree[Token]", depth: int) -> Node:
        name, arguments = str(tree.children[0]), _arguments(tree, 1)
        if name == "has":
            return self._has(at, arguments, depth)
        return CallNode(at, name, None, [self.read(argument, depth) for argument in arguments])

    def _has(self, at: TextPosition, arguments: list[_Branch], depth: int) -> Node:
        field = arguments[0] if len(arguments) == 1 else None
        if not isinstance(field, Tree) or field.data != "select":
            raise ExpressionError(at, "has needs one field, such as has(body.total)")
        return HasNode(at, self.read(field.children[0], depth), str(field.children[1]))

    def _method(self, at: TextPosition, tree: "Tree[Token]", depth: int) -> Node:
        target, name, arguments = tree.children[0], str(tree.children[1]), _arguments(tree, 2)
        if name in _COMPREHENSIONS:
            return self._comprehension(at, cast("ComprehensionKind", name), target, arguments, depth)
        return CallNode(at, name, self.read(target, depth), [self.read(argument, depth) for argument in arguments])

    def _comprehension(
        self, at: TextPosition, kind: ComprehensionKind, target: _Branch, arguments: list[_Branch], depth: int
    ) -> ComprehensionNode:
        variable = arguments[0] if arguments else None
        if len(arguments) not in _COMPREHENSIONS[kind] or not isinstance(variable, Tree) or variable.data != "name":
            more = " or (name, test, result)" if kind == "map" else ""
            raise ExpressionError(at, f"{kind} needs (name, {'result' if kind == 'map' else 'test'}){more}")
        over = self.read(target, depth)
        self._loops, before = self._loops + 1, self._nodes
        if self._loops > MAX_COMPREHENSIONS:
            raise ExpressionError(at, f"needs at most {MAX_COMPREHENSIONS} nested comprehensions, got more")
        *test, result = [self.read(argument, depth) for argument in arguments[1:]]
        self._loops -= 1
        nodes = self._nodes - before
        return ComprehensionNode(at, kind, over, str(variable.children[0]), test[0] if test else None, result, nodes)

    def _literal(self, at: TextPosition, tree: "Tree[Token]", depth: int) -> Node:  # noqa: ARG002
        token = _token(tree, 0)
        match token.type:
            case "INT":
                return _integer(at, token)
            case "FLOAT":
                return _double(at, token)
            case "STRING" | "RAW_STRING":
                return ConstantNode(at, _text(at, token, raw=token.type == "RAW_STRING"))
            case "CONSTANT":
                return ConstantNode(at, _CONSTANTS[token])
            case _:
                kind = "unsigned integers" if token.type == "UINT" else "bytes"
                raise ExpressionError(at, f"needs a value that JSON can represent; it has no {kind}")


def _token(tree: "Tree[Token]", index: int) -> Token:
    return cast("Token", tree.children[index])


def _arguments(tree: "Tree[Token]", index: int) -> list[_Branch]:
    return list(cast("Tree[Token]", tree.children[index]).children) if len(tree.children) > index else []


def _chain(tree: "Tree[Token]") -> list[_Branch]:
    """Return the operands of `a || b || c`, which the parser nests to the left."""
    parts: list[_Branch] = []
    rest: _Branch = tree
    while isinstance(rest, Tree) and rest.data == tree.data:
        rest, last = rest.children
        parts.append(last)
    return [rest, *reversed(parts)]


def _integer(at: TextPosition, text: str) -> ConstantNode:
    digits = text.removeprefix("-").lower()
    number = (int(digits, 16) if digits.startswith("0x") else int(digits)) * (-1 if text.startswith("-") else 1)
    if not INT_MIN <= number <= INT_MAX:
        raise ExpressionError(at, "needs an integer of at most 64 bits, got a larger one")
    return ConstantNode(at, number)


def _double(at: TextPosition, text: str) -> ConstantNode:
    number = float(text)
    if number == float("inf"):
        raise ExpressionError(at, "needs a double below 1.8e308, got a larger one")
    return ConstantNode(at, number)


def _text(at: TextPosition, token: str, *, raw: bool) -> str:
    quoted = token[1:] if raw else token
    quotes = 3 if quoted[:3] in ('"""', "'''") and len(quoted) >= 6 else 1
    inside = quoted[quotes:-quotes]
    return inside if raw else _ESCAPE.sub(lambda found: _unescaped(at, found), inside)


def _unescaped(at: TextPosition, found: re.Match[str]) -> str:
    octal, byte, short, long, one = found.groups()
    if one is not None:
        if one not in _SHORT:
            raise ExpressionError(at, 'needs a known escape after a backslash (raw strings are written r"...")')
        return _SHORT[one]
    code = int(octal, 8) if octal else int(byte or short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ExpressionError(at, "needs a valid Unicode code point in its escape")
    return chr(code)
