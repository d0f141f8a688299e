"""Dead letters: the message unchanged, with the node where it ended, its cause, and the destination's response. Pure.

Only this module writes and reads the headers of a dead letter, for process, transmit, the retrier, and the pages and
jobs that show or redrive dead letters. A message that is too large to be copied becomes a dead letter by reference: it
names the record that holds the message, and has neither its body nor its headers.
"""

from typing import Final

from msgspec import Struct

from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta, encode_meta
from dataplane.names import PROCESS_NODES

NODE_HEADER: Final = "penstock-node"
CAUSE_HEADER: Final = "penstock-cause"
DETAIL_HEADER: Final = "penstock-detail"
ANSWER_HEADER: Final = "penstock-answer"
PART_HEADER: Final = "penstock-part"  # the body is that of a child, so the steps cannot run on it again
ORIGINAL_HEADER: Final = "penstock-original"  # of a dead letter by reference: `<topic>/<partition>/<offset>`
_MARKS: Final = frozenset({NODE_HEADER, CAUSE_HEADER, DETAIL_HEADER, ANSWER_HEADER, PART_HEADER, ORIGINAL_HEADER})
# Size limits of these headers, together well below record_limits.HOP_BYTES. The DeadLetter rows hold less.
NODE_BYTES: Final = 256
DETAIL_BYTES: Final = 2_000
ANSWER_BYTES: Final = 10_000


class DeadLetterReason(Struct, frozen=True):
    """Node and cause of a message's end.

    cause:  one of a closed list
    detail: a sentence without payload or secret
    answer: status line and beginning of the destination's answer, as text; "" if there was none
    part:   true for a child that an explode made: its body is not that of the event
    """

    node: str
    cause: str
    detail: str = ""
    answer: str = ""
    part: bool = False


def dead_headers(meta: MessageMeta, headers: Headers, why_dead: DeadLetterReason) -> Headers:
    """Return the headers of a dead letter; `headers` are those of the message, of which the first is Meta."""
    return [(META_HEADER, encode_meta(meta)), *without_dead_letter_headers(headers[1:]), *_marks(why_dead)]


def reference_headers(meta: MessageMeta, why_dead: DeadLetterReason, original: str) -> Headers:
    """Return the headers of a dead letter by reference; `original` is `<topic>/<partition>/<offset>`."""
    return [(META_HEADER, encode_meta(meta)), *_marks(why_dead), (ORIGINAL_HEADER, original.encode())]


def without_dead_letter_headers(headers: Headers) -> Headers:
    """Return the headers without those of a dead letter, as a redriven message has them."""
    return [header for header in headers if header[0] not in _MARKS]


def dead_letter_reason(headers: Headers) -> DeadLetterReason:
    """Return node, cause, detail and response of a dead letter; a missing header gives ""."""
    found = {name: value.decode("utf-8", "replace") for name, value in headers if name in _MARKS}
    return DeadLetterReason(
        node=found.get(NODE_HEADER, ""),
        cause=found.get(CAUSE_HEADER, ""),
        detail=found.get(DETAIL_HEADER, ""),
        answer=found.get(ANSWER_HEADER, ""),
        part=PART_HEADER in found,
    )


def can_run_again(why_dead: DeadLetterReason) -> bool:
    """Return True if a dead letter ended in the pipe's steps and has the event's own body: the steps can run on it."""
    return why_dead.node in PROCESS_NODES[:3] and not why_dead.part


def original_of(headers: Headers) -> str:
    """Return the record that a dead letter by reference names; "" for a dead letter that is a copy."""
    return next((value.decode("utf-8", "replace") for name, value in headers if name == ORIGINAL_HEADER), "")


def _marks(why_dead: DeadLetterReason) -> Headers:
    marks = [
        (NODE_HEADER, _cut(why_dead.node, NODE_BYTES)),
        (CAUSE_HEADER, _cut(why_dead.cause, NODE_BYTES)),
        (DETAIL_HEADER, _cut(why_dead.detail, DETAIL_BYTES)),
    ]
    if why_dead.answer:
        marks.append((ANSWER_HEADER, _cut(why_dead.answer, ANSWER_BYTES)))
    if why_dead.part:
        marks.append((PART_HEADER, b"1"))
    return marks


def _cut(text: str, most_bytes: int) -> bytes:
    """Return the beginning of a text in UTF-8, whole characters only."""
    return text.encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore").encode()
