"""Read the events of a request's body: single, JSON array, NDJSON, CloudEvents (structured, binary, batch), Avro. Pure.

Everything that senders choose is limited before it is decoded: the number of events, the bytes of each, the attributes.
"""

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from dataplane.ingest.problems import EventRejectedError
from dataplane.ingest.strictjson import parse, parse_all
from dataplane.ledger.meta import CE_PREFIX, CONTENT_TYPE, Headers, OriginalBody
from dataplane.ledger.traceparent import carrying, is_traceparent
from dataplane.schemas.wire import MEDIA_TYPES, Framing, framing_of, is_avro_type

MAX_EVENTS: Final = 10_000
MAX_ATTRIBUTES: Final = 100  # of a CloudEvent; equals the limit on request headers
MAX_ATTRIBUTE_CHARS: Final = 1_024
GROUP_BYTES: Final = 64 * 1024  # items of a batch that are decoded together, in about a millisecond
_ATTRIBUTE: Final = re.compile(r"[a-z0-9._-]{1,64}")
_LINE: Final = re.compile(rb"[^ \t\r\n].*")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")
_raw_list = msgspec.json.Decoder(list[Raw]).decode
_raw_object = msgspec.json.Decoder(dict[str, Raw]).decode
# Reads MAX_EVENTS + 1 items of an array as fields and skips the rest; a list decoder would build all of them first.
_Limited: Final = msgspec.defstruct(
    "_Limited", [(f"_{number}", Raw, Raw()) for number in range(MAX_EVENTS + 1)], array_like=True
)
_limited_list = msgspec.json.Decoder(_Limited).decode


class RecordOrigin(Struct, frozen=True):
    """Origin of an event that was read from Kafka: the id made of its partition and offset, and its key there."""

    id: str
    key: str | None


class ReceivedEvent(Struct, gc=False):
    """One event: the payload's bytes as received, its decoded form if it is JSON, and the headers that it carries on.

    hops: the number of earlier deliveries by Penstock
    time: the event's own time by its envelope (CloudEvents, or Kafka's record), if it has one
    schema: version of a subject that the event fits, as `<subject>@<number>`; "" if it has not been checked
    misfit: why a record of a Kafka source does not fit its event types; "" for all others
    type_header: text of the header that names the event's type; "" if there is none or a CloudEvents attribute does
    idempotency_key: the sender's own id of the delivery; "" if it named none
    request_headers: headers that it keeps of its request, by name in lower case
    original: the form or XML that `body` was converted from; None for a body as received
    """

    body: bytes
    value: Any
    headers: Headers
    time: Any = None
    origin: RecordOrigin | None = None
    hops: int = 0
    schema: str = ""
    misfit: str = ""
    type_header: str = ""
    idempotency_key: str = ""
    request_headers: dict[str, str] = {}
    original: OriginalBody | None = None


Item = ReceivedEvent | EventRejectedError
_JSON: Final[Headers] = [(CONTENT_TYPE, b"application/json")]


class RequestEvents(Struct):
    """Events of one request. `items` decodes each one on demand: only a few are in memory at a time."""

    items: Iterator[Item]
    count: int
    is_batch: bool


ReadContainer = Callable[[bytes], RequestEvents]


def read_events(
    media_type: str,
    body: bytes,
    ce: Mapping[str, str],
    max_event_bytes: int,
    read_container: ReadContainer | None = None,
) -> RequestEvents:
    """Return the events of a request, each a ReceivedEvent or the EventRejectedError that it met.

    ce:              the ce-* headers without the prefix
    max_event_bytes: limit of each event before it is decoded
    read_container:  reads Avro's object container files; None for a source without event types, which takes no Avro

    A single event in Avro is returned as it was sent. Raises EventRejectedError if the request as a whole cannot be
    read.
    """
    if "specversion" in ce:
        return single(_binary(media_type, body, ce, max_event_bytes))
    reader = _READERS.get(media_type)
    if reader is None:  # not written as we write it: with parameters, or in capitals
        kind = _kind(media_type)
        if is_avro_type(kind):
            return _avro(kind, body, max_event_bytes, read_container)
        reader = _READERS.get(kind)
    if reader is None:
        needed = ", ".join(_READERS if read_container is None else (*_READERS, *MEDIA_TYPES))
        raise EventRejectedError(415, "media-type", f"needs one of {needed}, got {media_type[:80] or 'none'}")
    return reader(body, max_event_bytes)


