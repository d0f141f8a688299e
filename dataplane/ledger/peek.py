"""Copies that peek steps show: the message as it was at the step, with node and step. Pure.

One place writes and reads these marks, for process lanes and for whoever looks on.
"""

from typing import Final

from msgspec import Struct

from dataplane.ledger.deadletter import NODE_HEADER
from dataplane.ledger.meta import META_HEADER, Headers, Meta, encode_meta, read_meta

PEEK_HEADER: Final = "penstock-peek"


class Peek(Struct, frozen=True):
    """What is known of a copy beside its body: the message's Meta, the node, and the step's name."""

    meta: Meta
    node: str
    step: str


def peek_headers(peek: Peek) -> Headers:
    """The headers of a copy."""
    marks = ((NODE_HEADER, peek.node.encode()), (PEEK_HEADER, peek.step.encode()))
    return [(META_HEADER, encode_meta(peek.meta)), *marks]


def read_peek(headers: Headers) -> Peek:
    """Raises KeyError if a mark is not there, msgspec.DecodeError or UnicodeDecodeError if one cannot be read."""
    marks = dict(headers[1:])
    return Peek(read_meta(headers), marks[NODE_HEADER].decode(), marks[PEEK_HEADER].decode())
