"""Look-ups as functions of a body. The rows are an argument: a lane's pinned tables, or those of a dry run."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Protocol

from dataplane.expr import CompiledExpression, CostAllowance, CostLimitError, EvaluationError, compile_expr
from dataplane.spec import EnrichSpec
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.stages.errors import StepError, kind
from dataplane.stages.paths import compile_path, put


class TableNotFoundError(Exception):
    """No table has this name, or it was removed."""


class TableRows(Protocol):
    """Look-up tables of one tenant, unchanged for the duration of a batch."""

    def row(self, table: str, key: str) -> Any:
        """Return the row, an object that the caller owns; None if there is none. Raises TableNotFoundError."""


class EmptyTables:
    """Rows for a tenant without tables."""

    def row(self, table: str, key: str) -> Any:  # noqa: ARG002 (the protocol's)
        """Raise TableNotFoundError."""
        raise TableNotFoundError(table)


class RowNotFoundError(Exception):
    """There is no row, and the spec says that such a message is dead-lettered."""


Join = Callable[[Any, Any, TableRows, CostAllowance], Any]


def compile_enrich(step: EnrichSpec) -> tuple[Join, bool]:
    """Return the look-up as a function of body, meta, rows and cost allowance, and whether it reads meta.

    In:     a decoded JSON body, owned by the caller; the root `meta` of the message; the tenant's tables.
    Out:    the same body, with the row (or the default) at `into`, or unchanged.
    Raises: StepError for a key without a value or of another kind, and an `into` that cannot be set; RowNotFoundError,
            TableNotFoundError.
    Cost:   the key's expression, a descent of the table's tree, decoding the row: some microseconds, no socket.
    """
    key_of, segments = compile_expr(step.key, EXPRESSION_ROOTS), compile_path(step.into)

    def join(body: Any, meta: Any, rows: TableRows, allowance: CostAllowance) -> Any:
        key = row_key_of(key_of, body, meta, allowance)
        row = None if key is None else rows.row(step.table, key)
        if row is None:
            if step.on_missing == "keep":
                return body
            if step.on_missing == "dead":
                raise RowNotFoundError(f"{step.table} has no row for this key")
            row = deepcopy(step.default)
        try:
            put(body, segments, row)
        except TypeError as exc:
            raise StepError(step.into, str(exc)) from exc
        return body

    return join, "meta" in key_of.uses


def row_key_of(key_of: CompiledExpression, body: Any, meta: Any, allowance: CostAllowance) -> str | None:
    """Return the row key that an expression yields: a string, or a whole number as text. Raises StepError."""
    try:
        key = key_of(body, meta, allowance=allowance)
    except (EvaluationError, CostLimitError) as exc:
        raise StepError("key", str(exc)) from exc
    if isinstance(key, str) or key is None:
        return key
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key)
    raise StepError("key", f"needs text or a whole number, got {kind(key)}")
