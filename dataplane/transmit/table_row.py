"""The row of a look-up table that a message becomes: its key by an expression, the body whole. Pure."""

from typing import Final, NamedTuple

from dataplane.expr import Allowance, EvalError, LimitError, compile_expr
from dataplane.ledger.meta import Meta
from dataplane.plan.about import about
from dataplane.plan.stage import NOTHING_KNOWN, StageError, decode
from dataplane.spec import TableDestination
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.stages.enrich import row_key_of
from dataplane.stages.errors import StepError, kind
from dataplane.tables.lookups import MAX_KEY_BYTES, MAX_ROW_BYTES

OFFSETS: Final = 1 << 10


class TableRow(NamedTuple):
    """A row to be put, or to be removed where `row` is None."""

    key: str
    version: int
    row: bytes | None


class RowMaker:
    """A table destination's expressions, compiled."""

    def __init__(self, to: TableDestination) -> None:
        self._key_of = compile_expr(to.key, EXPRESSION_ROOTS)
        self._gone = compile_expr(to.remove_when, EXPRESSION_ROOTS) if to.remove_when is not None else None
        self._needs_meta = "meta" in self._key_of.uses or (self._gone is not None and "meta" in self._gone.uses)

    def __call__(self, body: bytes, meta: Meta) -> TableRow:
        """The row. Raises StageError `row` for what cannot be one."""
        value = decode(body)
        known = (about(meta) if self._needs_meta else NOTHING_KNOWN).meta
        if not isinstance(value, dict):
            raise StageError("row", f"a row needs an object, got {kind(value)}")
        try:
            allowance = Allowance()
            key = row_key_of(self._key_of, value, known, allowance)
            gone = self._gone is not None and self._gone(value, known, allowance=allowance)
        except (StepError, EvalError, LimitError) as exc:
            raise StageError("row", str(exc)) from exc
        if not key or len(key.encode("utf-8", "replace")) > MAX_KEY_BYTES or "\x00" in key:
            raise StageError("row", f"key: needs 1 to {MAX_KEY_BYTES} bytes without U+0000")
        if len(body) > MAX_ROW_BYTES:
            raise StageError("row", f"a row may have {MAX_ROW_BYTES} bytes, got {len(body)}")
        return TableRow(key, row_version(meta), None if gone is True else body)


def row_version(meta: Meta) -> int:
    """Grows with the time of ingest, and with the offset within a microsecond: repeats come to the same version."""
    return meta.ingest_time_us * OFFSETS + meta.position % OFFSETS
