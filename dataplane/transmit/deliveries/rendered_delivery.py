"""Render an attempt: its URL, its headers with signature and credentials, and its body."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from dataplane.ledger.meta import REPLAY_HEADER, Headers, MessageMeta
from dataplane.plan.outbound import as_json, forwarded_headers, message_headers, with_original
from dataplane.spec import BatchSettings, HttpDestination, S3Destination
from dataplane.spec.loops import HOPS_HEADER
from dataplane.transmit.deliveries.batches import CONTENT_TYPES, batch_body, batch_id
from dataplane.transmit.deliveries.delivery import Delivery
from dataplane.transmit.deliveries.objects import object_body, object_headers, object_url
from dataplane.transmit.destinations.targets import DestinationTarget
from dataplane.transmit.http.signature import sign


class RenderedDelivery(Struct, gc=False):
    """URL, header lines and body of one attempt."""

    url: str
    headers: list[str]
    body: bytes


def batch_request_of(target: DestinationTarget, members: Sequence[Delivery], now_s: int) -> RenderedDelivery:
    """Render an attempt of several messages; `now_s` is the Unix time. Raises ValueError if the spec has no batch."""
    match target.record.to:
        case S3Destination() as to:
            headers = [*target.fixed_headers, *object_headers(to, members)]
            return RenderedDelivery(object_url(to, members), headers, object_body(to, members))
        case HttpDestination(url=url, batch=BatchSettings(format=format_)):
            body = batch_body(members, format_)
            return RenderedDelivery(url, _batch_headers(target, members, body, CONTENT_TYPES[format_], now_s), body)
    raise ValueError(f"{target.record.name} has no batch")


def _batch_headers(
    target: DestinationTarget, members: Sequence[Delivery], body: bytes, content_type: str, now_s: int
) -> list[str]:
    """Return the header lines of a batch request; `now_s` is the Unix time that is signed."""
    id_ = batch_id([send.meta.id for send in members])
    headers = [
        *_fixed(target),
        f"webhook-id: {id_}",
        f"webhook-timestamp: {now_s}",
        f"penstock-batch: {len(members)}",
        *_replay_line(members[0].meta),
        f"{HOPS_HEADER}: {max(send.meta.hops for send in members) + 1}",
        f"Content-Type: {content_type}",
    ]
    if target.signers:
        headers.append(f"webhook-signature: {sign(target.signers, id_, now_s, body)}")
    return headers


def request_of(send: Delivery, carried: Headers, now_s: int) -> RenderedDelivery:
    """Render an attempt of one message; `carried` are the message's headers, `now_s` is the Unix time.

    Each attempt has a signature of its own, because the timestamp is signed, too. Raises StageError if the
    destination's template cannot render the message, or the message does not fit the schema of its encoding.
    """
    meta, target = send.meta, send.target
    url, fixed, body = target.record.to.url, _fixed(target), send.body
    if meta.replay:
        fixed = [*fixed, *_replay_line(meta)]
    if meta.request_headers:
        fixed = [*fixed, *forwarded_headers(target.record.to, meta)]
    if meta.original is not None:
        body, carried = with_original(target.record.to, meta, body, carried)
    if target.template is not None:
        rendered = target.template(meta, send.body)
        url, fixed = rendered.url, [*fixed, *rendered.headers]
        body, carried = (body, carried) if rendered.body is None else (rendered.body, as_json(carried))
    if target.encoder is not None:
        body, carried = target.encoder(body), target.encoder.carried(carried)
        fixed = [*fixed, *target.encoder.lines]
    signature = sign(target.signers, meta.id, now_s, body) if target.signers else ""
    return RenderedDelivery(url, message_headers(fixed, meta, carried, now_s, signature), body)


def _replay_line(meta: MessageMeta) -> list[str]:
    """Return the header line by which a receiver recognises a copy that a replay made; none for an original."""
    return [f"{REPLAY_HEADER}: {meta.replay}"] if meta.replay else []


RequestOf = Callable[[Delivery, Headers, int], RenderedDelivery]


def _fixed(target: DestinationTarget) -> Sequence[str]:
    return target.fixed_headers if target.tokens is None else [*target.fixed_headers, target.tokens.header]
