"""The headers of one attempt, signed and with what signs us in."""

from collections.abc import Sequence

from dataplane.plan.outbound import message_headers
from dataplane.transmit.batches import batch_id
from dataplane.transmit.sends import Send
from dataplane.transmit.signature import sign
from dataplane.transmit.targets import Target


def batch_headers(target: Target, members: Sequence[Send], body: bytes, content_type: str, now_s: int) -> list[str]:
    """The headers of one attempt of several messages."""
    id_ = batch_id([send.meta.id for send in members])
    headers = [
        *_fixed(target),
        f"webhook-id: {id_}",
        f"webhook-timestamp: {now_s}",
        f"penstock-batch: {len(members)}",
        f"Content-Type: {content_type}",
    ]
    if target.signers:
        headers.append(f"webhook-signature: {sign(target.signers, id_, now_s, body)}")
    return headers


def request_headers(send: Send, now_s: int) -> list[str]:
    """The headers of one attempt. Signed anew each time: the timestamp is part of what is signed."""
    meta, target = send.meta, send.target
    signature = sign(target.signers, meta.id, now_s, send.body) if target.signers else ""
    return message_headers(_fixed(target), meta, send.headers, now_s, signature)


def _fixed(target: Target) -> Sequence[str]:
    return target.fixed_headers if target.tokens is None else [*target.fixed_headers, target.tokens.header]
