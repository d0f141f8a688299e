"""Batch requests: which messages to send together, their body, and each message's status in the response. Pure."""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from dataplane.ledger.units import format_position
from dataplane.spec import BatchLimits
from dataplane.stages.decoding import decode_json
from dataplane.transmit.deliveries.delivery import Delivery

CONTENT_TYPES: Final = {
    "json-array": "application/json",
    "ndjson": "application/x-ndjson",
    "cloudevents": "application/cloudevents-batch+json",
}
ITEM_BYTES: Final = 256  # of an answer, for each member: enough for a status, an id and a short text
_BREAKS: Final = bytes.maketrans(b"\n\r", b"  ")  # whitespace between JSON tokens: strings escape theirs
_encode = msgspec.json.Encoder().encode
_raw = msgspec.json.Decoder(msgspec.Raw)


def next_batch(queue: Iterable[Delivery], batch: BatchLimits, now_s: float) -> list[Delivery]:
    """Return the members of the next request in the queue's order, or [] while waiting for more is allowed.

    They are the first messages of the queue that one replay made, or that are originals: a copy is in no request with
    its original. Messages that were sent together are sent together again, so that the request keeps its id.
    """
    groups: dict[str, _BatchMembers] = {}
    for send in queue:
        group = groups.get(send.meta.replay)
        if group is None:
            group = groups[send.meta.replay] = _BatchMembers()
        if not group.add(send, batch):
            break
    for group in groups.values():
        if group.is_due(batch, now_s):
            return group.members
    return []


class _BatchMembers:
    """First messages of the queue that may be in one request."""

    def __init__(self) -> None:
        self.members: list[Delivery] = []
        self._size = 0
        self._is_full = False

    def add(self, send: Delivery, batch: BatchLimits) -> bool:
        """Add a message; return False if there is no room for it."""
        members, size = self.members, self._size + len(send.body)
        if members and (
            len(members) >= batch.max_events or size > batch.max_bytes or send.together != members[0].together
        ):
            self._is_full = True
            return False
        members.append(send)
        self._size = size
        return True

    def is_due(self, batch: BatchLimits, now_s: float) -> bool:
        """Return True if the request must not wait for more messages."""
        members = self.members
        waited = now_s - members[0].taken_s >= batch.max_wait_ms / 1_000
        is_complete = len(members) >= batch.max_events or self._size >= batch.max_bytes
        return self._is_full or waited or bool(members[0].together) or is_complete


def batch_id(ids: Sequence[str]) -> str:
    """Return the name of a batch, such as its webhook-id: the same for the same members in the same order."""
    return "batch_" + hashlib.sha256("\n".join(ids).encode()).hexdigest()[:32]


def batch_body(members: Sequence[Delivery], format_: str) -> bytes:
    """Return the body of a batch. A message that is not JSON is included as text, or as base64 (see CloudEvents)."""
    match format_:
        case "ndjson":
            return b"".join(_json_of(send.body).translate(_BREAKS) + b"\n" for send in members)
        case "cloudevents":
            return b"[" + b",".join(map(_cloudevent, members)) + b"]"
    return b"[" + b",".join(_json_of(send.body) for send in members) + b"]"


def read_items(body: bytes, ids: Sequence[str]) -> list[int] | None:
    """Return the status of each member from the response's body, or None if it reports no items.

    Accepted are `[...]` and `{"items": [...]}` with one entry per member: `{"status": 200}` or, as in bulk APIs,
    `{"index": {"status": 200}}`. Entries are in the order of the batch, or in any order with `"id"`; then members
    without an entry count as 200.
    """
    try:
        answer = decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    entries = answer.get("items") if isinstance(answer, dict) else answer
    if not isinstance(entries, list) or not entries:
        return None
    items = [_inner(entry) for entry in entries]
    statuses = [entry.get("status") for entry in items]
    if not all(type(status) is int and 100 <= status <= 599 for status in statuses):
        return None
    names, known = [entry.get("id") for entry in items], frozenset(ids)
    if all(isinstance(name, str) and name in known for name in names):
        by_id = dict(zip(names, statuses, strict=True))
        return [int(by_id.get(id_) or 200) for id_ in ids]
    return [int(status or 0) for status in statuses] if len(statuses) == len(ids) else None


def _inner(entry: Any) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        return {}
    if "status" not in entry and len(entry) == 1:
        inner = next(iter(entry.values()))
        return inner if isinstance(inner, dict) else {}
    return entry


def _is_json(body: bytes) -> bool:
    try:
        _raw.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _json_of(body: bytes) -> bytes:
    if _is_json(body):
        return body
    try:
        return _encode(body.decode())
    except UnicodeDecodeError:
        return _encode({"data_base64": base64.b64encode(body).decode()})


def _cloudevent(send: Delivery) -> bytes:
    """Return a message as JSON (CloudEvents 1.0, structured mode): its own attributes, or those that we know."""
    meta = send.meta
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": meta.id,
        "source": f"/pipes/{meta.pipe}/{meta.source}",
        "type": "penstock.event",
    }
    for name, value in send.carried:
        if name.startswith("ce_"):
            event[name[3:]] = value.decode("utf-8", "replace")
        elif name == "content-type":
            event["datacontenttype"] = value.decode("latin-1")
    event["penstockid"], event["penstockposition"] = meta.id, format_position(meta.position)
    if _is_json(send.body):
        event["data"] = msgspec.Raw(send.body)
    else:
        event["data_base64"] = base64.b64encode(send.body).decode()
    return _encode(event)
