"""Aggregates: fold values one by one, merge two folds, and say what came out. Pure; states are plain MessagePack types.

Apart from `reduce`, order does not matter, not even to the last bit: sums are decimal and exact, and `distinct` keeps
the smallest hashes (Bar-Yossef et al., RANDOM 2002), exact below KEPT of them, and within about 3 % beyond.
"""

from collections.abc import Callable
from decimal import Context, Decimal
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from dataplane.expr import EvalError, LimitError, compile_expr, to_json
from dataplane.spec.windows import Aggregate

KEPT: Final = 1_024
MAX_STATE_BYTES: Final = 64 * 1024  # of what a reduce has folded so far
HASHES: Final = 1 << 64
_EXACT: Final = Context(prec=700)  # what a sum of the largest and the smallest double needs
_encode = msgspec.json.Encoder(order="sorted").encode
State = Any


class Fold(NamedTuple):
    """One aggregate compiled: from `empty`, `add` values, `merge` two states (the earlier first), `result`."""

    empty: State
    add: Callable[[State, Any], State]
    merge: Callable[[State, State], State]
    result: Callable[[State], Any]


def compile_aggregate(aggregate: Aggregate) -> Fold:
    """The fold of a checked aggregate."""
    if aggregate.op == "reduce":
        step = _reducer(aggregate.expr or "")
        return Fold(None, step, step, _itself)
    return _FOLDS[aggregate.op]


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def number(text: str) -> int | float:
    """A decimal sum as a JSON number: whole if it is."""
    value = Decimal(text)
    return int(value) if abs(value) <= 1 << 53 and value == value.to_integral_value() else float(value)


def hash_of(value: Any) -> int:
    """64 bits, the same for equal JSON values."""
    return int.from_bytes(blake2b(_encode(value), digest_size=8).digest())


def _sum(one: str, other: str) -> str:
    return str(_EXACT.add(Decimal(one), Decimal(other)))


def _add(state: str, value: Any) -> str:
    return _sum(state, str(value)) if is_number(value) else state


def _add_counted(state: State, value: Any) -> State:
    return [_sum(state[0], str(value)), state[1] + 1] if is_number(value) else state


def _merge_counted(one: State, other: State) -> State:
    return [_sum(one[0], other[0]), one[1] + other[1]]


def _mean(state: State) -> float | None:
    return float(_EXACT.divide(Decimal(state[0]), Decimal(state[1]))) if state[1] else None


def _rank(value: Any) -> tuple[bool, Any]:
    return (isinstance(value, str), value)


def _lesser(one: Any, other: Any) -> Any:
    usable = [value for value in (one, other) if is_number(value) or isinstance(value, str)]
    return min(usable, key=_rank, default=None)


def _greater(one: Any, other: Any) -> Any:
    usable = [value for value in (one, other) if is_number(value) or isinstance(value, str)]
    return max(usable, key=_rank, default=None)


def _kept(hashes: list[int]) -> list[int]:
    return sorted(set(hashes))[:KEPT]


def _estimate(hashes: list[int]) -> int:
    return len(hashes) if len(hashes) < KEPT else round((KEPT - 1) * HASHES / hashes[-1])


def _itself(state: State) -> Any:
    return state


_FOLDS: Final[dict[str, Fold]] = {
    "count": Fold(0, lambda state, _: state + 1, lambda one, other: one + other, _itself),
    "sum": Fold("0", _add, _sum, number),
    "avg": Fold(["0", 0], _add_counted, _merge_counted, _mean),
    "min": Fold(None, _lesser, _lesser, _itself),
    "max": Fold(None, _greater, _greater, _itself),
    "distinct": Fold([], lambda state, value: _kept([*state, hash_of(value)]), lambda a, b: _kept([*a, *b]), _estimate),
}


def _reducer(text: str) -> Callable[[Any, Any], Any]:
    """Fold by an expression. The first value is where it begins; a value that the expression fails on is left out.

    So is one that would make the state larger than MAX_STATE_BYTES (`body.acc + body.acc` doubles it with each event),
    or too deep (`[body.acc, body.value]` adds a level with each).
    """
    expression = compile_expr(text, ("body",))

    def step(acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return value if acc is None else acc
        try:
            return to_json(expression({"acc": acc, "value": value}), MAX_STATE_BYTES)
        except (EvalError, LimitError, RecursionError):
            return acc

    return step
