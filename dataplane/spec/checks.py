"""What the shapes of steps and routes do not say: expressions that compile, paths that mean something, one explode."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import msgspec

from dataplane.expr import ExprError, compile_expr
from dataplane.spec.errors import SpecError
from dataplane.spec.routes import Routes
from dataplane.spec.steps import Cast, Default, Explode, Filter, Map, Peek, Rename, Set, Step

EXPRESSION_ROOTS: Final = ("body", "meta")
WHOLE_BODY: Final = "$"
EACH: Final = "*"
MAX_EXPRESSIONS_CHARS: Final = 64 * 1024  # of all expressions of a spec: compiling takes up to 40 us a character
MAX_CONSTANT_BYTES: Final = 64 * 1024  # of a value that a step puts into each message


def check_steps(path: str, steps: Sequence[Step], *, may_explode: bool) -> None:
    """Raises SpecError, naming the step and its field."""
    exploded = False
    for number, step in enumerate(steps):
        where = f"{path}[{number}]"
        if isinstance(step, Explode):
            if exploded or not may_explode:
                raise SpecError(where, "needs explode once, in normalize, where the ledger counts its messages")
            exploded = True
        _check_paths(where, step)
        _check_step(where, step)


def check_effort(expressions: Iterable[str]) -> None:
    """Raise SpecError for more text of expressions than one spec may have. Ask before they are compiled."""
    chars = sum(map(len, expressions))
    if chars > MAX_EXPRESSIONS_CHARS:
        raise SpecError("$", f"needs at most {MAX_EXPRESSIONS_CHARS} characters of expressions in all, got {chars}")


def check_constant(path: str, value: Any) -> None:
    """Raise SpecError for a constant that is too large, or that JSON cannot carry."""
    try:
        size_bytes = len(msgspec.json.encode(value))
    except (OverflowError, UnicodeEncodeError, RecursionError, TypeError) as exc:
        raise SpecError(path, "holds a value that JSON cannot carry") from exc
    if size_bytes > MAX_CONSTANT_BYTES:
        raise SpecError(path, f"needs at most {MAX_CONSTANT_BYTES} bytes as JSON, got {size_bytes}")


def check_routes(routes: Routes, destinations: Collection[str]) -> None:
    """Raises SpecError, naming the rule and its field."""
    for number, rule in enumerate(routes.rules):
        check_expression(f"$.routes.rules[{number}].when", rule.when)
        _check_known(f"$.routes.rules[{number}].to", rule.to, destinations)
    _check_known("$.routes.otherwise", routes.otherwise, destinations)


def check_expression(path: str, text: str) -> None:
    """Raises SpecError with line, column and what was expected."""
    try:
        compile_expr(text, EXPRESSION_ROOTS)
    except ExprError as exc:
        raise SpecError(path, str(exc)) from exc


def _check_step(where: str, step: Step) -> None:
    match step:
        case Filter(when):
            check_expression(f"{where}.when", when)
        case Map(_, expr):
            check_expression(f"{where}.expr", expr)
        case Set(_, value) | Default(_, value):
            check_constant(f"{where}.value", value)
        case Cast(_, to, currency) if currency is not None and to != "money":
            raise SpecError(f"{where}.currency", f"needs to be left out of a cast to {to}")


def _check_paths(where: str, step: Step) -> None:
    if isinstance(step, Filter | Peek):
        return
    for field in ("path", "to") if isinstance(step, Rename) else ("path", "fields"):
        value = getattr(step, field, ())
        for path in (value,) if isinstance(value, str) else value:
            if path == WHOLE_BODY and not isinstance(step, Explode | Map):
                raise SpecError(f"{where}.{field}", "needs a path below the body; $ is for explode and map")
            if EACH in path.split(".") and isinstance(step, Rename | Explode | Map):
                raise SpecError(f"{where}.{field}", "needs a path without *, which stands for many places")


def _check_known(path: str, names: Sequence[str], destinations: Collection[str]) -> None:
    for name in names:
        if name not in destinations:
            raise SpecError(path, f"needs names of destinations, one of {sorted(destinations)}, got {name!r}")
    if len(set(names)) < len(names):
        raise SpecError(path, "needs each destination once")
