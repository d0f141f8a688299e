"""What one attempt sends: its headers, signed and with what signs us in, its URL and its body."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dataplane.ledger.meta import Headers
from dataplane.plan.outbound import as_json, message_headers
from dataplane.spec.loops import HOPS_HEADER
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
        f"{HOPS_HEADER}: {max(send.meta.hops for send in members) + 1}",
        f"Content-Type: {content_type}",
    ]
    if target.signers:
        headers.append(f"webhook-signature: {sign(target.signers, id_, now_s, body)}")
    return headers


class Request(NamedTuple):
    """One attempt of one message: where to, and what."""

    url: str
    headers: list[str]
    body: bytes


def request_of(send: Send, carried: Headers, now_s: int) -> Request:
    """What to send, with the headers that the message carries. Signed anew each time: the timestamp is signed, too.

    Raises StageError if the destination's template makes nothing of the message.
    """
    meta, target = send.meta, send.target
    url, fixed, body = target.record.to.url, _fixed(target), send.body
    if target.template is not None:
        made = target.template(meta, body)
        url, fixed = made.url, [*fixed, *made.headers]
        body, carried = (body, carried) if made.body is None else (made.body, as_json(carried))
    signature = sign(target.signers, meta.id, now_s, body) if target.signers else ""
    return Request(url, message_headers(fixed, meta, carried, now_s, signature), body)


RequestOf = Callable[[Send, Headers, int], Request]


def _fixed(target: Target) -> Sequence[str]:
    return target.fixed_headers if target.tokens is None else [*target.fixed_headers, target.tokens.header]
