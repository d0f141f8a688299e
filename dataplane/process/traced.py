"""Records of a run about its traced messages."""

from typing import Any, NamedTuple

from msgspec import Struct


class TracedMark(NamedTuple):
    """Arrival of a run at a node ("in") or departure from it ("out"), in microseconds."""

    node: str
    way: str
    at_us: int


class TracedRun(Struct):
    """Spans by the position of their message, and marks in their order."""

    spans: dict[int, Any]
    marks: list[TracedMark] = []
