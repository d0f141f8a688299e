"""The headers of one attempt: Standard Webhooks, the content's own type, CloudEvents attributes, our position."""

from dataplane.ledger.units import format_position
from dataplane.transmit.sends import Send
from dataplane.transmit.signature import sign


def request_headers(send: Send, now_s: int) -> list[str]:
    """The headers of one attempt. Signed anew each time: the timestamp is part of what is signed."""
    meta, target = send.meta, send.target
    headers = [
        *target.fixed_headers,
        f"webhook-id: {meta.id}",
        f"webhook-timestamp: {now_s}",
        f"penstock-position: {format_position(meta.position)}",
    ]
    if target.keys:
        headers.append(f"webhook-signature: {sign(target.keys, meta.id, now_s, send.body)}")
    content_type = "application/json"
    for name, value in send.headers:
        if name == "content-type":
            content_type = value.decode("latin-1")
        elif name.startswith("ce_"):
            headers.append(f"ce-{name[3:]}: {value.decode('latin-1')}")
        elif name == "traceparent":
            headers.append(f"traceparent: {value.decode('latin-1')}")
    headers.append(f"Content-Type: {content_type}")
    return headers
