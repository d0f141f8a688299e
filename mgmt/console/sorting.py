"""How a list is ordered and cut into pages, by what stands in the URL. Pure."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Order(NamedTuple):
    """A column, and whether the list falls by it; in the URL as `lag` or `-lag`."""

    column: str
    falls: bool = False

    def __str__(self) -> str:
        return f"-{self.column}" if self.falls else self.column


def order_of(text: str, columns: Collection[str], default: Order) -> Order:
    """The order that a text asks for; what is none of the columns means the default."""
    column = text.removeprefix("-")
    return Order(column, text.startswith("-")) if column in columns else default


def arranged(lines: Sequence[T], value_of: Callable[[T], Any], *, falls: bool) -> list[T]:
    """The lines by their values, those without one last whichever way; equals keep the order that they had."""
    known = [line for line in lines if value_of(line) is not None]
    unknown = [line for line in lines if value_of(line) is None]
    return sorted(known, key=value_of, reverse=falls) + unknown


def page_after(lines: Sequence[T], id_of: Callable[[T], str], after: str, most: int) -> tuple[Sequence[T], str]:
    """The page that begins behind the line of this id, and what the next one begins behind: "" at the end.

    A line that is gone meanwhile gives the first page.
    """
    start = next((number + 1 for number, line in enumerate(lines) if id_of(line) == after), 0) if after else 0
    page = lines[start : start + most]
    return page, id_of(page[-1]) if len(lines) > start + most else ""
