"""Take a sender's request at the URL of a source: verify the raw body first, then convert it. Pure.

Nothing of an unverified request is parsed, except what its signature covers in parsed form (the fields of a form).
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from dataplane.ingest.events import (
    ReceivedEvent,
    RequestEvents,
    is_attribute_value,
    read_events,
    reject_large,
    single,
)
from dataplane.ingest.problems import EventRejectedError
from dataplane.ingest.strictjson import parse
from dataplane.ledger.meta import CONTENT_TYPE, OriginalBody
from dataplane.stages.paths import MISSING, compile_path, get
from dataplane.webhooks import HeaderPlace, Preset, Reply, UnverifiedError, WebhookRequest
from dataplane.webhooks.forms import FormError, payload_of, read_form
from dataplane.webhooks.preset import FORM, JSON, XML, Place
from dataplane.webhooks.xml import XmlError, read_xml

MAX_ID_CHARS: Final = 255
IDEMPOTENCY_HEADER: Final = "idempotency-key"  # draft-ietf-httpapi-idempotency-key-header-08: a text in quotes
_encode: Final = msgspec.json.Encoder().encode


class OpenedWebhook(Struct, frozen=True):
    """Webhook settings of a source, with its sender's secrets. headers: names that its events keep."""

    preset: Preset
    secrets: tuple[str, ...]
    headers: tuple[str, ...]


def request_of(lines: Iterable[tuple[str, str]], body: bytes, url: str) -> WebhookRequest:
    """Return a request. `lines`: name in lower case and value of each header line."""
    found: dict[str, list[str]] = {}
    for name, value in lines:
        found.setdefault(name, []).append(value)
    return WebhookRequest(found, body, url)


def read_webhook(
    webhook: OpenedWebhook, request: WebhookRequest, now_s: int, max_event_bytes: int
) -> RequestEvents | Reply:
    """Return the events of a request, or the reply to a handshake. Raises EventRejectedError."""
    preset = webhook.preset
    if preset.name != "cloudevents":  # whose batches may be larger than one event
        reject_large(request.body, max_event_bytes)
    try:
        preset.verify(request, webhook.secrets, now_s)
    except UnverifiedError as exc:
        raise EventRejectedError(401, exc.code, exc.detail) from exc
    media_type = request.media_type
    is_binary = preset.name == "cloudevents" and "ce-specversion" in request.headers  # data of any media type
    if media_type not in preset.media_types and not is_binary:
        needed = ", ".join(preset.media_types)
        raise EventRejectedError(415, "media-type", f"needs one of {needed}, got {media_type[:80] or 'none'}")
    if (reply := preset.handshake(request)) is not None:
        return reply
    if preset.name == "cloudevents":
        return _cloudevents(webhook, request, max_event_bytes)
    event = _converted(request)
    reject_large(event.body, max_event_bytes)
    event.request_headers = kept_headers(webhook.headers, request.headers)
    event.idempotency_key = _delivery_id(preset.id, request, event.value)
    event.time = _time(preset.time, request, event.value)
    return single(event)


def kept_headers(names: Sequence[str], headers: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the first value of each header that an event keeps; one that no Kafka header may have is left out."""
    found = {name: headers[name][0] for name in names if headers.get(name)}
    return {name: value for name, value in found.items() if is_attribute_value(value)}


def checked_id(text: str, name: str) -> str:
    """Return the sender's id of a delivery. Raises EventRejectedError `id-invalid` if it cannot be one."""
    if len(text) > MAX_ID_CHARS or not text.isprintable():
        detail = f"needs at most {MAX_ID_CHARS} printable characters in {name}, got {len(text)}"
        raise EventRejectedError(400, "id-invalid", detail)
    return text


def _cloudevents(webhook: OpenedWebhook, request: WebhookRequest, max_event_bytes: int) -> RequestEvents:
    ce = {name[3:]: values[0] for name, values in request.headers.items() if name.startswith("ce-")}
    attributes = ce if "specversion" in ce else {}
    events = read_events(request.first("content-type"), request.body, attributes, max_event_bytes)
    kept = kept_headers(webhook.headers, request.headers)
    events.items = (_with_headers(item, kept) for item in events.items)
    return events


def _with_headers(item: ReceivedEvent | EventRejectedError, kept: dict[str, str]) -> ReceivedEvent | EventRejectedError:
    if isinstance(item, ReceivedEvent):
        item.request_headers = kept
        ids = dict(item.headers)
        if b"" not in (source := ids.get("ce_source", b""), id_ := ids.get("ce_id", b"")):
            # Only together do they identify an event. A URI has no space, so where one ends is unambiguous.
            text = f"{source.decode().replace(' ', '%20')} {id_.decode()}"
            item.idempotency_key = text if len(text) <= MAX_ID_CHARS else sha256(text.encode()).hexdigest()
    return item


def _converted(request: WebhookRequest) -> ReceivedEvent:
    """Return the event of a body: JSON as it came, else converted, within the same limits, with the original.

    Raises EventRejectedError if the body is not what its media type says.
    """
    body, original = request.body, None
    try:
        if request.media_type == FORM:
            fields = read_form(body)
            body = payload_of(fields).encode() or _encode(fields)
        elif request.media_type in XML:
            body = _encode(read_xml(body, request.charset))
    except FormError as exc:
        raise EventRejectedError(400, "form-invalid", str(exc)) from exc
    except XmlError as exc:
        raise EventRejectedError(400, "xml-invalid", str(exc)) from exc
    if body is not request.body:
        original = OriginalBody(_content_type(request), request.body)
    return ReceivedEvent(body, parse(body), [(CONTENT_TYPE, JSON.encode())], original=original)


def _content_type(request: WebhookRequest) -> str:
    """Return the content type with its parameters, or without those that no header at a destination may have."""
    text = request.first("content-type").strip()
    return text if is_attribute_value(text) else request.media_type


def _delivery_id(place: Place, request: WebhookRequest, value: Any) -> str:
    """Return the sender's id of the delivery, else its Idempotency-Key; "" if there is neither."""
    found = _at(place, request, value)
    text = found if isinstance(found, str) else ""
    if text:
        return checked_id(text, place.name if isinstance(place, HeaderPlace) else place)
    return checked_id(request.first(IDEMPOTENCY_HEADER).strip('"'), IDEMPOTENCY_HEADER)


def _time(place: Place, request: WebhookRequest, value: Any) -> Any:
    found = _at(place, request, value)
    if isinstance(found, str) and found.isascii() and found.isdecimal() and len(found) <= 16:
        return int(found)
    return found or None


def _at(place: Place, request: WebhookRequest, value: Any) -> Any:
    if isinstance(place, HeaderPlace):
        return request.first(place.name) or request.first(place.other)
    found = get(value, compile_path(place)) if place else ""
    return "" if found is MISSING else found
