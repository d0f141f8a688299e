"""`traceparent` of W3C Trace Context: the header that carries a message's trace, in HTTP and in Kafka."""

import re
from typing import Final

from dataplane.ledger.meta import Headers

TRACEPARENT: Final = "traceparent"
_FORM: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_SAMPLED: Final = 1  # bit of the trace flags


def is_traceparent(text: str) -> bool:
    """Return True if the text has the form that W3C Trace Context defines."""
    return _FORM.fullmatch(text) is not None


def trace_id(text: str) -> str:
    """Return the trace id, which a message shares with the spans about it; "" if the text is not a traceparent."""
    return text.split("-")[1] if is_traceparent(text) else ""


def is_sampled(traceparent: str) -> bool:
    """Return True if the caller that wrote this traceparent records the trace (the sampled flag)."""
    return bool(int(traceparent[-2:], 16) & _SAMPLED)


def carried(headers: Headers) -> str:
    """Return the traceparent that a message carries; "" if there is none or it is invalid. A hot path."""
    for name, value in headers:
        if name == TRACEPARENT:
            text = value.decode("latin-1")
            return text if is_traceparent(text) else ""
    return ""


def sampled(headers: Headers) -> str:
    """Return the traceparent that a message carries if its trace is sampled, else ""."""
    text = carried(headers)
    return text if text and is_sampled(text) else ""


def carrying(headers: Headers, traceparent: str) -> Headers:
    """Return the headers with this traceparent at the end, instead of any other."""
    return [*(pair for pair in headers if pair[0] != TRACEPARENT), (TRACEPARENT, traceparent.encode())]
