"""What fields a sample of a pipe's events has: of which types, and how often each of a few short values. Pure.

A sample tells names, types and counts. Of values it tells only those that are short, plain words, come several times,
and are few: a category, not what somebody typed. Arrays are not looked into.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct, field

MOST_FIELDS: Final = 100  # of one sample; beyond it the object with the most children is closed
DEEPEST: Final = 4
LONGEST_NAME: Final = 40
MOST_VALUES: Final = 12  # more different ones are no category
LEAST_TOLD: Final = 3  # a value that came less often is not told
BODY: Final = "$"
NOT_JSON: Final = "no JSON"
_PLAIN: Final = re.compile(r"(?!.*[0-9]{4})[\w .:/+-]{1,24}")  # no addresses of mail, no numbers of cards or phones
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
    present: events that have it
    types:   how many of them by type: string, number, boolean, null, object, array; of `$` also `no JSON`
    values:  how many of them by value, if it is a category; null if it is none, or nobody may know
    closed:  it has too many children, of which nothing is told
    """

    path: str
    present: int
    types: dict[str, int]
    values: dict[str, int] | None = None
    closed: bool = False


class FieldSample(Struct, array_like=True, frozen=True):
    """What one writer saw of a source's events. `bucket`: the minute in which it began to look, since the epoch."""

    pipe: str
    source: str
    bucket: int
    events: int
    fields: list[FieldCount]


class _Node(Struct):
    """A field; `values` or `children` None: no category, or closed."""

    present: int = 0
    types: dict[str, int] = field(default_factory=dict)
    values: dict[str, int] | None = field(default_factory=dict)
    children: dict[str, "_Node"] | None = field(default_factory=dict)

    def size(self) -> int:
        """Fields below it."""
        return sum(1 + child.size() for child in (self.children or _NO_CHILDREN).values())


class FieldCounter:
    """Counts the fields of events of one source: bounded in fields, depth, names and values, whatever comes.

    with_values: whether categories are counted
    """

    def __init__(self, *, with_values: bool) -> None:
        self.with_values = with_values
        self.events = 0
        self._body = _Node(values=None)
        self._fields = 1

    def add(self, body: Any) -> None:
        """Count one decoded event. Cost: about 0.4 us a field, at most twice MOST_FIELDS of them."""
        self.events += 1
        self._look(self._body, body, 0)

    def add_unreadable(self) -> None:
        """Count one that is no JSON."""
        self.events += 1
        self._body.present += 1
        _count(self._body.types, NOT_JSON)

    def told(self, pipe: str, source: str, bucket: int) -> FieldSample:
        """What it has counted."""
        fields = _told(BODY, self._body, with_values=self.with_values)
        return FieldSample(pipe, source, bucket, self.events, list(fields))

    def _look(self, node: _Node, value: Any, depth: int) -> None:
        node.present += 1
        kind = _TYPES.get(type(value), "number")
        _count(node.types, kind)
        if kind == "object":
            node.values = None
            if depth < DEEPEST:
                self._enter(node, value, depth)
        elif node.values is not None and kind != "null":
            node.values = _with_value(node.values, value) if self.with_values else None

    def _enter(self, node: _Node, value: dict[str, Any], depth: int) -> None:
        for name, below in value.items():
            children = node.children
            if children is None:
                return
            child = children.get(name)
            if child is None:
                if not _may_be_told(name):
                    continue
                child = children[name] = _Node()
                self._fields += 1
                if self._fields > MOST_FIELDS:
                    self._close_the_widest()
            self._look(child, below, depth + 1)

    def _close_the_widest(self) -> None:
        """Objects that are maps, with ids for names, go first: the others go on to be told."""
        widest = max(_nodes(self._body), key=lambda node: len(node.children or _NO_CHILDREN))
        self._fields -= widest.size()
        widest.children = None


def _with_value(values: dict[str, int], value: Any) -> dict[str, int] | None:
    """The values and one more; None if that makes them no category."""
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


def _may_be_told(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable()


def _count(counts: dict[str, int], what: str) -> None:
    counts[what] = counts.get(what, 0) + 1


def _nodes(node: _Node) -> Iterator[_Node]:
    yield node
    for child in (node.children or _NO_CHILDREN).values():
        yield from _nodes(child)


def _told(path: str, node: _Node, *, with_values: bool) -> Iterator[FieldCount]:
    values = None
    if node.values and with_values:
        values = {value: count for value, count in node.values.items() if count >= LEAST_TOLD}
    yield FieldCount(path, node.present, node.types, values, node.children is None)
    for name, child in (node.children or _NO_CHILDREN).items():
        yield from _told(name if path == BODY else f"{path}.{name}", child, with_values=with_values)
