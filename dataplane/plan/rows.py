"""Row of a message for a table of Postgres: the value of each column, as JSON. Pure."""

from typing import Final

from msgspec import Raw

from dataplane.causes import Cause
from dataplane.expr import CostAllowance, CostLimitError, EvaluationError, compile_expr, to_json
from dataplane.ledger.meta import MessageMeta
from dataplane.plan.about import about
from dataplane.plan.stage import StageError, decode, encode
from dataplane.spec import PostgresDestination
from dataplane.spec.checks import EXPRESSION_ROOTS

MAX_ROW_BYTES: Final = 1024 * 1024


class CompiledRow:
    """Compiled columns of a destination; call it with a message's `Meta` and body."""

    def __init__(self, to: PostgresDestination) -> None:
        """Compile the columns. Cannot fail for a destination that parse_pipe_spec accepted."""
        self.to = to
        self._columns = {name: compile_expr(text, EXPRESSION_ROOTS) for name, text in to.columns.items()}
        uses = frozenset(root for expr in self._columns.values() for root in expr.uses)
        self._reads_body, self._reads_meta = "body" in uses, "meta" in uses

    def __call__(self, meta: MessageMeta, body: bytes) -> bytes:
        """Return the row as a JSON object. Raises StageError `row`, with the column and what was needed."""
        value = decode(body) if self._reads_body else None
        known = {**about(meta).meta, "position": meta.position, "child": meta.child} if self._reads_meta else {}
        allowance, row, size = CostAllowance(), {}, 0
        for name, expr in self._columns.items():
            try:
                part = encode(to_json(expr(value, known, allowance=allowance), MAX_ROW_BYTES), f"column {name}")
            except (EvaluationError, CostLimitError) as exc:
                raise StageError(Cause.ROW, f"column {name}: {exc}") from exc
            row[name] = Raw(part)
            size += len(part)
            if size > MAX_ROW_BYTES:  # before the next one is built: all may contain the whole body
                raise StageError(Cause.ROW, f"needs values of at most {MAX_ROW_BYTES} bytes")
        return encode(row, "row")
