"""Checks of steps and routes beyond their types: compilable expressions, meaningful paths, at most one explode."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import msgspec

from dataplane.expr import ExpressionError, compile_expr
from dataplane.spec.errors import SpecError
from dataplane.spec.routes import RoutesSpec
from dataplane.spec.steps import (
    CastStep,
    DefaultStep,
    ExplodeStep,
    FilterStep,
    MapStep,
    PeekStepSpec,
    RenameStep,
    SetStep,
    Step,
)

EXPRESSION_ROOTS: Final = ("body", "meta")
WHOLE_BODY: Final = "$"
EACH: Final = "*"
MAX_EXPRESSIONS_CHARS: Final = 64 * 1024  # all expressions of a spec: compilation takes up to 40 us per character
MAX_CONSTANT_BYTES: Final = 64 * 1024  # of a value that a step adds to each message


def check_steps(path: str, steps: Sequence[Step], *, may_explode: bool) -> None:
    """Check the steps of one stage. Raises SpecError, with the step and its field."""
    exploded = False
    for number, step in enumerate(steps):
        where = f"{path}[{number}]"
        if isinstance(step, ExplodeStep):
            if exploded or not may_explode:
                raise SpecError(where, "needs at most one explode, in normalize: the ledger counts its messages there")
            exploded = True
        _check_paths(where, step)
        _check_step(where, step)


def check_effort(expressions: Iterable[str]) -> None:
    """Check the total length of all expressions, before they are compiled. Raises SpecError if it is too long."""
    chars = sum(map(len, expressions))
    if chars > MAX_EXPRESSIONS_CHARS:
        raise SpecError("$", f"needs at most {MAX_EXPRESSIONS_CHARS} characters of expressions in all, got {chars}")


def check_constant(path: str, value: Any) -> None:
    """Check the size of a constant. Raises SpecError if it is too large or cannot be encoded as JSON."""
    try:
        size_bytes = len(msgspec.json.encode(value))
    except (OverflowError, UnicodeEncodeError, RecursionError, TypeError) as exc:
        raise SpecError(path, "contains a value that cannot be encoded as JSON") from exc
    if size_bytes > MAX_CONSTANT_BYTES:
        raise SpecError(path, f"needs at most {MAX_CONSTANT_BYTES} bytes as JSON, got {size_bytes}")


def check_routes(routes: RoutesSpec, destinations: Collection[str]) -> None:
    """Check conditions and destinations of all routes. Raises SpecError, with the rule and its field."""
    for number, rule in enumerate(routes.rules):
        check_expression(f"$.routes.rules[{number}].when", rule.when)
        _check_known(f"$.routes.rules[{number}].to", rule.to, destinations)
    _check_known("$.routes.otherwise", routes.otherwise, destinations)


def check_expression(path: str, text: str) -> None:
    """Check that an expression compiles. Raises SpecError, with line, column and what was expected."""
    try:
        compile_expr(text, EXPRESSION_ROOTS)
    except ExpressionError as exc:
        raise SpecError(path, str(exc)) from exc


def _check_step(where: str, step: Step) -> None:
    match step:
        case FilterStep(when):
            check_expression(f"{where}.when", when)
        case MapStep(_, expr):
            check_expression(f"{where}.expr", expr)
        case SetStep(_, value) | DefaultStep(_, value):
            check_constant(f"{where}.value", value)
        case CastStep(_, to, currency) if currency is not None and to != "money":
            raise SpecError(f"{where}.currency", f"must be omitted for a cast to {to}")


def _check_paths(where: str, step: Step) -> None:
    if isinstance(step, FilterStep | PeekStepSpec):
        return
    for field in ("path", "to") if isinstance(step, RenameStep) else ("path", "fields"):
        value = getattr(step, field, ())
        for path in (value,) if isinstance(value, str) else value:
            if path == WHOLE_BODY and not isinstance(step, ExplodeStep | MapStep):
                raise SpecError(f"{where}.{field}", "needs a path below the body; $ is for explode and map")
            if EACH in path.split(".") and isinstance(step, RenameStep | ExplodeStep | MapStep):
                raise SpecError(f"{where}.{field}", "needs a path without *, which matches many values")


def _check_known(path: str, names: Sequence[str], destinations: Collection[str]) -> None:
    for name in names:
        if name not in destinations:
            raise SpecError(path, f"needs names of destinations, one of {sorted(destinations)}, got {name!r}")
    if len(set(names)) < len(names):
        raise SpecError(path, "needs each destination once")
