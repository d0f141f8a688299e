"""Aggregates: add values one by one, merge two states, return the result. Pure; states are plain MessagePack types.

Except for `reduce`, the order does not matter, not even in the last bit: sums are decimal and exact, and `distinct`
keeps the smallest hashes (Bar-Yossef et al., RANDOM 2002): exact below KEPT distinct values, within about 3 % above.
"""

from bisect import bisect_left
from collections.abc import Callable
from decimal import Context, Decimal
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from dataplane.expr import CostLimitError, EvaluationError, compile_expr, to_json
from dataplane.spec.windows import Aggregate

KEPT: Final = 1_024
MAX_STATE_BYTES: Final = 64 * 1024  # of the state of a reduce
HASHES: Final = 1 << 64
_EXACT: Final = Context(prec=700)  # the digits of the largest plus the smallest double
_encode = msgspec.json.Encoder(order="sorted").encode
AggregateState = Any


class CompiledAggregate(NamedTuple):
    """One aggregate, compiled.

    Start from `empty`, `add` values, `merge` two states (the earlier first), and take the `result`.
    """

    empty: AggregateState
    add: Callable[[AggregateState, Any], AggregateState]
    merge: Callable[[AggregateState, AggregateState], AggregateState]
    result: Callable[[AggregateState], Any]


def compile_aggregate(aggregate: Aggregate) -> CompiledAggregate:
    """Return the compiled form of a checked aggregate."""
    if aggregate.op == "reduce":
        step = _reducer(aggregate.expr or "")
        return CompiledAggregate(None, step, step, _identity)
    return _FOLDS[aggregate.op]


def is_number(value: Any) -> bool:
    """Return True if a JSON value is a number; a boolean is not."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def number(text: str) -> int | float:
    """Return a decimal sum as a JSON number: an int if it is whole and at most 2**53 in magnitude, else a double."""
    value = Decimal(text)
    return int(value) if abs(value) <= 1 << 53 and value == value.to_integral_value() else float(value)


def hash_of(value: Any) -> int:
    """Return a 64-bit hash, the same for equal JSON values."""
    return int.from_bytes(blake2b(_encode(value), digest_size=8).digest())


def _sum(one: str, other: str) -> str:
    return str(_EXACT.add(Decimal(one), Decimal(other)))


def _add(state: str, value: Any) -> str:
    return _sum(state, str(value)) if is_number(value) else state


def _add_counted(state: AggregateState, value: Any) -> AggregateState:
    return [_sum(state[0], str(value)), state[1] + 1] if is_number(value) else state


def _merge_counted(one: AggregateState, other: AggregateState) -> AggregateState:
    return [_sum(one[0], other[0]), one[1] + other[1]]


def _mean(state: AggregateState) -> float | None:
    return float(_EXACT.divide(Decimal(state[0]), Decimal(state[1]))) if state[1] else None


def _rank(value: Any) -> tuple[bool, Any]:
    return (isinstance(value, str), value)


def _lesser(one: Any, other: Any) -> Any:
    usable = [value for value in (one, other) if is_number(value) or isinstance(value, str)]
    return min(usable, key=_rank, default=None)


def _greater(one: Any, other: Any) -> Any:
    usable = [value for value in (one, other) if is_number(value) or isinstance(value, str)]
    return max(usable, key=_rank, default=None)


def _smallest(hashes: list[int]) -> list[int]:
    return sorted(set(hashes))[:KEPT]


def _inserted(hashes: list[int], added: int) -> list[int]:
    """Return `_smallest([*hashes, added])`, without sorting: `hashes` is such a result already."""
    at = bisect_left(hashes, added)
    if at == KEPT or (at < len(hashes) and hashes[at] == added):
        return hashes
    found = hashes.copy()
    found.insert(at, added)
    del found[KEPT:]
    return found


def _estimate(hashes: list[int]) -> int:
    return len(hashes) if len(hashes) < KEPT else round((KEPT - 1) * HASHES / hashes[-1])


def _identity(state: AggregateState) -> Any:
    return state


_FOLDS: Final[dict[str, CompiledAggregate]] = {
    "count": CompiledAggregate(0, lambda state, _: state + 1, lambda one, other: one + other, _identity),
    "sum": CompiledAggregate("0", _add, _sum, number),
    "avg": CompiledAggregate(["0", 0], _add_counted, _merge_counted, _mean),
    "min": CompiledAggregate(None, _lesser, _lesser, _identity),
    "max": CompiledAggregate(None, _greater, _greater, _identity),
    "distinct": CompiledAggregate(
        [], lambda state, value: _inserted(state, hash_of(value)), lambda a, b: _smallest([*a, *b]), _estimate
    ),
}


def _reducer(text: str) -> Callable[[Any, Any], Any]:
    """Return a fold by an expression, which starts from the first value.

    A value is skipped if the expression fails on it, or would make the state larger than MAX_STATE_BYTES (`body.acc +
    body.acc` doubles it with each event) or too deep (`[body.acc, body.value]` adds a level with each).
    """
    expression = compile_expr(text, ("body",))

    def step(acc: Any, value: Any) -> Any:
        if acc is None or value is None:
            return value if acc is None else acc
        try:
            return to_json(expression({"acc": acc, "value": value}), MAX_STATE_BYTES)
        except (EvaluationError, CostLimitError, RecursionError):
            return acc

    return step