def _kind(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _avro(kind: str, body: bytes, max_event_bytes: int, read_container: ReadContainer | None) -> RequestEvents:
    if read_container is None:
        detail = f"the source has no event types, so {kind} cannot be read: add the event types, or send JSON"
        raise EventRejectedError(415, "media-type", detail)
    if framing_of(body) is Framing.CONTAINER:
        return read_container(body)
    reject_large(body, max_event_bytes)
    return single(ReceivedEvent(body, None, [(CONTENT_TYPE, kind.encode())]))


def carry_trace(items: Iterable[Item], traceparent: str) -> Iterable[Item]:
    """Add the sender's trace context to the events of a request, unless it is not a valid W3C `traceparent`."""
    return _carrying(items, traceparent) if traceparent and is_traceparent(traceparent) else items


def _carrying(items: Iterable[Item], traceparent: str) -> Iterator[Item]:
    for item in items:
        if isinstance(item, ReceivedEvent):
            item.headers = carrying(item.headers, traceparent)  # a new list: several events may share the old one
        yield item


def carry_headers(items: Iterable[Item], hops: int, type_header: str, idempotency_key: str = "") -> Iterable[Item]:
    """Add what headers of the request say to its events: earlier deliveries by Penstock, the type, the delivery's id.

    idempotency_key: of a request with one event; "" keeps the event's own
    """
    is_needed = hops or type_header or idempotency_key
    return _with_headers(items, hops, type_header, idempotency_key) if is_needed else items


def _with_headers(items: Iterable[Item], hops: int, type_header: str, idempotency_key: str) -> Iterator[Item]:
    for item in items:
        if isinstance(item, ReceivedEvent):
            item.hops, item.type_header = hops, type_header
            item.idempotency_key = idempotency_key or item.idempotency_key
        yield item


def _json(body: bytes, max_event_bytes: int) -> RequestEvents:
    if body.lstrip(b" \t\r\n")[:1] == b"[":
        return _batch(_split(body), _read_json, max_event_bytes)
    return single(_plain_json(body, max_event_bytes))


def _ndjson(body: bytes, max_event_bytes: int) -> RequestEvents:
    lines: list[bytes] = []
    for found in _LINE.finditer(body):
        if len(lines) == MAX_EVENTS:
            raise _too_many_events()
        lines.append(found[0].rstrip(b"\r"))
    if not lines:
        raise EventRejectedError(400, "json-invalid", "needs at least one line of JSON, got none (byte 0)")
    return _batch(lines, _read_json, max_event_bytes)


def _cloudevent(body: bytes, max_event_bytes: int) -> RequestEvents:
    return single(_structured(body, max_event_bytes))


def _cloudevents(body: bytes, max_event_bytes: int) -> RequestEvents:
    return _batch(_split(body), _read_structured, max_event_bytes)


_READERS: Final[dict[str, Callable[[bytes, int], RequestEvents]]] = {
    "application/json": _json,
    "application/x-ndjson": _ndjson,
    "application/cloudevents+json": _cloudevent,
    "application/cloudevents-batch+json": _cloudevents,
}


def single(event: ReceivedEvent) -> RequestEvents:
    """Return the only event of a request."""
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
                yield ReceivedEvent(text, value, _JSON)


def _read_structured(texts: Sequence[bytes], max_event_bytes: int) -> Iterator[Item]:
    return (_attempt(_structured, text, max_event_bytes) for text in texts)


def _groups(texts: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Split into runs of about GROUP_BYTES."""
    begin = size_bytes = 0
    for number, text in enumerate(texts):
        size_bytes += len(text)
        if size_bytes >= GROUP_BYTES:
            yield texts[begin : number + 1]
            begin, size_bytes = number + 1, 0
    if begin < len(texts):
        yield texts[begin:]


def _attempt(read: Callable[[bytes, int], ReceivedEvent], body: bytes, max_event_bytes: int) -> Item:
    try:
        return read(body, max_event_bytes)
    except EventRejectedError as refusal:
        return refusal


def _plain_json(body: bytes, max_event_bytes: int) -> ReceivedEvent:
    reject_large(body, max_event_bytes)
    return ReceivedEvent(body, parse(body), _JSON)


def reject_large(body: bytes, max_event_bytes: int) -> None:
    """Raise EventRejectedError `event-too-large` for an event of more than `max_event_bytes`."""
    if len(body) > max_event_bytes:
        raise EventRejectedError(
            413, "event-too-large", f"needs at most {max_event_bytes} bytes an event, got {len(body)}"
        )


def _too_many_events() -> EventRejectedError:
    return EventRejectedError(413, "too-many-events", f"needs at most {MAX_EVENTS} events in a request, got more")


def _split(body: bytes) -> list[bytes]:
    """Return the items of a JSON array, as the bytes that were sent. Raises EventRejectedError."""
    try:
        if body.count(b",") < MAX_EVENTS:
            return [bytes(raw) for raw in _raw_list(body)]
        items = [bytes(raw) for raw in msgspec.structs.astuple(_limited_list(body)) if raw]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise EventRejectedError(400, "json-invalid", f"the batch is not a JSON array: {exc}") from exc
    if len(items) > MAX_EVENTS:
        raise _too_many_events()
    return items


def _structured(body: bytes, max_event_bytes: int) -> ReceivedEvent:
    if len(body) > max_event_bytes * 4 // 3 + MAX_ATTRIBUTES * MAX_ATTRIBUTE_CHARS:  # data may be in base64
        reject_large(body, max_event_bytes)
    envelope = parse(body)
    if not isinstance(envelope, dict):
        raise EventRejectedError(400, "cloudevent-invalid", "needs a JSON object")
    attributes = {k: v for k, v in envelope.items() if k not in ("data", "data_base64", "datacontenttype")}
    headers = _ce_headers(attributes, envelope.get("datacontenttype") or "application/json")
    data = _data(body, envelope)
    reject_large(data, max_event_bytes)
    return ReceivedEvent(data, envelope.get("data"), headers, attributes.get("time"))


def _data(body: bytes, envelope: Mapping[str, Any]) -> bytes:
    if "data_base64" not in envelope:
        return bytes(_raw_object(body).get("data", Raw(b"null")))
    try:
        return base64.b64decode(envelope["data_base64"], validate=True)
    except (TypeError, ValueError) as exc:
        raise EventRejectedError(400, "cloudevent-invalid", "data_base64 is not base64") from exc


def _binary(media_type: str, body: bytes, ce: Mapping[str, str], max_event_bytes: int) -> ReceivedEvent:
    reject_large(body, max_event_bytes)
    is_json = _kind(media_type) in ("", "application/json") or media_type.endswith("+json")
    value = parse(body) if is_json else None
    return ReceivedEvent(body, value, _ce_headers(ce, media_type or "application/json"), ce.get("time"))


def _ce_headers(attributes: Mapping[str, Any], content_type: Any) -> Headers:
    """Return the headers of attributes. Raises EventRejectedError if one is missing or malformed, or for too many."""
    if len(attributes) > MAX_ATTRIBUTES:
        raise EventRejectedError(400, "cloudevent-invalid", f"needs at most {MAX_ATTRIBUTES} attributes, got more")
    for name in ("specversion", "id", "source", "type"):
        if not attributes.get(name):
            raise EventRejectedError(400, "cloudevent-invalid", f"needs the attribute {name}")
    for name in attributes:
        if not is_attribute_name(name):
            raise EventRejectedError(
                400, "cloudevent-invalid", "attribute names need 1-64 of a-z, 0-9, '.', '_' and '-'"
            )
    headers: Headers = [(CONTENT_TYPE, _plain(content_type, "datacontenttype"))]
    headers += [(CE_PREFIX + name, _plain(value, name)) for name, value in attributes.items() if value is not None]
    return headers


def is_attribute_name(name: str) -> bool:
    """Return whether an attribute may have this name, which becomes a header name in Kafka and at destinations."""
    return _ATTRIBUTE.fullmatch(name) is not None


def is_attribute_value(text: str) -> bool:
    """Return whether an attribute may have this value, which becomes a header value in Kafka and at destinations."""
    return len(text) <= MAX_ATTRIBUTE_CHARS and _CONTROLS.search(text) is None


def _plain(value: Any, name: str) -> bytes:
    if not isinstance(value, dict | list):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if is_attribute_value(text):
            return text.encode()
    raise EventRejectedError(400, "cloudevent-invalid", f"the attribute {name[:40]!r} needs a plain value")
