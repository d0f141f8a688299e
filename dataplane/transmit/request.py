"""The headers of one attempt: Standard Webhooks, the content's own type, CloudEvents attributes, our position."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote_from_bytes

from dataplane.ledger.units import format_position
from dataplane.transmit.batches import batch_id
from dataplane.transmit.sends import Send
from dataplane.transmit.signature import sign
from dataplane.transmit.targets import Target

_PRINTABLE: Final = "".join(map(chr, range(32, 127)))


def batch_headers(target: Target, members: Sequence[Send], body: bytes, content_type: str, now_s: int) -> list[str]:
    """The headers of one attempt of several messages."""
    id_ = batch_id([send.meta.id for send in members])
    headers = [
        *target.fixed_headers,
        f"webhook-id: {id_}",
        f"webhook-timestamp: {now_s}",
        f"penstock-batch: {len(members)}",
        f"Content-Type: {content_type}",
    ]
    if target.signers:
        headers.append(f"webhook-signature: {sign(target.signers, id_, now_s, body)}")
    if target.tokens is not None:
        headers.append(target.tokens.header)
    return headers


def request_headers(send: Send, now_s: int) -> list[str]:
    """The headers of one attempt. Signed anew each time: the timestamp is part of what is signed."""
    meta, target = send.meta, send.target
    headers = [
        *target.fixed_headers,
        f"webhook-id: {meta.id}",
        f"webhook-timestamp: {now_s}",
        f"penstock-position: {format_position(meta.position)}",
    ]
    if target.signers:
        headers.append(f"webhook-signature: {sign(target.signers, meta.id, now_s, send.body)}")
    if target.tokens is not None:
        headers.append(target.tokens.header)
    content_type = "application/json"
    for name, value in send.headers:
        if name == "content-type":
            content_type = _plain(value)
        elif name.startswith("ce_"):
            headers.append(f"ce-{name[3:]}: {_plain(value)}")
        elif name == "traceparent":
            headers.append(f"traceparent: {_plain(value)}")
    headers.append(f"Content-Type: {content_type}")
    return headers


def _plain(value: bytes) -> str:
    """A header's value in ASCII: other text percent-encoded, as CloudEvents' HTTP binding wants it (3.1.3.2)."""
    return value.decode() if value.isascii() else quote_from_bytes(value, safe=_PRINTABLE)
