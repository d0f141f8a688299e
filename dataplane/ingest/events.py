"""From a request's body to events: single, JSON array, NDJSON, CloudEvents (structured, binary, batch). Pure.

What senders choose is bounded before it is decoded: the number of events, the bytes of each, the attributes.
"""

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from dataplane.ingest.problems import RefusalError
from dataplane.ingest.strictjson import parse, parse_all
from dataplane.ledger.meta import Headers
from dataplane.ledger.traceparent import carrying, is_traceparent

MAX_EVENTS: Final = 10_000
MAX_ATTRIBUTES: Final = 100  # of a CloudEvent, as many as a request may have headers
MAX_ATTRIBUTE_CHARS: Final = 1_024
CE_PREFIX: Final = "ce_"  # CloudEvents Kafka protocol binding 1.0, binary mode
GROUP_BYTES: Final = 64 * 1024  # items of a batch that are decoded together, in about a millisecond
_ATTRIBUTE: Final = re.compile(r"[a-z0-9._-]{1,64}")
_LINE: Final = re.compile(rb"[^ \t\r\n].*")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")
_raw_list = msgspec.json.Decoder(list[Raw]).decode
_raw_object = msgspec.json.Decoder(dict[str, Raw]).decode
# Reads MAX_EVENTS + 1 items of an array as fields, and skips the rest: a list of them all would be built first.
_Limited: Final = msgspec.defstruct(
    "_Limited", [(f"_{number}", Raw, Raw()) for number in range(MAX_EVENTS + 1)], array_like=True
)
_limited_list = msgspec.json.Decoder(_Limited).decode


class Origin(Struct, frozen=True):
    """Where an event lies that was read, not posted: the id made of its place, and the key it has there."""

    id: str
    key: str | None


class Event(Struct, gc=False):
    """One event: the payload's bytes as received, its decoded form if it is JSON, and the headers it carries on.

    hops: how often Penstock has delivered it before
    time: the event's own time by its envelope (CloudEvents, or Kafka's record), if it has one
    """

    body: bytes
    value: Any
    headers: Headers
    time: Any = None
    origin: Origin | None = None
    hops: int = 0


Item = Event | RefusalError
_JSON: Final[Headers] = [("content-type", b"application/json")]


class RequestEvents(Struct):
    """The events of one request. `items` decodes each when it is asked for: only a few are in memory at a time."""

    items: Iterator[Item]
    count: int
    is_batch: bool


def read_events(media_type: str, body: bytes, ce: Mapping[str, str], max_event_bytes: int) -> RequestEvents:
    """Return the events of a request, each an Event or the RefusalError it met.

    `ce` holds the ce-* headers without the prefix; `max_event_bytes` bounds each event before it is decoded.
    Raises RefusalError if the request as a whole cannot be read.
    """
    if "specversion" in ce:
        return _single(_binary(media_type, body, ce, max_event_bytes))
    reader = _READERS.get(media_type.partition(";")[0].strip().lower())
    if reader is None:
        raise RefusalError(415, "media-type", f"needs one of {', '.join(_READERS)}, got {media_type[:80] or 'none'}")
    return reader(body, max_event_bytes)


def carry_trace(items: Iterable[Item], traceparent: str) -> Iterable[Item]:
    """Let the events of a request carry the sender's trace. What is no `traceparent` of W3C is left out."""
    return _carrying(items, traceparent) if is_traceparent(traceparent) else items


def _carrying(items: Iterable[Item], traceparent: str) -> Iterator[Item]:
    for item in items:
        if isinstance(item, Event):
            item.headers = carrying(item.headers, traceparent)  # a new list: the old one may be that of many events
        yield item


def carry_hops(items: Iterable[Item], hops: int) -> Iterable[Item]:
    """Let the events of a request carry how often Penstock has delivered them before."""
    return _with_hops(items, hops) if hops else items


def _with_hops(items: Iterable[Item], hops: int) -> Iterator[Item]:
    for item in items:
        if isinstance(item, Event):
            item.hops = hops
        yield item


def _json(body: bytes, max_event_bytes: int) -> RequestEvents:
    if body.lstrip(b" \t\r\n")[:1] == b"[":
        return _batch(_split(body), _read_json, max_event_bytes)
    return _single(_plain_json(body, max_event_bytes))


def _ndjson(body: bytes, max_event_bytes: int) -> RequestEvents:
    lines: list[bytes] = []
    for found in _LINE.finditer(body):
        if len(lines) == MAX_EVENTS:
            raise _too_many_events()
        lines.append(found[0].rstrip(b"\r"))
    if not lines:
        raise RefusalError(400, "json-invalid", "needs at least one line of JSON, got none (byte 0)")
    return _batch(lines, _read_json, max_event_bytes)


def _cloudevent(body: bytes, max_event_bytes: int) -> RequestEvents:
    return _single(_structured(body, max_event_bytes))


def _cloudevents(body: bytes, max_event_bytes: int) -> RequestEvents:
    return _batch(_split(body), _read_structured, max_event_bytes)


_READERS: Final[dict[str, Callable[[bytes, int], RequestEvents]]] = {
    "application/json": _json,
    "application/x-ndjson": _ndjson,
    "application/cloudevents+json": _cloudevent,
    "application/cloudevents-batch+json": _cloudevents,
}


def _single(event: Event) -> RequestEvents:
    return RequestEvents(iter([event]), 1, False)


def _batch(
    texts: Sequence[bytes], read: Callable[[Sequence[bytes], int], Iterator[Item]], max_event_bytes: int
) -> RequestEvents:
    return RequestEvents(read(texts, max_event_bytes), len(texts), True)


