"""Which copies a viewer wants to see: a condition in the tenant language. Pure."""

from dataplane.expr import EvalError, LimitError, compile_expr
from dataplane.plan.about import about
from dataplane.plan.stage import StageError, decode
from dataplane.spec.checks import EXPRESSION_ROOTS
from mgmt.tail.copies import Copy


class Judge:
    """A compiled condition over `body` and `meta`, which here names `node` and `step`, too. Empty lets all pass."""

    def __init__(self, text: str = "") -> None:
        """Raises ExprError, with line and column, for what is no expression."""
        self.text = text
        self._when = compile_expr(text, EXPRESSION_ROOTS) if text.strip() else None

    def __call__(self, copy: Copy) -> bool | None:
        """Whether it is wanted; None if the condition has no value for it, as where a field is missing."""
        if self._when is None:
            return True
        peek = copy.peek
        try:
            body = decode(copy.body) if "body" in self._when.uses else None
            return self._when.test(body, {**about(peek.meta).meta, "node": peek.node, "step": peek.step})
        except (StageError, EvalError, LimitError):
            return None
