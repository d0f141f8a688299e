"""Dead letters: a message as it was, with the node where it ended, its cause, and what was answered. Pure.

One place writes and reads these marks, for process, transmit, the retrier and whoever shows or moves dead letters.
"""

from typing import Final

from msgspec import Struct

from dataplane.ledger.meta import META_HEADER, Headers, Meta, encode_meta

NODE_HEADER: Final = "penstock-node"
CAUSE_HEADER: Final = "penstock-cause"
DETAIL_HEADER: Final = "penstock-detail"
ANSWER_HEADER: Final = "penstock-answer"
_MARKS: Final = frozenset({NODE_HEADER, CAUSE_HEADER, DETAIL_HEADER, ANSWER_HEADER})


class Death(Struct, frozen=True):
    """Where and why a message ended. `cause` is one of a closed list, `detail` a sentence without payload or secret.

    answer: status line and beginning of the destination's answer, as text; "" if there was none
    """

    node: str
    cause: str
    detail: str = ""
    answer: str = ""


def dead_headers(meta: Meta, headers: Headers, death: Death) -> Headers:
    """The headers of a dead letter, from those of the message, of which the first is ours."""
    marks = [
        (NODE_HEADER, death.node.encode()),
        (CAUSE_HEADER, death.cause.encode()),
        (DETAIL_HEADER, death.detail.encode()),
    ]
    if death.answer:
        marks.append((ANSWER_HEADER, death.answer.encode()))
    return [(META_HEADER, encode_meta(meta)), *alive_headers(headers[1:]), *marks]


def alive_headers(headers: Headers) -> Headers:
    """The same headers without the marks of a death: what a message has that is brought back."""
    return [header for header in headers if header[0] not in _MARKS]


def death_of(headers: Headers) -> Death:
    """The marks of a dead letter; texts are "" where there is none."""
    found = {name: value.decode("utf-8", "replace") for name, value in headers if name in _MARKS}
    return Death(*(found.get(name, "") for name in (NODE_HEADER, CAUSE_HEADER, DETAIL_HEADER, ANSWER_HEADER)))
