"""Decide which messages remove their key from a compacted topic, by an expression. Pure."""

from dataplane.causes import Cause
from dataplane.expr import CostAllowance, CostLimitError, EvaluationError, compile_expr
from dataplane.ledger.meta import MessageMeta
from dataplane.plan.about import about
from dataplane.plan.stage import EMPTY_CONTEXT, StageError, decode
from dataplane.spec import TopicDestination
from dataplane.spec.checks import EXPRESSION_ROOTS


class Tombstones:
    """Compiled `remove_when` of a compacted topic."""

    def __init__(self, to: TopicDestination) -> None:
        self._gone = compile_expr(to.remove_when, EXPRESSION_ROOTS) if to.remove_when else None

    def removes(self, body: bytes, meta: MessageMeta) -> bool:
        """Return True if the message's record is a tombstone. Raises StageError `row` if that cannot be decided."""
        if self._gone is None:
            return False
        context = (about(meta) if "meta" in self._gone.uses else EMPTY_CONTEXT).meta
        try:
            return self._gone(decode(body), context, allowance=CostAllowance()) is True
        except (EvaluationError, CostLimitError) as exc:
            raise StageError(Cause.ROW, f"remove_when: {exc}") from exc
