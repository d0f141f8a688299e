"""Dead letters: a message as it was, with the node where it ended, its cause, and what was answered. Pure.

One place writes and reads these marks, for process, transmit, the retrier and whoever shows or moves dead letters. A
message that is too large to be copied is dead by reference: its letter names the record where it still is, and has
neither its body nor its headers.
"""

from typing import Final

from msgspec import Struct

from dataplane.ledger.meta import META_HEADER, Headers, Meta, encode_meta

NODE_HEADER: Final = "penstock-node"
CAUSE_HEADER: Final = "penstock-cause"
DETAIL_HEADER: Final = "penstock-detail"
ANSWER_HEADER: Final = "penstock-answer"
ORIGINAL_HEADER: Final = "penstock-original"  # of a letter by reference: `<topic>/<partition>/<offset>`
_MARKS: Final = frozenset({NODE_HEADER, CAUSE_HEADER, DETAIL_HEADER, ANSWER_HEADER, ORIGINAL_HEADER})
# What the marks may take of a record, together well below record_limits.HOP_BYTES. The rows of letters hold less.
NODE_BYTES: Final = 256
DETAIL_BYTES: Final = 2_000
ANSWER_BYTES: Final = 10_000


class Death(Struct, frozen=True):
    """Where and why a message ended. `cause` is one of a closed list, `detail` a sentence without payload or secret.

    answer: status line and beginning of the destination's answer, as text; "" if there was none
    """

    node: str
    cause: str
    detail: str = ""
    answer: str = ""


def dead_headers(meta: Meta, headers: Headers, death: Death) -> Headers:
    """Return the headers of a dead letter, from those of the message, of which the first is ours."""
    return [(META_HEADER, encode_meta(meta)), *alive_headers(headers[1:]), *_marks(death)]


def reference_headers(meta: Meta, death: Death, original: str) -> Headers:
    """Return the headers of a dead letter that refers to its message at `original`."""
    return [(META_HEADER, encode_meta(meta)), *_marks(death), (ORIGINAL_HEADER, original.encode())]


def alive_headers(headers: Headers) -> Headers:
    """Return the headers without the marks of a death: what a message has that is brought back."""
    return [header for header in headers if header[0] not in _MARKS]


def death_of(headers: Headers) -> Death:
    """Return the marks of a dead letter; texts are "" where there is none."""
    found = {name: value.decode("utf-8", "replace") for name, value in headers if name in _MARKS}
    return Death(*(found.get(name, "") for name in (NODE_HEADER, CAUSE_HEADER, DETAIL_HEADER, ANSWER_HEADER)))


def original_of(headers: Headers) -> str:
    """Return where the message of a letter by reference is; "" for a letter that is a copy."""
    return next((value.decode("utf-8", "replace") for name, value in headers if name == ORIGINAL_HEADER), "")


def _marks(death: Death) -> Headers:
    marks = [
        (NODE_HEADER, _cut(death.node, NODE_BYTES)),
        (CAUSE_HEADER, _cut(death.cause, NODE_BYTES)),
        (DETAIL_HEADER, _cut(death.detail, DETAIL_BYTES)),
    ]
    if death.answer:
        marks.append((ANSWER_HEADER, _cut(death.answer, ANSWER_BYTES)))
    return marks


def _cut(text: str, most_bytes: int) -> bytes:
    """Return the beginning of a text in UTF-8, whole characters only."""
    return text.encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore").encode()
