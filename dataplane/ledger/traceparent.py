"""`traceparent`, W3C's Trace Context: the header in which a message carries its trace, at HTTP and at Kafka alike."""

import re
from typing import Final

from dataplane.ledger.meta import Headers

TRACEPARENT: Final = "traceparent"
_FORM: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_SAMPLED: Final = 1  # the flag's bit


def is_traceparent(text: str) -> bool:
    """Whether it has the form that W3C gives it."""
    return _FORM.fullmatch(text) is not None


def trace_id(text: str) -> str:
    """The trace's own id, which a message and all that is told of it share; "" if there is none."""
    return text.split("-")[1] if is_traceparent(text) else ""


def is_sampled(traceparent: str) -> bool:
    """Whether whoever wrote it records this trace."""
    return bool(int(traceparent[-2:], 16) & _SAMPLED)


def carried(headers: Headers) -> str:
    """The trace that a message carries; "" if it carries none, or something that is none. A hot path."""
    for name, value in headers:
        if name == TRACEPARENT:
            text = value.decode("latin-1")
            return text if is_traceparent(text) else ""
    return ""


def sampled(headers: Headers) -> str:
    """The trace that a message carries if that is recorded, else ""."""
    text = carried(headers)
    return text if text and is_sampled(text) else ""


def carrying(headers: Headers, traceparent: str) -> Headers:
    """The same headers with this trace in place of any other, at their end."""
    return [*(pair for pair in headers if pair[0] != TRACEPARENT), (TRACEPARENT, traceparent.encode())]
