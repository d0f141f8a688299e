"""The frame that an expression runs on: its roots, the variables of comprehensions, and the remaining cost allowance.

One unit is about half a microsecond and at most about 64 bytes of memory. An operation that takes longer or more memory
the larger a value is, is charged before it runs: an operation in C cannot be interrupted, and others wait for it.
"""

from typing import Any, Final

from dataplane.expr.values import CostLimitError

COST_LIMIT: Final = 50_000  # units of one expression on one message
STAGE_LIMIT: Final = 75_000  # units of all steps of a stage together on one message
CHARS_PER_UNIT: Final = 64  # read or written
WIDE_CHARS_PER_UNIT: Final = 16  # in a text with any character beyond ASCII, which may take four bytes each
ERROR_UNITS: Final = 5  # of an absorbed error

# A list, because a closure reads an item by index faster than an attribute.
Frame = list[Any]
ROOTS: Final = ("body", "meta", "table")
BUDGET: Final = len(ROOTS)
FIRST_VARIABLE: Final = BUDGET + 1


class CostAllowance:
    """Remaining units of a message in one stage. All expressions and steps of the stage share it."""

    __slots__ = ("units",)

    def __init__(self) -> None:
        self.units = STAGE_LIMIT

    def charge(self, units: int) -> None:
        """Take units. Raises CostLimitError if fewer are left."""
        self.units -= units
        if self.units < 0:
            raise used_up()


def used_up() -> CostLimitError:
    """Return the error of a stage that exceeds its cost limit."""
    return CostLimitError(f"the stage costs more than {STAGE_LIMIT} units on this message")


def charge(frame: Frame, units: int) -> None:
    """Take units from the expression's budget for this message. Raises CostLimitError if fewer are left."""
    frame[BUDGET] -= units
    if frame[BUDGET] < 0:
        raise CostLimitError(f"the expression costs more than {COST_LIMIT} units on this message")


def text_units(text: str) -> int:
    """Return the units for reading or writing a text."""
    return len(text) // (CHARS_PER_UNIT if text.isascii() else WIDE_CHARS_PER_UNIT)


def joined_units(one: str, other: str, chars: int) -> int:
    """Return the units for writing `chars` characters that come from two texts; the wider text decides."""
    return chars // (CHARS_PER_UNIT if one.isascii() and other.isascii() else WIDE_CHARS_PER_UNIT)


def json_units(text: bytes) -> int:
    """Return the units of a JSON document once decoded: an object takes 240 bytes, an array 60, however short."""
    return 1 + (len(text) + 240 * text.count(b"{") + 60 * text.count(b"[")) // CHARS_PER_UNIT
