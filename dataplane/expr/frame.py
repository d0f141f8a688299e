"""What an expression runs on: the roots, the variables of comprehensions, and what the message may still cost."""

from typing import Any, Final

from dataplane.expr.values import LimitError

COST_LIMIT: Final = 50_000  # parts run in comprehensions and text read or written; about 10 ms

# A list, because a closure reads it by number faster than it reads an attribute.
Frame = list[Any]
ROOTS: Final = ("body", "meta", "table")
BUDGET: Final = len(ROOTS)
FIRST_VARIABLE: Final = BUDGET + 1


def charge(frame: Frame, units: int) -> None:
    """Take units from what this message may cost. Raises LimitError when it is used up."""
    frame[BUDGET] -= units
    if frame[BUDGET] < 0:
        raise LimitError(f"the expression costs more than {COST_LIMIT} units on this message")
