"""Refuse an event whose record would leave no space for what later hops add to it. Pure."""

from dataplane.ingest.problems import EventRejectedError
from dataplane.ledger.meta import Headers, OriginalBody
from dataplane.record_limits import BODY_BYTES, ENVELOPE_BYTES, wire_bytes


def reject_large_pair(body: bytes, original: OriginalBody) -> None:
    """Raise EventRejectedError if the body and its original together leave no space for the rest of the record."""
    size = len(body) + len(original.content)
    if size > BODY_BYTES:
        detail = f"needs at most {BODY_BYTES} bytes of the original body and its JSON together, got {size}"
        raise EventRejectedError(413, "event-too-large", detail)


def reject_large_envelope(key: bytes | None, headers: Headers, original_bytes: int) -> None:
    """Raise EventRejectedError for attributes and headers that leave no space for those of later hops.

    original_bytes: of the original body in the headers, which count as a part of the body
    """
    size = wire_bytes(None, key, headers) - original_bytes
    if size > ENVELOPE_BYTES:
        raise EventRejectedError(
            413, "event-too-large", f"needs at most {ENVELOPE_BYTES} bytes of attributes and headers, got {size}"
        )
