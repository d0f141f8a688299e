"""Cost of evaluating an expression on one message, by this process's clock."""

import statistics
import timeit
from typing import Any, Final

from dataplane.expr import compile_expr

RUNS: Final = 200
LOOKS: Final = 1_000  # evaluations per run
SIMPLE: Final = ("body.order.id > 100", 'body.customer.name == "Ada"', "body.order.id in [1, 2] || has(body.note)")
LARGER: Final = (
    'body.customer.email.endsWith("@example.com") && body.order.lines.exists(line, line.n > 1)',
    'body.order.lines.map(line, line.sku).join(",").matches("^abc")',
)


def median_us(text: str, body: dict[str, Any]) -> float:
    """Return the median over runs of the mean time of one evaluation, in microseconds."""
    expr = compile_expr(text)
    seconds = timeit.repeat(lambda: expr(body), number=LOOKS, repeat=RUNS)
    return statistics.median(seconds) / LOOKS * 1e6
