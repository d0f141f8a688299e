"""The `windows` part of a spec: aggregates over a pipe's events by key and time."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from dataplane.expr import ExpressionError, compile_expr
from dataplane.spec.errors import SpecError
from dataplane.spec.names import Name
from dataplane.spec.steps import FieldPath

DAY_S: Final = 24 * 3600
MOST_PANES: Final = 100  # panes of a sliding window that one event may be in
WINDOW_SOURCE: Final = "window:"  # the source of results: window:<name>
Seconds = Annotated[int, Meta(ge=1, le=7 * DAY_S)]


class TumblingWindow(Struct, tag="tumbling", tag_field="kind", forbid_unknown_fields=True, frozen=True):
    """Consecutive windows of `size_s`, aligned to the epoch."""

    size_s: Seconds


class SlidingWindow(Struct, tag="sliding", tag_field="kind", forbid_unknown_fields=True, frozen=True):
    """Overlapping windows of `size_s`, one beginning every `every_s`; an event is in several."""

    size_s: Seconds
    every_s: Seconds


class SessionWindow(Struct, tag="session", tag_field="kind", forbid_unknown_fields=True, frozen=True):
    """Windows of events of one key with gaps shorter than `gap_s`."""

    gap_s: Seconds


class RunningWindow(Struct, tag="running", tag_field="kind", forbid_unknown_fields=True, frozen=True):
    """Window without an end, from the first event on; a result for every `every_s` with an event of the key."""

    every_s: Seconds


Span = TumblingWindow | SlidingWindow | SessionWindow | RunningWindow


class Aggregate(Struct, forbid_unknown_fields=True, frozen=True):
    """One value of a result: `op` over the values at `of`; `reduce` folds by `expr` over `body.acc` and `body.value`.

    An event without a value at `of` is ignored; sum and avg accept numbers, min and max numbers or texts.
    """

    op: Literal["count", "sum", "min", "max", "avg", "distinct", "reduce"]
    of: FieldPath | None = None
    expr: str | None = None


class WindowSpec(Struct, forbid_unknown_fields=True, frozen=True):
    """One window of a pipe: a tap after `enrich`, which settles nothing for its inputs.

    by:     paths of the key; a missing value counts as null
    late_s: an event whose time is further behind our clock is late: counted, and not aggregated
    """

    span: Span
    values: Annotated[dict[Name, Aggregate], Meta(min_length=1, max_length=20)]
    by: Annotated[list[FieldPath], Meta(max_length=5)] = []
    late_s: Annotated[int, Meta(ge=0, le=DAY_S)] = 60


Windows = Annotated[dict[Name, WindowSpec], Meta(max_length=10)]


def check_windows(windows: Mapping[str, WindowSpec]) -> None:
    """Check what types cannot express. Raises SpecError, with the field."""
    for name, window in windows.items():
        where = f"$.windows.{name}"
        if isinstance(window.span, SlidingWindow):
            _check_sliding(f"{where}.span", window.span)
        for path in window.by:
            _check_path(f"{where}.by", path)
        for value, aggregate in window.values.items():
            _check_aggregate(f"{where}.values.{value}", aggregate)


def _check_sliding(where: str, span: SlidingWindow) -> None:
    if span.every_s > span.size_s or span.size_s > MOST_PANES * span.every_s:
        raise SpecError(f"{where}.every_s", f"needs at most size_s, and at least a {MOST_PANES}th of it")


def _check_path(where: str, path: str) -> None:
    if path == "$" or "*" in path.split("."):
        raise SpecError(where, "needs the path of one value, without $ and *")


def _check_aggregate(where: str, aggregate: Aggregate) -> None:
    if aggregate.op != "count" and aggregate.of is None:
        raise SpecError(f"{where}.of", f"needs the path of the values to {aggregate.op}")
    if aggregate.of is not None:
        _check_path(f"{where}.of", aggregate.of)
    if (aggregate.op == "reduce") != (aggregate.expr is not None):
        raise SpecError(f"{where}.expr", "needs an expression for reduce, and only for reduce")
    if aggregate.expr is not None:
        _check_expression(f"{where}.expr", aggregate.expr)


def _check_expression(where: str, text: str) -> None:
    try:
        compile_expr(text, ("body",))
    except ExpressionError as exc:
        raise SpecError(where, str(exc)) from exc
