"""Differences of two bodies as JSON, by value: names of fields, bounded in depth and count. Pure."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from dataplane.spec.steps import PATH
from dataplane.stages.paths import EACH, MISSING, Segments

MOST_DEPTH: Final = 8  # of a path; below it, the value there differs as a whole
MOST_DIFFERENCES: Final = 50  # of one unit
MOST_NAME_CHARS: Final = 100
_NAME: Final = re.compile(PATH)


class Difference(NamedTuple):
    """Field with different values; MISSING if there is none. The path () is the whole body."""

    path: Segments
    live: Any
    shadow: Any


def differences(live: Any, shadow: Any) -> list[Difference]:
    """Return the fields that differ, at most MOST_DIFFERENCES; none if both are the same JSON value.

    The order of members does not matter. Values of different types differ: 1 and 1.0, true and 1. Arrays of different
    lengths differ as a whole. An object with names that a path cannot have, or long ones, differs as a whole, too.
    """
    return list(islice(_differences(live, shadow, ()), MOST_DIFFERENCES))


def _differences(live: Any, shadow: Any, path: Segments) -> Iterator[Difference]:
    children: list[tuple[str, Any, Any]] | None = None
    if len(path) < MOST_DEPTH:
        if type(live) is dict and type(shadow) is dict:
            children = _members(live, shadow)
        elif path and type(live) is list and type(shadow) is list and len(live) == len(shadow):
            children = [(str(index), *pair) for index, pair in enumerate(zip(live, shadow, strict=True))]
    if children is not None:
        for name, its_live, its_shadow in children:
            yield from _differences(its_live, its_shadow, (*path, name))
    elif not is_same(live, shadow):
        yield Difference(path, live, shadow)


def _members(live: dict[str, Any], shadow: dict[str, Any]) -> list[tuple[str, Any, Any]] | None:
    """Return the members of both objects; None if a name is not possible in a path."""
    names = dict.fromkeys((*live, *shadow))
    if not all(
        len(name) <= MOST_NAME_CHARS and name != EACH and "." not in name and _NAME.match(name) for name in names
    ):
        return None
    return [(name, live.get(name, MISSING), shadow.get(name, MISSING)) for name in names]


def is_same(one: Any, other: Any) -> bool:
    """Return True if two decoded JSON values are equal, with equal types. Needs no recursion."""
    pairs = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if type(left) is not type(right):
            return False
        if type(left) is dict:
            if left.keys() != right.keys():
                return False
            pairs += [(value, right[name]) for name, value in left.items()]
        elif type(left) is list:
            if len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif left != right:
            return False
    return True
