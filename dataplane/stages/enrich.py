"""Look-ups as functions of a body. The rows come in as an argument: a lane's pinned tables, or a dry run's."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Protocol

from dataplane.expr import Allowance, EvalError, Expr, LimitError, compile_expr
from dataplane.spec import Enrich
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.stages.errors import StepError, kind
from dataplane.stages.paths import compile_path, put


class TableGoneError(Exception):
    """There is no table of that name, or there is none any more."""


class Rows(Protocol):
    """The tables of one tenant, as they are for as long as a batch lasts."""

    def row(self, table: str, key: str) -> Any:
        """The row, an object that belongs to whoever asked; None if there is none. Raises TableGoneError."""


class NoTables:
    """Rows for whoever has no tables."""

    def row(self, table: str, key: str) -> Any:  # noqa: ARG002 (the protocol's)
        """Raises TableGoneError."""
        raise TableGoneError(table)


class NoRowError(Exception):
    """There is no row, and the spec says that such a message is dead."""


Join = Callable[[Any, Any, Rows, Allowance], Any]


def compile_enrich(step: Enrich) -> tuple[Join, bool]:
    """The look-up as a function of body, meta and rows; and whether it reads meta.

    In:     a decoded JSON body, owned by the caller; what is known of the message; the tenant's tables.
    Out:    the same body, with the row (or the default) at `into`, or as it was.
    Raises: StepError for a key without a value or of another kind, and an `into` that cannot be; NoRowError,
            TableGoneError.
    Cost:   the key's expression, a descent of the table's tree, decoding the row: some microseconds, no socket.
    """
    key_of, segments = compile_expr(step.key, EXPRESSION_ROOTS), compile_path(step.into)

    def join(body: Any, meta: Any, rows: Rows, allowance: Allowance) -> Any:
        key = row_key_of(key_of, body, meta, allowance)
        row = None if key is None else rows.row(step.table, key)
        if row is None:
            if step.on_missing == "keep":
                return body
            if step.on_missing == "dead":
                raise NoRowError(f"{step.table} has no row for this key")
            row = deepcopy(step.default)
        try:
            put(body, segments, row)
        except TypeError as exc:
            raise StepError(step.into, str(exc)) from exc
        return body

    return join, "meta" in key_of.uses


def row_key_of(key_of: Expr, body: Any, meta: Any, allowance: Allowance) -> str | None:
    """Return the key of a row as an expression gives it: text, or a whole number as its text. Raises StepError."""
    try:
        key = key_of(body, meta, allowance=allowance)
    except (EvalError, LimitError) as exc:
        raise StepError("key", str(exc)) from exc
    if isinstance(key, str) or key is None:
        return key
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key)
    raise StepError("key", f"needs text or a whole number, got {kind(key)}")
