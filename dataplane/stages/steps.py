"""The declarative steps: each changes one decoded body.

`compile_step` turns a step into a function of the body, the context of the message and the cost allowance. The
docstring of each step gives its input, output, errors and cost. For all of them:

In:     a decoded JSON body (object, array or scalar), owned by the caller, who continues with the result.
Raises: StepError, naming path and cause; the message is then dead-lettered, the rest of its batch continues.

n is the number of matches of the path: 1, or more with `*`.
"""

from collections.abc import Callable, Mapping
from decimal import InvalidOperation
from typing import Any, Final

import msgspec
from msgspec import Struct

from dataplane.expr import (
    CompiledExpression,
    CostAllowance,
    CostLimitError,
    EvaluationError,
    compile_expr,
    json_units,
    to_json,
    weight,
)
from dataplane.spec import (
    CastStep,
    DefaultStep,
    FilterStep,
    KeepStep,
    MapStep,
    MaskStep,
    PeekStepSpec,
    RemoveStep,
    RenameStep,
    SetStep,
    Step,
)
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.stages.casts import caster
from dataplane.stages.decoding import decode_json
from dataplane.stages.errors import StepError, kind
from dataplane.stages.masks import masker
from dataplane.stages.paths import EACH, MISSING, Segments, compile_path, get, places, put, remove

MAX_VALUE_BYTES: Final = 256 * 1024  # of the result of one expression
FREE_UNITS: Final = 100  # of a step at one match: a stage has at most 100 steps
OBJECT_UNITS: Final = 4  # of an object that is created along a path
CAST_UNITS: Final = 15
MONEY_UNITS: Final = 30
MASK_UNITS: Final = 3
HASH_UNITS: Final = 12
KEEP_UNITS: Final = 3
_encode = msgspec.json.Encoder(decimal_format="number").encode


class StepContext(Struct, frozen=True):
    """Context of a message that a step may use besides its body.

    meta:   the root `meta` of expressions
    chance: the message's own number in [0, 1), the same each time it is read, so that sampling is deterministic
    peeked: copies made by peek steps, as (name, body)
    """

    meta: Mapping[str, Any] = {}
    chance: float = 1.0
    peeked: list[tuple[str, bytes]] = []


class Dropped:
    """Type of DROPPED, the result of a filter that drops the message."""


Edit = Callable[[Any, StepContext, CostAllowance], Any]
_Constant = tuple[Callable[[], Any], int]  # a factory of a constant, and the units of one call
DROPPED: Final = Dropped()
_GROWING: Final = (str, list, dict)


def compile_step(step: Step, salt: bytes = b"") -> Edit:
    """Return the step as a function; `salt` is the tenant's.

    Explode is not among them, because it returns several bodies: see dataplane.stages.explode.
    """
    return _COMPILERS[type(step)](step, salt)


def _everywhere(path: str, units: int, act: Callable[[Any, Segments], None]) -> Edit:
    """Apply `act(holder, rest of the path)` at every match of the path, and charge `units` for each."""
    segments = compile_path(path)

    def edit(body: Any, _context: StepContext, _allowance: CostAllowance) -> Any:
        act(body, segments)
        return body

    def edit_for(body: Any, _context: StepContext, allowance: CostAllowance) -> Any:
        try:
            allowance.charge(units)
        except CostLimitError as exc:
            raise StepError(path, str(exc)) from exc
        act(body, segments)
        return body

    def edit_each(body: Any, _context: StepContext, allowance: CostAllowance) -> Any:
        try:
            for holder, rest in places(body, segments, allowance):
                allowance.charge(units)
                act(holder, rest)
        except CostLimitError as exc:
            raise StepError(path, str(exc)) from exc
        return body

    if EACH in segments:
        return edit_each
    return edit if units <= FREE_UNITS else edit_for


def _maker(path: str, value: Any) -> _Constant:
    """Return a factory of a constant, and the units of putting it at one match.

    Later steps may change a container, which would then change for all messages: each message gets its own.
    """
    text = _encode(value)
    units = json_units(text) + OBJECT_UNITS * path.rpartition(f"{EACH}.")[2].count(".")  # objects created
    return (lambda: decode_json(text)) if isinstance(value, dict | list) else lambda: value, units


