"""The tenant language: CEL for predicates and values, parsed by Lark, compiled to closures over an allowlist."""

from dataplane.expr.compiled import CompiledExpression, compile_expr
from dataplane.expr.frame import ROOTS, CostAllowance, json_units
from dataplane.expr.nodes import ExpressionError, TextPosition
from dataplane.expr.output import to_json
from dataplane.expr.parse import closing_brace
from dataplane.expr.times import time_text
from dataplane.expr.values import CostLimitError, Duration, EvaluationError, Timestamp, weight

__all__ = [
    "ROOTS",
    "CompiledExpression",
    "CostAllowance",
    "CostLimitError",
    "Duration",
    "EvaluationError",
    "ExpressionError",
    "TextPosition",
    "Timestamp",
    "closing_brace",
    "compile_expr",
    "json_units",
    "time_text",
    "to_json",
    "weight",
]
