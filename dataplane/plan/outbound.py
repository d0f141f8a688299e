"""Headers of an outgoing request, as transmit sends them and a dry run shows them. Pure."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from dataplane.causes import Cause
from dataplane.ledger.meta import CONTENT_TYPE, Headers, MessageMeta
from dataplane.ledger.traceparent import TRACEPARENT
from dataplane.ledger.units import format_position
from dataplane.plan.stage import StageError
from dataplane.spec import (
    DestinationSpec,
    HttpDestination,
    PostgresDestination,
    S3Destination,
    TableDestination,
    sends_original,
)
from dataplane.spec.header_text import percent_encoded
from dataplane.spec.loops import HOPS_HEADER

_STANDARD_HEADERS: Final = ("Expect:", "User-Agent: Penstock/1")  # no `Expect: 100-continue`, which costs a round trip
MAX_VALUE_BYTES: Final = 8 * 1024  # of a header; ingest accepts only shorter ones
_ATTRIBUTE: Final = re.compile(r"[a-z0-9._-]{1,64}")


def address_of(to: DestinationSpec) -> str:
    """Return a destination's URL, or a description if Penstock stores it itself."""
    match to:
        case HttpDestination(url):
            return url
        case S3Destination(url, prefix=prefix):
            return f"{url.rstrip('/')}/{prefix}"
        case PostgresDestination(host, database, table=table, port=port, schema=schema):
            return f"postgresql://{host}:{port}/{database} {schema}.{table}"
        case TableDestination(table):
            return f"look-up table {table}"
    return str(to.__struct_config__.tag)


def fixed_headers(to: DestinationSpec) -> list[str]:
    """Return the header lines that every message has. A name without a value makes libcurl omit that header."""
    return [*_STANDARD_HEADERS, *(f"{name}: {value}" for name, value in to.headers.items())]


def message_headers(fixed: Sequence[str], meta: MessageMeta, carried: Headers, now_s: int, signature: str) -> list[str]:
    """Return the lines of Standard Webhooks, our position, CloudEvents attributes and the content's own type.

    `carried` are the message's headers as Kafka has them. Raises StageError `header-invalid` for an attribute name
    that could inject another header or request; ingest refuses such names already, this is the second check.
    """
    headers = [
        *fixed,
        f"webhook-id: {meta.id}",
        f"webhook-timestamp: {now_s}",
        f"penstock-position: {format_position(meta.position)}",
        f"{HOPS_HEADER}: {meta.hops + 1}",
    ]
    if signature:
        headers.append(f"webhook-signature: {signature}")
    content_type = "application/json"
    for name, value in carried:
        if name == CONTENT_TYPE:
            content_type = ascii_value(value)
        elif name.startswith("ce_"):
            headers.append(f"{_attribute_header(name)}: {ascii_value(value)}")
        elif name == TRACEPARENT:
            headers.append(f"{TRACEPARENT}: {ascii_value(value)}")
    headers.append(f"Content-Type: {content_type}")
    return headers


def forwarded_headers(to: DestinationSpec, meta: MessageMeta) -> list[str]:
    """Return the lines of the original request that the destination asks for and the message has."""
    if not (isinstance(to, HttpDestination) and to.forward_headers):
        return []
    kept = meta.request_headers
    return [
        f"{name}: {ascii_value(kept[name.lower()].encode())}" for name in to.forward_headers if name.lower() in kept
    ]


def with_original(to: DestinationSpec, meta: MessageMeta, body: bytes, carried: Headers) -> tuple[bytes, Headers]:
    """Return the body to send and the carried headers: those of the original body if the destination gets it."""
    if meta.original is None or not sends_original(to):
        return body, carried
    return meta.original.content, [(CONTENT_TYPE, meta.original.content_type.encode()), *as_json(carried)]


def original_note(to: DestinationSpec) -> str:
    """Return the note on bodies that a destination gets as they were received; "" for all other destinations."""
    if not sends_original(to):
        return ""
    return "a form or XML is sent as it was received, with its content type; its JSON is shown"


@lru_cache(maxsize=4_096)
def _attribute_header(name: str) -> str:
    attribute = name.removeprefix("ce_")
    if not _ATTRIBUTE.fullmatch(attribute):
        raise StageError(Cause.HEADER_INVALID, f"the attribute {attribute[:40]!r} is not a valid header name")
    return f"ce-{attribute}"


def as_json(carried: Headers) -> Headers:
    """Return the carried headers without content-type, for a body that was re-encoded as JSON."""
    return [header for header in carried if header[0] != CONTENT_TYPE]


def ascii_value(value: bytes) -> str:
    """Return a header's value in printable ASCII, the rest percent-encoded (CloudEvents' HTTP binding, 3.1.3.2).

    Raises StageError `header-invalid` for a value longer than MAX_VALUE_BYTES.
    """
    if len(value) > MAX_VALUE_BYTES:
        raise StageError(Cause.HEADER_INVALID, f"a header needs at most {MAX_VALUE_BYTES} bytes, got {len(value)}")
    return percent_encoded(value)
