"""Fields of a sample of a pipe's events: names, types, the counts of category values, sketches of numbers. Pure.

A sample reports names, types and counts. It reports values only of a category, not what a person typed: short, plain
texts that occur several times, and few different ones. Of numbers it reports a sketch of at most 64 bins, without the
smallest and the largest one. It does not look into arrays.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, Literal

from msgspec import Struct, field

from dataplane.ledger.number_sketch import NumberSketch

MOST_FIELDS: Final = 100  # of one sample; above this, the object with the most children is closed
MOST_NUMBERS: Final = 20  # fields of one sample whose numbers are sketched, the first ones that occur
LARGEST_NUMBER: Final = 1_000_000_000  # a field with a number from this on is a time, an id or a card: not sketched
DEEPEST: Final = 4
LONGEST_NAME: Final = 40
MOST_VALUES: Final = 12  # a field with more different values is not a category
LEAST_REPORTED: Final = 3  # a value that occurs less often is not reported
BODY: Final = "$"
NOT_JSON: Final = "no JSON"
_PLAIN: Final = re.compile(r"(?!.*[0-9]{4})[\w .:/+-]{1,24}")  # no e-mail addresses, no card or phone numbers
_LARGEST: Final = 999
_TYPES: Final = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}
_NO_CHILDREN: Final[dict[str, "_Node"]] = {}


class FieldCount(Struct, array_like=True, frozen=True):
    """One field of a sample.

    path:    names from the body on, joined by dots; `$` is the body itself
    present: number of events that have the field
    types:   number of them by type: string, number, boolean, null, object, array; for `$` also `no JSON`
    values:  number of them by value, if the field is a category; null if it is none, or values are not collected
    closed:  the field has too many children, which are not reported
    numbers: encoded NumberSketch of its numbers; null if it has none, or values are not collected. Readers of the
             previous release ignore it, and its writers do not send it
    """

    path: str
    present: int
    types: dict[str, int]
    values: dict[str, int] | None = None
    closed: bool = False
    numbers: bytes | None = None


class FieldObservation(Struct, array_like=True, frozen=True):
    """Sample of one source's events by one writer. `bucket`: minute since the epoch in which the sample began."""

    pipe: str
    source: str
    bucket: int
    events: int
    fields: list[FieldCount]


class _Node(Struct):
    """Field while it is counted; `values` is None if it is not a category, `children` is None if it is closed.

    numbers: sketch of its numbers; None before the first one, False if it gets none
    """

    present: int = 0
    types: dict[str, int] = field(default_factory=dict)
    values: dict[str, int] | None = field(default_factory=dict)
    children: dict[str, "_Node"] | None = field(default_factory=dict)
    numbers: NumberSketch | Literal[False] | None = None

    def size(self) -> int:
        """Return the number of fields below this one."""
        return sum(1 + child.size() for child in (self.children or _NO_CHILDREN).values())


class FieldCounter:
    """Counter of the fields in one source's events, bounded in fields, depth, names and values for any input.

    with_values: True to count the values of categories, and to sketch numbers
    """

    def __init__(self, *, with_values: bool) -> None:
        self.with_values = with_values
        self.events = 0
        self._body = _Node(values=None)
        self._fields = 1
        self._sketches = 0

    def add(self, body: Any) -> None:
        """Count one decoded event.

        Cost: about 0.4 us per field, for at most twice MOST_FIELDS fields, and 2 us more per sketched number.
        """
        self.events += 1
        self._count_value(self._body, body, 0)

    def add_unreadable(self) -> None:
        """Count one event that is not JSON."""
        self.events += 1
        self._body.present += 1
        _count(self._body.types, NOT_JSON)

    def observation(self, pipe: str, source: str, bucket: int) -> FieldObservation:
        """Return the counts so far."""
        fields = _field_counts(BODY, self._body, with_values=self.with_values)
        return FieldObservation(pipe, source, bucket, self.events, list(fields))

    def _count_value(self, node: _Node, value: Any, depth: int) -> None:
        node.present += 1
        kind = _TYPES.get(type(value), "number")
        _count(node.types, kind)
        if kind == "object":
            node.values = None
            if depth < DEEPEST:
                self._count_children(node, value, depth)
        elif node.values is not None and kind != "null":
            node.values = _with_value(node.values, value) if self.with_values else None
        if kind == "number" and node.numbers is not False and self.with_values:
            self._sketch(node, value)

    def _sketch(self, node: _Node, value: float) -> None:
        if not abs(value) < LARGEST_NUMBER:
            self._sketches -= bool(node.numbers)
            node.numbers = False
        elif node.numbers:
            node.numbers.add(value)
        elif self._sketches < MOST_NUMBERS:
            self._sketches += 1
            node.numbers = NumberSketch()
            node.numbers.add(value)

    def _count_children(self, node: _Node, value: dict[str, Any], depth: int) -> None:
        for name, below in value.items():
            children = node.children
            if children is None:
                return
            child = children.get(name)
            if child is None:
                if not _is_reportable(name):
                    continue
                child = children[name] = _Node()
                self._fields += 1
                if self._fields > MOST_FIELDS:
                    self._close_widest()
            self._count_value(child, below, depth + 1)

    def _close_widest(self) -> None:
        """Close the object with the most children: a map with ids as names, so that real fields stay reported."""
        widest = max(_nodes(self._body), key=lambda node: len(node.children or _NO_CHILDREN))
        self._fields -= widest.size()
        for node in list(_nodes(widest))[1:]:  # one of them may be the field that is being counted now
            self._sketches -= bool(node.numbers)
            node.children, node.numbers = None, False
        widest.children = None


def _with_value(values: dict[str, int], value: Any) -> dict[str, int] | None:
    """Return the values with one more counted; None if that makes the field no category."""
    if type(value) is str:
        text = value
    elif type(value) is bool:
        text = "true" if value else "false"
    elif type(value) is int and abs(value) <= _LARGEST:
        text = str(value)
    else:
        return None
    if text in values:
        values[text] += 1
        return values
    if len(values) == MOST_VALUES or not _PLAIN.fullmatch(text):
        return None
    values[text] = 1
    return values


def _is_reportable(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable()


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def _nodes(node: _Node) -> Iterator[_Node]:
    yield node
    for child in (node.children or _NO_CHILDREN).values():
        yield from _nodes(child)


def _field_counts(path: str, node: _Node, *, with_values: bool) -> Iterator[FieldCount]:
    values = None
    if node.values and with_values:
        values = {value: count for value, count in node.values.items() if count >= LEAST_REPORTED}
    numbers = node.numbers.encode() if node.numbers and with_values else None
    yield FieldCount(path, node.present, node.types, values, node.children is None, numbers)
    for name, child in (node.children or _NO_CHILDREN).items():
        yield from _field_counts(name if path == BODY else f"{path}.{name}", child, with_values=with_values)
