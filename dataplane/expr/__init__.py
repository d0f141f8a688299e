"""The tenant language: CEL for predicates and values, parsed by Lark, compiled to closures over a closed list."""

from dataplane.expr.compiled import Expr, compile_expr
from dataplane.expr.frame import ROOTS, Allowance, json_units
from dataplane.expr.nodes import At, ExprError
from dataplane.expr.parse import closing_brace
from dataplane.expr.times import time_text
from dataplane.expr.values import Duration, EvalError, LimitError, Timestamp, to_json, weight

__all__ = [
    "ROOTS",
    "Allowance",
    "At",
    "Duration",
    "EvalError",
    "Expr",
    "ExprError",
    "LimitError",
    "Timestamp",
    "closing_brace",
    "compile_expr",
    "json_units",
    "time_text",
    "to_json",
    "weight",
]
