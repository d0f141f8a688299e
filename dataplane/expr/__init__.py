"""The tenant language: CEL for predicates and values, parsed by Lark, compiled to closures over a closed list."""

from dataplane.expr.compiled import Expr, compile_expr
from dataplane.expr.frame import ROOTS
from dataplane.expr.nodes import At, ExprError
from dataplane.expr.times import time_text
from dataplane.expr.values import Duration, EvalError, LimitError, Timestamp, to_json

__all__ = [
    "ROOTS",
    "At",
    "Duration",
    "EvalError",
    "Expr",
    "ExprError",
    "LimitError",
    "Timestamp",
    "compile_expr",
    "time_text",
    "to_json",
]
