"""What a run keeps of its messages that are traced."""

from typing import Any, NamedTuple

from msgspec import Struct


class Mark(NamedTuple):
    """The run came to a node ("in") or left it ("out"), at this time in microseconds."""

    node: str
    way: str
    at_us: int


class Traced(Struct):
    """`spans` by the message's position; `marks` in their order."""

    spans: dict[int, Any]
    marks: list[Mark] = []
