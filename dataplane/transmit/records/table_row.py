"""Build the look-up table row of a message: the key by an expression, the row from the whole body. Pure."""

from typing import NamedTuple

from dataplane.causes import Cause
from dataplane.expr import CostAllowance, CostLimitError, EvaluationError, compile_expr
from dataplane.ledger.meta import MessageMeta
from dataplane.plan.about import about
from dataplane.plan.stage import EMPTY_CONTEXT, StageError, decode
from dataplane.spec import TableDestination
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.stages.enrich import row_key_of
from dataplane.stages.errors import StepError, kind
from dataplane.tables.lookups import MAX_KEY_BYTES, MAX_ROW_BYTES, VERSIONS_PER_US


class TableRow(NamedTuple):
    """Row to write, or to remove if `row` is None."""

    key: str
    version: int
    row: bytes | None


class RowMaker:
    """Compiled expressions of a table destination; call it with a message's body and `Meta`."""

    def __init__(self, to: TableDestination) -> None:
        self._key_of = compile_expr(to.key, EXPRESSION_ROOTS)
        self._gone = compile_expr(to.remove_when, EXPRESSION_ROOTS) if to.remove_when is not None else None
        self._needs_meta = "meta" in self._key_of.uses or (self._gone is not None and "meta" in self._gone.uses)

    def __call__(self, body: bytes, meta: MessageMeta) -> TableRow:
        """Return the row. Raises StageError `row` if the message cannot become a row."""
        value = decode(body)
        context = (about(meta) if self._needs_meta else EMPTY_CONTEXT).meta
        if not isinstance(value, dict):
            raise StageError(Cause.ROW, f"row: needs an object, got {kind(value)}")
        try:
            allowance = CostAllowance()
            key = row_key_of(self._key_of, value, context, allowance)
            gone = self._gone is not None and self._gone(value, context, allowance=allowance)
        except (StepError, EvaluationError, CostLimitError) as exc:
            raise StageError(Cause.ROW, str(exc)) from exc
        if not key or len(key.encode("utf-8", "replace")) > MAX_KEY_BYTES or "\x00" in key:
            raise StageError(Cause.ROW, f"key: needs 1 to {MAX_KEY_BYTES} bytes without U+0000")
        if len(body) > MAX_ROW_BYTES:
            raise StageError(Cause.ROW, f"row: needs at most {MAX_ROW_BYTES} bytes, got {len(body)}")
        return TableRow(key, row_version(meta), None if gone is True else body)


def row_version(meta: MessageMeta) -> int:
    """Return a version that grows with ingest time and, within a microsecond, offset; repeats get the same version."""
    return meta.ingest_time_us * VERSIONS_PER_US + meta.position % VERSIONS_PER_US
