"""What each declarative step does to one decoded body.

`compile_step` turns a step into a function of the body and what is known about the message. For each of them its
docstring says what comes in and out, how it fails and what it costs; in all of them
In:     a decoded JSON body (object, array or scalar), owned by the caller, who goes on with what comes out.
Raises: StepError, naming path and cause; the message is then dead, the rest of its batch goes on.
n is the number of places that the path stands for: 1, or more with `*`.
"""

from collections.abc import Callable, Mapping
from decimal import InvalidOperation
from typing import Any, Final

import msgspec
from msgspec import Struct

from dataplane.expr import Allowance, EvalError, Expr, LimitError, compile_expr, json_units, to_json, weight
from dataplane.spec import Cast, Default, Filter, Keep, Map, Mask, Peek, Remove, Rename, Set, Step
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.stages.casts import caster
from dataplane.stages.decoding import decode_json
from dataplane.stages.errors import StepError, kind
from dataplane.stages.masks import masker
from dataplane.stages.paths import EACH, MISSING, Segments, compile_path, get, places, put, remove

MAX_VALUE_BYTES: Final = 256 * 1024  # of one expression's result
FREE_UNITS: Final = 100  # of a step at one place: a stage has at most 100 steps
OBJECT_UNITS: Final = 4  # of an object that is made on the way to a place
CAST_UNITS: Final = 15
MONEY_UNITS: Final = 30
MASK_UNITS: Final = 3
HASH_UNITS: Final = 12
KEEP_UNITS: Final = 3
_encode = msgspec.json.Encoder(decimal_format="number").encode


class About(Struct, frozen=True):
    """What a step may know of a message beside its body.

    meta:   the root `meta` of expressions
    chance: the message's own number in [0, 1), the same each time it is read: who is sampled is no accident
    peeked: what peek steps saw, as (name, body)
    """

    meta: Mapping[str, Any] = {}
    chance: float = 1.0
    peeked: list[tuple[str, bytes]] = []


class Dropped:
    """What a filter gives instead of a body."""


Edit = Callable[[Any, About, Allowance], Any]
Made = tuple[Callable[[], Any], int]  # makes a constant, for so many units
DROPPED: Final = Dropped()
_GROWING: Final = (str, list, dict)


def compile_step(step: Step, salt: bytes = b"") -> Edit:
    """The step as a function; `salt` is the tenant's. Explode is no edit of one body: see dataplane.stages.explode."""
    return _COMPILERS[type(step)](step, salt)


def _everywhere(path: str, units: int, act: Callable[[Any, Segments], None]) -> Edit:
    """`act(holder, rest of the path)` at every place that the path stands for, each for so many units."""
    segments = compile_path(path)

    def edit(body: Any, _about: About, _allowance: Allowance) -> Any:
        act(body, segments)
        return body

    def edit_for(body: Any, _about: About, allowance: Allowance) -> Any:
        try:
            allowance.charge(units)
        except LimitError as exc:
            raise StepError(path, str(exc)) from exc
        act(body, segments)
        return body

    def edit_each(body: Any, _about: About, allowance: Allowance) -> Any:
        try:
            for holder, rest in places(body, segments, allowance):
                allowance.charge(units)
                act(holder, rest)
        except LimitError as exc:
            raise StepError(path, str(exc)) from exc
        return body

    if EACH in segments:
        return edit_each
    return edit if units <= FREE_UNITS else edit_for


def _maker(path: str, value: Any) -> Made:
    """How a constant is made for each message, and what putting it at one place costs.

    A container would be changed by later steps, for all messages: each gets its own.
    """
    text = _encode(value)
    units = json_units(text) + OBJECT_UNITS * path.rpartition(f"{EACH}.")[2].count(".")  # objects on the way
    return (lambda: decode_json(text)) if isinstance(value, dict | list) else lambda: value, units


def _set(path: str, value: Any) -> Edit:
    """Put a constant.

    Out:    the body with the value at the path, objects made on the way; with `*` at every place there is.
    Raises: something on the way is neither an object nor an array with that index.
    Cost:   O(n * path), and a copy of the constant.
    """
    make, units = _maker(path, value)
    return _everywhere(path, units, lambda holder, rest: _put(holder, rest, make(), path))


def _default(path: str, value: Any) -> Edit:
    """Put a constant where nothing is.

    Out:    the body with the value at the path if it was absent or null, else unchanged.
    Raises: as set.
    Cost:   O(n * path), and a copy of the constant where it is put.
    """
    make, units = _maker(path, value)

    def act(holder: Any, rest: Segments) -> None:
        known = get(holder, rest)
        if known is MISSING or known is None:
            _put(holder, rest, make(), path)

    return _everywhere(path, units, act)


def _remove(path: str) -> Edit:
    """Take away.

    Out:    the body without the value; its holder stays, elements after it move up; absent is fine.
    Raises: never.
    Cost:   O(n * path), and moving what comes after it in an array.
    """

    def act(holder: Any, rest: Segments) -> None:
        remove(holder, rest)

    return _everywhere(path, 1, act)


def _rename(path: str, to: str) -> Edit:
    """Move.

    Out:    the body with the value at `to` instead of `path`; absent is fine, null is moved.
    Raises: as set, for `to`.
    Cost:   O(path + to).
    """
    segments, target = compile_path(path), compile_path(to)

    def edit(body: Any, _about: About, _allowance: Allowance) -> Any:
        value = remove(body, segments)
        if value is not MISSING:
            _put(body, target, value, to)
        return body

    return edit


