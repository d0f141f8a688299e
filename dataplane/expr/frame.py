"""What an expression runs on: the roots, the variables of comprehensions, and what the message may still cost.

One unit stands for about half a microsecond and for at most about 64 bytes of memory. Whatever takes longer or more the
larger a value is, is charged before it is done: an operation of C cannot be interrupted, and others wait for it.
"""

from typing import Any, Final

from dataplane.expr.values import LimitError

COST_LIMIT: Final = 50_000  # units that one expression may take of a message
STAGE_LIMIT: Final = 75_000  # that all steps of a stage may take of it together
CHARS_PER_UNIT: Final = 64  # read or written
WIDE_CHARS_PER_UNIT: Final = 16  # in a text with any character beyond ASCII, which may take four bytes each
ERROR_UNITS: Final = 5  # an error that is absorbed

# A list, because a closure reads it by number faster than it reads an attribute.
Frame = list[Any]
ROOTS: Final = ("body", "meta", "table")
BUDGET: Final = len(ROOTS)
FIRST_VARIABLE: Final = BUDGET + 1


class Allowance:
    """What a message may still cost in one stage. All expressions and steps of the stage take from it."""

    __slots__ = ("units",)

    def __init__(self, units: int = STAGE_LIMIT) -> None:
        self.units = units

    def charge(self, units: int) -> None:
        """Take units. Raises LimitError when they are used up."""
        self.units -= units
        if self.units < 0:
            raise used_up()


def used_up() -> LimitError:
    """Return the error of a stage that costs too much."""
    return LimitError(f"the stage costs more than {STAGE_LIMIT} units on this message")


def charge(frame: Frame, units: int) -> None:
    """Take units from what this message may cost the expression. Raises LimitError when they are used up."""
    frame[BUDGET] -= units
    if frame[BUDGET] < 0:
        raise LimitError(f"the expression costs more than {COST_LIMIT} units on this message")


def text_units(text: str) -> int:
    """Return what reading or writing a text costs."""
    return len(text) // (CHARS_PER_UNIT if text.isascii() else WIDE_CHARS_PER_UNIT)


def joined_units(one: str, other: str, chars: int) -> int:
    """Return what writing so many characters costs that come from two texts: the wider of them decides."""
    return chars // (CHARS_PER_UNIT if one.isascii() and other.isascii() else WIDE_CHARS_PER_UNIT)


def json_units(text: bytes) -> int:
    """Return what a JSON document costs once it is decoded: an object takes 240 bytes, an array 60, however short."""
    return 1 + (len(text) + 240 * text.count(b"{") + 60 * text.count(b"[")) // CHARS_PER_UNIT
