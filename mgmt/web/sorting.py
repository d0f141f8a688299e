"""Sorting and pagination of lists by URL parameters. Pure."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class SortOrder(NamedTuple):
    """Sort column and direction; `lag` or, descending, `-lag` in the URL."""

    column: str
    descending: bool = False

    def __str__(self) -> str:
        return f"-{self.column}" if self.descending else self.column


def order_of(text: str, columns: Collection[str], default: SortOrder) -> SortOrder:
    """Parse a sort order; an unknown column gives the default."""
    column = text.removeprefix("-")
    return SortOrder(column, text.startswith("-")) if column in columns else default


def arranged(lines: Sequence[T], value_of: Callable[[T], Any], *, descending: bool) -> list[T]:
    """Sort lines by value (stable); lines without a value are last in both directions."""
    known = [line for line in lines if value_of(line) is not None]
    unknown = [line for line in lines if value_of(line) is None]
    return sorted(known, key=value_of, reverse=descending) + unknown


def page_after(lines: Sequence[T], id_of: Callable[[T], str], after: str, most: int) -> tuple[Sequence[T], str]:
    """Return the page after the line with id `after`, and the cursor of the next page ("" at the end).

    An `after` that no longer exists gives the first page.
    """
    start = next((number + 1 for number, line in enumerate(lines) if id_of(line) == after), 0) if after else 0
    page = lines[start : start + most]
    return page, id_of(page[-1]) if len(lines) > start + most else ""