def _set(path: str, value: Any) -> Edit:
    """Set a constant.

    Out:    the body with the value at the path, objects created along the path; with `*` at every match.
    Raises: something along the path is neither an object nor an array with that index.
    Cost:   O(n * path), and a copy of the constant.
    """
    make, units = _maker(path, value)
    return _everywhere(path, units, lambda holder, rest: _put(holder, rest, make(), path))


def _default(path: str, value: Any) -> Edit:
    """Set a constant where there is no value.

    Out:    the body with the value at the path if it was absent or null, else unchanged.
    Raises: as set.
    Cost:   O(n * path), and a copy of the constant where it is set.
    """
    make, units = _maker(path, value)

    def act(holder: Any, rest: Segments) -> None:
        known = get(holder, rest)
        if known is MISSING or known is None:
            _put(holder, rest, make(), path)

    return _everywhere(path, units, act)


def _remove(path: str) -> Edit:
    """Remove a value.

    Out:    the body without the value; its holder remains, later elements of an array move up; an absent value is fine.
    Raises: never.
    Cost:   O(n * path), and moving the later elements of an array.
    """

    def act(holder: Any, rest: Segments) -> None:
        remove(holder, rest)

    return _everywhere(path, 1, act)


def _rename(path: str, to: str) -> Edit:
    """Move a value.

    Out:    the body with the value at `to` instead of `path`; an absent value is fine, null is moved.
    Raises: as set, for `to`.
    Cost:   O(path + to).
    """
    segments, target = compile_path(path), compile_path(to)

    def edit(body: Any, _context: StepContext, _allowance: CostAllowance) -> Any:
        value = remove(body, segments)
        if value is not MISSING:
            _put(body, target, value, to)
        return body

    return edit


def _keep(fields: list[str]) -> Edit:
    """Keep only some fields.

    Out:    a new object with the given paths that exist, in the body's order; of an array the named elements, moved up.
    Raises: the body is not an object.
    Cost:   O(fields of the objects along the paths).
    """
    wanted: dict[str, Any] = {}
    for field in fields:
        node = wanted
        for segment in compile_path(field):
            node = node.setdefault(segment, {})

    def edit(body: Any, _context: StepContext, allowance: CostAllowance) -> Any:
        if not isinstance(body, dict):
            raise StepError("$", f"keep needs an object, got {kind(body)}")
        try:
            return _pick(body, wanted, allowance)
        except CostLimitError as exc:
            raise StepError("$", str(exc)) from exc

    return edit


def _pick(value: Any, wanted: Mapping[str, Any], allowance: CostAllowance) -> Any:
    if not wanted or not isinstance(value, dict | list):
        return value
    allowance.charge(KEEP_UNITS * len(value))
    if isinstance(value, dict):
        each = wanted.get(EACH)
        return {
            key: _pick(part, wanted.get(key, each), allowance)
            for key, part in value.items()
            if key in wanted or each is not None
        }
    return [
        _pick(part, wanted.get(str(index), wanted.get(EACH)), allowance)
        for index, part in enumerate(value)
        if str(index) in wanted or EACH in wanted
    ]


def _cast(path: str, convert: Callable[[Any], Any], to: str) -> Edit:
    """Convert to another type.

    Out:    the body with the value converted: int, decimal (a JSON number with its digits), bool, string, datetime
            (RFC 3339 in UTC), uuid (lower case, hyphens), money (an object of amount and currency).
    Raises: the value is absent or null, or cannot be converted without loss.
    Cost:   O(n * path), and about 1 us for each value.
    """

    def act(holder: Any, rest: Segments) -> None:
        value = get(holder, rest)
        if value is MISSING or value is None:
            raise StepError(path, f"cast to {to} needs a value, got {'null' if value is None else 'nothing'}")
        try:
            put(holder, rest, convert(value))
        except (ValueError, TypeError, InvalidOperation, OverflowError, OSError) as exc:  # OSError: a distant date
            raise StepError(path, f"{kind(value)} cannot be cast to {to}") from exc

    return _everywhere(path, MONEY_UNITS if to == "money" else CAST_UNITS, act)


