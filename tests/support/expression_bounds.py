"""Every operator, function and form of the tenant language on large operands, alone, in loops and repeated.

The list comes from the tables of the compiler itself, so a new function or operator is measured automatically.
`tests.support.bounded` runs the cases.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, product
from typing import Any, Final, get_args

import msgspec

from dataplane.expr import CostLimitError, EvaluationError, compile_expr, nodes, to_json
from dataplane.expr.functions import FUNCTIONS, Function
from dataplane.expr.operators import OPERATORS
from dataplane.expr.parse import parse
from dataplane.stages.steps import MAX_VALUE_BYTES

LARGE: Final = 250_000
BODY: Final[dict[str, Any]] = {
    "s": "a" * LARGE,
    "t": "".join(["a"] * LARGE),  # equal, but another object
    "w": "a" + "\u20ac" * (LARGE // 3),
    "digits": "8" * 20_000,
    "half": "8.40438436419143923950e300",
    "at": "2026-01-31T12:30:05.25Z",
    "span": "1h30m10s",
    "i": 7,
    "huge": 10**4_299 + 1,
    "d": 1.5,
    "yes": True,
    "nothing": None,
    "l": list(range(LARGE // 4)),
    "texts": ["text"] * (LARGE // 8),
    "wide": ["\u20ac" * 10] * (LARGE // 40),
    "times": ["2026-01-31T12:30:05.25Z"] * (LARGE // 24),
    "n": [[number] for number in range(LARGE // 8)],
    "o": [{}] * (LARGE // 3),
    "m": {f"key-{number}": number for number in range(LARGE // 20)},
    "long": {"k": "x" * (LARGE // 2), "x" * (LARGE // 2): 1},
}
# Operands by kind: fields of the body first, then constants.
OPERANDS: Final[dict[str, Sequence[str]]] = {
    "string": ("body.s", '"a"', "body.w", "body.t", '""', f'"{"x" * 100}"'),
    "int": ("body.i", "body.huge", "1", "-1"),
    "double": ("body.d", "1.5"),
    "bool": ("body.yes", "true"),
    "list": ("body.l", "body.o", "body.n", "[1, 2]", "[body.s, body.t]", "[]"),
    "texts": ("body.texts", "body.wide", "[body.s, body.w]", '["a", "b"]'),
    "map": ("body.m", "body.long", '{"a": 1}', "{}"),
    "timestamp": ("timestamp(body.at)", 'timestamp("2026-01-31T12:30:05Z")'),
    "duration": ("duration(body.span)", 'duration("1h")'),
    "zone": ('"Europe/Berlin"',),
    "null": ("body.nothing",),
}
KINDS_TAKEN: Final[dict[str, Sequence[str]]] = {
    "value": ("string", "int", "double", "bool", "timestamp", "duration"),
    "string, list or map": ("string", "list", "map"),
    "timestamp or duration": ("timestamp", "duration"),
}
# Texts to parse: conversions of large and of difficult texts.
READ: Final = ("body.digits", "body.half", "body.at", "body.span", "body.huge")
PATTERNS: Final = ("a", "[ab]*a[ab]{200}x", "(a*)*b", r"\\pL+$", "(?i)\u20ac.{50}", "^[a-z]+$")
LOOPS: Final = (
    "body.l.map(x, {})",
    "body.l.exists(x, {} == null || x.gone)",
    "body.texts.filter(x, [{}] != [x])",
    "body.l.map(x, body.l.map(y, {}))",
)


def expressions() -> Iterator[str]:
    """Yield every form, each on large operands."""
    for function in FUNCTIONS.values():
        yield from islice(_calls(function), 4)
    for sign in OPERATORS:
        yield from _infix(sign)
    for pattern, text in product(PATTERNS, ("body.s", "body.w")):
        yield f'{text}.matches("{pattern}")'
    yield from forms()


def _calls(function: Function) -> Iterator[str]:
    kinds = [KINDS_TAKEN.get(kind, (kind,)) for kind in function.takes]
    if function.name == "join":
        kinds[0] = ("texts",)
    operands = [tuple(dict.fromkeys(one for kind in some for one in OPERANDS[kind][:3])) for some in kinds]
    if function.takes[0] == "value":
        operands[0] = READ + operands[0]
    for arguments in zip(*(_repeated(some, 6) for some in operands), strict=True):
        first, *rest = arguments
        yield f"{first}.{function.name}({', '.join(rest)})" if function.method else f"{function.name}({first})"


def _repeated(some: Sequence[str], count: int) -> Sequence[str]:
    return [some[number % len(some)] for number in range(count)]


def _infix(sign: str) -> Iterator[str]:
    for kind, operands in OPERANDS.items():
        yield f"{operands[0]} {sign} {operands[-1]}"
        if kind in ("string", "list", "map", "int"):
            yield f"{operands[1]} {sign} {operands[0]}"
    if sign == "in":
        yield from ("body.s in [body.t, body.w]", "body.s in body.texts", "body.long.k in body.long", "[1] in body.n")
    yield from (f"body.s {sign} body.t", f"[body.s] {sign} [body.t]", f"body.huge {sign} body.huge")


def forms() -> Iterator[str]:
    yield from ("!body.yes", "-body.i", "-body.huge", "body.gone", "body.m.gone", "has(body.s.gone)", "has(body.gone)")
    yield from ("body.l[5]", "body.long[body.long.k]", 'body.m["key-1"]', 'body["s"]', "[body.s, body.t][1]")
    yield from ("body.yes ? body.s : body.w", "body.gone || body.yes", "body.gone && false", "null", "1.5", '"text"')
    yield from ("[body.s, body.w, body.l]", '{"a": body.s, "b": [body.l]}', "{body.s: 1}", '{"a": {"b": {}}}', "[[[]]]")
    for kind in get_args(nodes.ComprehensionKind):
        for over in ("body.l", "body.o", "body.m", "body.texts"):
            yield f"{over}.{kind}(z, {'[z, z]' if kind == 'map' else 'z == z'})"
    yield from ("body.o.map(z, z == {}, z)", "body.texts.map(z, z + z)", "body.wide.map(z, z.split(''))")
    yield from ("body.times.map(z, timestamp(z))", "body.texts.map(z, z.replace('t', body.s))")
    yield from ("int(body.d)", "bool(body.yes)")  # the large operands above are an error for these two


def all_texts() -> dict[str, None]:
    """Return each expression in a loop, and those that may grow also as often as fits into a list."""
    texts: dict[str, None] = {}
    for number, one in enumerate(expressions()):
        is_loop = any(f".{kind}(" in one for kind in get_args(nodes.ComprehensionKind))
        texts[LOOPS[number % (len(LOOPS) - is_loop)].replace("{}", one)] = None
        if _may_grow(one):
            texts[f"[{', '.join([one] * min(40, 1_900 // (len(one) + 2)))}]"] = None
    return texts


def working() -> list[str]:
    """Return the expressions that have a result or reach the cost limit: an error about an operand ends the others."""
    return [text for text in expressions() if _works(text)]


def _works(text: str) -> bool:
    try:
        compile_expr(text)(BODY)
    except CostLimitError:
        return True
    except EvaluationError:
        return False
    return True


def _may_grow(text: str) -> bool:
    """Return True if the result may be large: then the text is also put into a list as often as fits."""
    try:
        return isinstance(compile_expr(text)(BODY), str | list | dict)
    except (EvaluationError, CostLimitError) as exc:
        return isinstance(exc, CostLimitError)


def node_types(text: str) -> set[str]:
    """Return the types of nodes in an expression."""
    found: set[str] = set()
    rest: list[Any] = [parse(text)]
    while rest:
        one = rest.pop()
        if isinstance(one, list | tuple):
            rest.extend(one)
        elif isinstance(one, msgspec.Struct):
            found.add(type(one).__name__)
            rest.extend(getattr(one, name) for name in one.__struct_fields__)
    return found


def cases() -> Iterator[tuple[str, Callable[[], Callable[[], object]]]]:
    """Yield each text as a case: compiled first, then run, copied and encoded."""
    for text in all_texts():
        yield text if len(text) < 200 else f"{text[:200]}...", partial(_work, text)


def _work(text: str) -> Callable[[], object]:
    expr = compile_expr(text)

    def run() -> object:
        try:
            return msgspec.json.encode(to_json(expr(BODY), MAX_VALUE_BYTES))
        except (EvaluationError, CostLimitError) as exc:
            return exc

    return run
