"""Copies that peek steps make: the message as it was at the step, with node and step. Pure.

Only this module writes and reads the headers of a copy, for process lanes and for the live tail.
"""

from typing import Final

from msgspec import Struct

from dataplane.ledger.deadletter import NODE_HEADER
from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta, encode_meta, read_meta, without_original

PEEK_HEADER: Final = "penstock-peek"


class PeekMeta(Struct, frozen=True):
    """Headers of a copy: the message's Meta, the node, and the step's name."""

    meta: MessageMeta
    node: str
    step: str


def peek_headers(peek: PeekMeta) -> Headers:
    """Return the headers of a copy, which has no original body: a tail shows the message at its step, masked there."""
    marks = ((NODE_HEADER, peek.node.encode()), (PEEK_HEADER, peek.step.encode()))
    return [(META_HEADER, encode_meta(without_original(peek.meta))), *marks]


def read_peek(headers: Headers) -> PeekMeta:
    """Read the headers of a copy.

    Raises KeyError if one is missing, msgspec.DecodeError or UnicodeDecodeError if one cannot be decoded.
    """
    marks = dict(headers[1:])
    return PeekMeta(read_meta(headers), marks[NODE_HEADER].decode(), marks[PEEK_HEADER].decode())
