"""Identifiers in generated code: from names of schemas, which may be any text, to names of one style. Pure."""

import re
from collections.abc import Callable, Collection, Iterable
from typing import Final

_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def words(name: str) -> list[str]:
    """Return the words of a name in lower case: `orderID`, `order_id` and `order-id` have the words order and id."""
    return [part.lower() for part in _PARTS.findall(name)]


def pascal(name: str) -> str:
    """Return a name as `OrderId`."""
    return _leading_letter("".join(word.capitalize() for word in words(name)), "Type")


def camel(name: str) -> str:
    """Return a name as `orderId`."""
    first, *rest = words(name) or ["field"]
    return _leading_letter(first + "".join(word.capitalize() for word in rest), "field")


def snake(name: str) -> str:
    """Return a name as `order_id`."""
    return _leading_letter("_".join(words(name)), "field", "_")


def upper_snake(name: str) -> str:
    """Return a name as `ORDER_ID`."""
    return _leading_letter("_".join(words(name)).upper(), "VALUE", "_")


def _leading_letter(name: str, prefix: str, joint: str = "") -> str:
    if not name:
        return prefix
    return f"{prefix}{joint}{name}" if name[0].isdigit() else name


def distinct(names: Iterable[str], style: Callable[[str], str], reserved: Collection[str]) -> dict[str, str]:
    """Return an identifier for each name; a reserved word gets an underscore, a repeated one a number."""
    found: dict[str, str] = {}
    taken = set(reserved)
    for name in names:
        wanted = style(name)
        if wanted in reserved:
            wanted += "_"
        chosen, number = wanted, 2
        while chosen in taken:
            chosen = f"{wanted}{number}" if not wanted[-1].isdigit() else f"{wanted}_{number}"
            number += 1
        taken.add(chosen)
        found[name] = chosen
    return found


class ClassNames:
    """Gives each class of a client a name of its own, in the order in which they are asked for."""

    def __init__(self, reserved: Collection[str]) -> None:
        """`reserved`: names with a meaning in a language or in its runtime files."""
        self._reserved = frozenset(reserved)
        self._taken = set(reserved)

    def take(self, name: str) -> str:
        """Return a free name like this one: a reserved one gets `Type`, a repeated one a number."""
        wanted = pascal(name)
        if wanted in self._reserved:
            wanted = f"{wanted}Type"
        chosen, number = wanted, 2
        while chosen in self._taken:
            chosen = f"{wanted}{number}"
            number += 1
        self._taken.add(chosen)
        return chosen