def _keep(fields: list[str]) -> Edit:
    """Keep only some fields.

    Out:    a new object with the paths that are there, in the body's order; of an array the named elements, moved up.
    Raises: the body is no object.
    Cost:   O(fields of the objects on the way).
    """
    wanted: dict[str, Any] = {}
    for field in fields:
        node = wanted
        for segment in compile_path(field):
            node = node.setdefault(segment, {})

    def edit(body: Any, _about: About, allowance: Allowance) -> Any:
        if not isinstance(body, dict):
            raise StepError("$", f"keep needs an object, got {kind(body)}")
        try:
            return _only(body, wanted, allowance)
        except LimitError as exc:
            raise StepError("$", str(exc)) from exc

    return edit


def _only(value: Any, wanted: Mapping[str, Any], allowance: Allowance) -> Any:
    if not wanted or not isinstance(value, dict | list):
        return value
    allowance.charge(KEEP_UNITS * len(value))
    if isinstance(value, dict):
        each = wanted.get(EACH)
        return {
            key: _only(part, wanted.get(key, each), allowance)
            for key, part in value.items()
            if key in wanted or each is not None
        }
    return [
        _only(part, wanted.get(str(place), wanted.get(EACH)), allowance)
        for place, part in enumerate(value)
        if str(place) in wanted or EACH in wanted
    ]


def _cast(path: str, convert: Callable[[Any], Any], to: str) -> Edit:
    """Turn into another type.

    Out:    the body with the value turned: int, decimal (a JSON number with its digits), bool, string, datetime
            (RFC 3339 in UTC), uuid (lower case, hyphens), money (an object of amount and currency).
    Raises: nothing or null is there, or a value that cannot be turned without loss.
    Cost:   O(n * path), and about 1 us for each value.
    """

    def act(holder: Any, rest: Segments) -> None:
        value = get(holder, rest)
        if value is MISSING or value is None:
            raise StepError(path, f"cast to {to} needs a value, got {'null' if value is None else 'nothing'}")
        try:
            put(holder, rest, convert(value))
        except (ValueError, TypeError, InvalidOperation, OverflowError, OSError) as exc:  # OSError: a far date
            raise StepError(path, f"{kind(value)} cannot be cast to {to}") from exc

    return _everywhere(path, MONEY_UNITS if to == "money" else CAST_UNITS, act)


def _mask(path: str, hide: Callable[[Any], str], units: int) -> Edit:
    """Hide.

    Out:    the body with text in the value's place: ***, its last four characters, or its keyed hash; absent is fine.
    Raises: never.
    Cost:   O(n * path), and for hash about 2 us plus the value's length.
    """

    def act(holder: Any, rest: Segments) -> None:
        value = get(holder, rest)
        if value is not MISSING:
            put(holder, rest, hide(value))

    return _everywhere(path, units, act)


def _peek(name: str, share: float) -> Edit:
    """Show a share of the messages.

    Out:    the same body; about.peeked has one entry more if the message is in the share.
    Raises: the stage has shown more than its allowance.
    Cost:   a comparison; for the share, writing the body.
    """

    def edit(body: Any, about: About, allowance: Allowance) -> Any:
        if about.chance < share:
            text = _encode(body)
            try:
                allowance.charge(json_units(text))
            except LimitError as exc:
                raise StepError(name, str(exc)) from exc
            about.peeked.append((name, text))
        return body

    return edit


def _filter(when: Expr) -> Edit:
    """Go on, or not.

    Out:    the same body, or DROPPED where the condition is false.
    Raises: the condition has no value (a field it needs is missing, kinds do not fit), is no bool, or costs too much.
    Cost:   that of the expression, about 0.5 us for a comparison.
    """

    def edit(body: Any, about: About, allowance: Allowance) -> Any:
        try:
            return body if when.test(body, about.meta, allowance=allowance) else DROPPED
        except (EvalError, LimitError) as exc:
            raise StepError("when", str(exc)) from exc

    return edit


def _map(path: str, expr: Expr) -> Edit:
    """Put a computed value.

    Out:    the body with a copy of the expression's value at the path, times as text; with `$` the value is the body.
    Raises: the expression has no value, its value is no JSON, is larger than 256 KB or costs too much; or as set.
    Cost:   that of the expression, and a copy of its value.
    """
    segments = compile_path(path)

    def edit(body: Any, about: About, allowance: Allowance) -> Any:
        try:
            value = to_json(expr(body, about.meta, allowance=allowance), MAX_VALUE_BYTES)
            if type(value) in _GROWING:
                allowance.charge(weight(value, MAX_VALUE_BYTES))
        except (EvalError, LimitError) as exc:
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
    Set: lambda step, _salt: _set(step.path, step.value),
    Remove: lambda step, _salt: _remove(step.path),
    Rename: lambda step, _salt: _rename(step.path, step.to),
    Keep: lambda step, _salt: _keep(step.fields),
    Cast: lambda step, _salt: _cast(step.path, caster(step.to, step.currency), step.to),
    Default: lambda step, _salt: _default(step.path, step.value),
    Mask: lambda step, salt: _mask(step.path, masker(step.how, salt), HASH_UNITS if step.how == "hash" else MASK_UNITS),
    Peek: lambda step, _salt: _peek(step.name, step.share),
    Filter: lambda step, _salt: _filter(compile_expr(step.when, EXPRESSION_ROOTS)),
    Map: lambda step, _salt: _map(step.path, compile_expr(step.expr, EXPRESSION_ROOTS)),
}
