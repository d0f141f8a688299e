"""From a request's body to events: single, JSON array, NDJSON, CloudEvents (structured, binary, batch). Pure."""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from dataplane.ingest.problems import RefusalError
from dataplane.ingest.strictjson import parse, parse_all
from dataplane.ledger.meta import Headers
from dataplane.ledger.traceparent import carrying, is_traceparent

MAX_EVENTS: Final = 10_000
CE_PREFIX: Final = "ce_"  # CloudEvents Kafka protocol binding 1.0, binary mode
_ATTRIBUTE: Final = re.compile(r"[a-z0-9._-]{1,64}")
_raw_list = msgspec.json.Decoder(list[Raw]).decode
_raw_object = msgspec.json.Decoder(dict[str, Raw]).decode


class Origin(Struct, frozen=True):
    """Where an event lies that was read, not posted: the id made of its place, and the key it has there."""

    id: str
    key: str | None


class Event(Struct, gc=False):
    """One event: the payload's bytes as received, its decoded form if it is JSON, and the headers it carries on.

    time: the event's own time by its envelope (CloudEvents, or Kafka's record), if it has one
    """

    body: bytes
    value: Any
    headers: Headers
    time: Any = None
    origin: Origin | None = None


Item = Event | RefusalError
_JSON: Final[Headers] = [("content-type", b"application/json")]


def read_events(media_type: str, body: bytes, ce: Mapping[str, str]) -> tuple[list[Item], bool]:
    """The events of a request, each an Event or the RefusalError it met, and whether it was a batch.

    `ce` holds the ce-* headers without the prefix. Raises RefusalError if the request as a whole cannot be read.
    """
    if "specversion" in ce:
        return [_binary(media_type, body, ce)], False
    reader = _READERS.get(media_type.partition(";")[0].strip().lower())
    if reader is None:
        raise RefusalError(415, "media-type", f"needs one of {', '.join(_READERS)}, got {media_type[:80] or 'none'}")
    items, is_batch = reader(body)
    if len(items) > MAX_EVENTS:
        raise RefusalError(413, "too-many-events", f"needs at most {MAX_EVENTS} events in a request, got {len(items)}")
    return items, is_batch


def carry_trace(items: Iterable[Item], traceparent: str) -> None:
    """Let the events of a request carry on the sender's trace. What is no `traceparent` of W3C is left out."""
    if not is_traceparent(traceparent):
        return
    for item in items:
        if isinstance(item, Event):
            item.headers = carrying(item.headers, traceparent)  # a new list: the old one may be that of many events


def _json(body: bytes) -> tuple[list[Item], bool]:
    if body.lstrip(b" \t\r\n")[:1] == b"[":
        items = _split(body)
        values = parse_all(body, items)
        if values is None:
            return [_attempt(_plain_json, item) for item in items], True
        return [Event(item, value, _JSON) for item, value in zip(items, values, strict=True)], True
    return [_plain_json(body)], False


def _ndjson(body: bytes) -> tuple[list[Item], bool]:
    lines = [line for line in body.splitlines() if line.strip()]
    if not lines:
        raise RefusalError(400, "json-invalid", "needs at least one line of JSON, got none (byte 0)")
    return [_attempt(_plain_json, line) for line in lines], True


def _plain_json(body: bytes) -> Event:
    return Event(body, parse(body), _JSON)


def _cloudevent(body: bytes) -> tuple[list[Item], bool]:
    return [_structured(body)], False


def _cloudevents(body: bytes) -> tuple[list[Item], bool]:
    return [_attempt(_structured, raw) for raw in _split(body)], True


_READERS: Final[dict[str, Callable[[bytes], tuple[list[Item], bool]]]] = {
    "application/json": _json,
    "application/x-ndjson": _ndjson,
    "application/cloudevents+json": _cloudevent,
    "application/cloudevents-batch+json": _cloudevents,
}


def _attempt(read: Callable[[bytes], Event], body: bytes) -> Item:
    try:
        return read(body)
    except RefusalError as refusal:
        return refusal


def _split(body: bytes) -> list[bytes]:
    """The items of a JSON array as they were sent."""
    try:
        return [bytes(raw) for raw in _raw_list(body)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise RefusalError(400, "json-invalid", f"the batch is not a JSON array: {exc}") from exc


def _structured(body: bytes) -> Event:
    envelope = parse(body)
    if not isinstance(envelope, dict):
        raise RefusalError(400, "cloudevent-invalid", "needs a JSON object")
    data, content_type = _data(body, envelope)
    attributes = {k: v for k, v in envelope.items() if k not in ("data", "data_base64", "datacontenttype")}
    value = envelope.get("data")
    return Event(data, value, _ce_headers(attributes, content_type), attributes.get("time"))


def _data(body: bytes, envelope: Mapping[str, Any]) -> tuple[bytes, str]:
    content_type = str(envelope.get("datacontenttype", "application/json"))
    if "data_base64" in envelope:
        try:
            return base64.b64decode(str(envelope["data_base64"]), validate=True), content_type
        except binascii.Error as exc:
            raise RefusalError(400, "cloudevent-invalid", "data_base64 is not base64") from exc
    return bytes(_raw_object(body).get("data", Raw(b"null"))), content_type


def _binary(media_type: str, body: bytes, ce: Mapping[str, str]) -> Event:
    is_json = media_type.partition(";")[0].strip().lower() in ("", "application/json") or media_type.endswith("+json")
    value = parse(body) if is_json else None
    return Event(body, value, _ce_headers(ce, media_type or "application/json"), ce.get("time"))


def _ce_headers(attributes: Mapping[str, Any], content_type: str) -> Headers:
    """Raises RefusalError if a required attribute is missing or one has no plain value."""
    for name in ("specversion", "id", "source", "type"):
        if not attributes.get(name):
            raise RefusalError(400, "cloudevent-invalid", f"needs the attribute {name}")
    for name in attributes:
        if not _ATTRIBUTE.fullmatch(name):  # it becomes a header's name at Kafka and at destinations
            raise RefusalError(400, "cloudevent-invalid", "attribute names need 1-64 of a-z, 0-9, '.', '_' and '-'")
    headers: Headers = [("content-type", _plain(content_type, "datacontenttype"))]
    headers += [(CE_PREFIX + name, _plain(value, name)) for name, value in attributes.items() if value is not None]
    return headers


def _plain(value: Any, name: str) -> bytes:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(value, dict | list) or any(ord(c) < 32 or ord(c) == 127 for c in text) or len(text) > 1_024:
        raise RefusalError(400, "cloudevent-invalid", f"the attribute {name[:40]!r} needs a plain value")
    return text.encode()