def _mask(path: str, hide: Callable[[Any], str], units: int) -> Edit:
    """Mask a value.

    Out:    the body with text in place of the value, if any: ***, its last four characters, or its keyed hash.
    Raises: never.
    Cost:   O(n * path), and for hash about 2 us plus the value's length.
    """

    def act(holder: Any, rest: Segments) -> None:
        value = get(holder, rest)
        if value is not MISSING:
            put(holder, rest, hide(value))

    return _everywhere(path, units, act)


def _peek(name: str, share: float) -> Edit:
    """Copy a share of the messages.

    Out:    the same body; if the message is in the share, a copy of it is added to the peeked bodies.
    Raises: the copies exceed the stage's cost limit.
    Cost:   a comparison; for the share, encoding the body.
    """

    def edit(body: Any, context: StepContext, allowance: CostAllowance) -> Any:
        if context.chance < share:
            text = _encode(body)
            try:
                allowance.charge(json_units(text))
            except CostLimitError as exc:
                raise StepError(name, str(exc)) from exc
            context.peeked.append((name, text))
        return body

    return edit


def _filter(when: CompiledExpression) -> Edit:
    """Drop messages that do not meet a condition.

    Out:    the same body, or DROPPED if the condition is false.
    Raises: the condition has no value (a field is missing, kinds do not match), is not a bool, or costs too much.
    Cost:   that of the expression, about 0.5 us for a comparison.
    """

    def edit(body: Any, context: StepContext, allowance: CostAllowance) -> Any:
        try:
            return body if when.test(body, context.meta, allowance=allowance) else DROPPED
        except (EvaluationError, CostLimitError) as exc:
            raise StepError("when", str(exc)) from exc

    return edit


def _map(path: str, expr: CompiledExpression) -> Edit:
    """Set a computed value.

    Out:    the body with a copy of the expression's value at the path, times as text; with `$` the value is the body.
    Raises: the expression has no value, its value is not JSON, is larger than 256 KB or costs too much; or as set.
    Cost:   that of the expression, and a copy of its value.
    """
    segments = compile_path(path)

    def edit(body: Any, context: StepContext, allowance: CostAllowance) -> Any:
        try:
            value = to_json(expr(body, context.meta, allowance=allowance), MAX_VALUE_BYTES)
            if type(value) in _GROWING:
                allowance.charge(weight(value, MAX_VALUE_BYTES))
        except (EvaluationError, CostLimitError) as exc:
            raise StepError(path, str(exc)) from exc
        if not segments:
            return value
        _put(body, segments, value, path)
        return body

    return edit


def _put(holder: Any, segments: Segments, value: Any, path: str) -> None:
    try:
        put(holder, segments, value)
    except TypeError as exc:
        raise StepError(path, str(exc)) from exc


_COMPILERS: Final[dict[type, Callable[[Any, bytes], Edit]]] = {
    SetStep: lambda step, _salt: _set(step.path, step.value),
    RemoveStep: lambda step, _salt: _remove(step.path),
    RenameStep: lambda step, _salt: _rename(step.path, step.to),
    KeepStep: lambda step, _salt: _keep(step.fields),
    CastStep: lambda step, _salt: _cast(step.path, caster(step.to, step.currency), step.to),
    DefaultStep: lambda step, _salt: _default(step.path, step.value),
    MaskStep: lambda step, salt: _mask(
        step.path, masker(step.how, salt), HASH_UNITS if step.how == "hash" else MASK_UNITS
    ),
    PeekStepSpec: lambda step, _salt: _peek(step.name, step.share),
    FilterStep: lambda step, _salt: _filter(compile_expr(step.when, EXPRESSION_ROOTS)),
    MapStep: lambda step, _salt: _map(step.path, compile_expr(step.expr, EXPRESSION_ROOTS)),
}