def _read_json(texts: Sequence[bytes], max_event_bytes: int) -> Iterator[Item]:
    for group in _groups(texts):
        values = parse_all(group) if max(map(len, group)) <= max_event_bytes else None
        if values is None:
            yield from (_attempt(_plain_json, text, max_event_bytes) for text in group)
        else:
            for text, value in zip(group, values, strict=True):
                yield Event(text, value, _JSON)


def _read_structured(texts: Sequence[bytes], max_event_bytes: int) -> Iterator[Item]:
    return (_attempt(_structured, text, max_event_bytes) for text in texts)


def _groups(texts: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Cut into runs of about GROUP_BYTES."""
    begin = size_bytes = 0
    for number, text in enumerate(texts):
        size_bytes += len(text)
        if size_bytes >= GROUP_BYTES:
            yield texts[begin : number + 1]
            begin, size_bytes = number + 1, 0
    if begin < len(texts):
        yield texts[begin:]


def _attempt(read: Callable[[bytes, int], Event], body: bytes, max_event_bytes: int) -> Item:
    try:
        return read(body, max_event_bytes)
    except RefusalError as refusal:
        return refusal


def _plain_json(body: bytes, max_event_bytes: int) -> Event:
    refuse_large(body, max_event_bytes)
    return Event(body, parse(body), _JSON)


def refuse_large(body: bytes, max_event_bytes: int) -> None:
    """Raise RefusalError `event-too-large` for an event of more bytes than one may have."""
    if len(body) > max_event_bytes:
        raise RefusalError(413, "event-too-large", f"needs at most {max_event_bytes} bytes an event, got {len(body)}")


def _too_many_events() -> RefusalError:
    return RefusalError(413, "too-many-events", f"needs at most {MAX_EVENTS} events in a request, got more")


def _split(body: bytes) -> list[bytes]:
    """Return the items of a JSON array as they were sent. Raises RefusalError."""
    try:
        if body.count(b",") < MAX_EVENTS:
            return [bytes(raw) for raw in _raw_list(body)]
        items = [bytes(raw) for raw in msgspec.structs.astuple(_limited_list(body)) if raw]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise RefusalError(400, "json-invalid", f"the batch is not a JSON array: {exc}") from exc
    if len(items) > MAX_EVENTS:
        raise _too_many_events()
    return items


def _structured(body: bytes, max_event_bytes: int) -> Event:
    if len(body) > max_event_bytes * 4 // 3 + MAX_ATTRIBUTES * MAX_ATTRIBUTE_CHARS:  # data may be in base64
        refuse_large(body, max_event_bytes)
    envelope = parse(body)
    if not isinstance(envelope, dict):
        raise RefusalError(400, "cloudevent-invalid", "needs a JSON object")
    attributes = {k: v for k, v in envelope.items() if k not in ("data", "data_base64", "datacontenttype")}
    headers = _ce_headers(attributes, envelope.get("datacontenttype") or "application/json")
    data = _data(body, envelope)
    refuse_large(data, max_event_bytes)
    return Event(data, envelope.get("data"), headers, attributes.get("time"))


def _data(body: bytes, envelope: Mapping[str, Any]) -> bytes:
    if "data_base64" not in envelope:
        return bytes(_raw_object(body).get("data", Raw(b"null")))
    try:
        return base64.b64decode(envelope["data_base64"], validate=True)
    except (TypeError, ValueError) as exc:
        raise RefusalError(400, "cloudevent-invalid", "data_base64 is not base64") from exc


def _binary(media_type: str, body: bytes, ce: Mapping[str, str], max_event_bytes: int) -> Event:
    refuse_large(body, max_event_bytes)
    is_json = media_type.partition(";")[0].strip().lower() in ("", "application/json") or media_type.endswith("+json")
    value = parse(body) if is_json else None
    return Event(body, value, _ce_headers(ce, media_type or "application/json"), ce.get("time"))


def _ce_headers(attributes: Mapping[str, Any], content_type: Any) -> Headers:
    """Raises RefusalError if a required attribute is missing, one has no plain value, or there are too many."""
    if len(attributes) > MAX_ATTRIBUTES:
        raise RefusalError(400, "cloudevent-invalid", f"needs at most {MAX_ATTRIBUTES} attributes, got more")
    for name in ("specversion", "id", "source", "type"):
        if not attributes.get(name):
            raise RefusalError(400, "cloudevent-invalid", f"needs the attribute {name}")
    for name in attributes:
        if not is_attribute_name(name):
            raise RefusalError(400, "cloudevent-invalid", "attribute names need 1-64 of a-z, 0-9, '.', '_' and '-'")
    headers: Headers = [("content-type", _plain(content_type, "datacontenttype"))]
    headers += [(CE_PREFIX + name, _plain(value, name)) for name, value in attributes.items() if value is not None]
    return headers


def is_attribute_name(name: str) -> bool:
    """Return whether an attribute may have this name: it becomes a header's at Kafka and at destinations."""
    return _ATTRIBUTE.fullmatch(name) is not None


def is_attribute_value(text: str) -> bool:
    """Return whether an attribute may have this value, for the same reason."""
    return len(text) <= MAX_ATTRIBUTE_CHARS and _CONTROLS.search(text) is None


def _plain(value: Any, name: str) -> bytes:
    if not isinstance(value, dict | list):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if is_attribute_value(text):
            return text.encode()
    raise RefusalError(400, "cloudevent-invalid", f"the attribute {name[:40]!r} needs a plain value")
