"""Codes with which ingest refuses requests and events, and the title of each. Constants only."""

from collections.abc import Mapping
from typing import Final

TITLES: Final[Mapping[str, str]] = {
    "key-missing": "No API key",
    "key-invalid": "Unknown API key",
    "key-expired": "API key has expired",
    "not-found": "Not found",
    "method-not-allowed": "Method not allowed",
    "pipe-closed": "Pipe closed",
    "pipe-starting": "Pipe not live yet",
    "json-invalid": "Body is not valid JSON",
    "json-duplicate-key": "Duplicate key in a JSON object",
    "json-too-deep": "JSON nested too deeply",
    "cloudevent-invalid": "Not a CloudEvent",
    "body-too-large": "Body too large",
    "event-too-large": "Event too large",
    "too-many-events": "Too many events in one request",
    "media-type": "Media type not supported",
    "signature-missing": "Webhook is not signed",
    "signature-invalid": "Signature of the webhook is invalid",
    "signature-stale": "Webhook was signed too long ago",
    "form-invalid": "Body is not a valid form",
    "xml-invalid": "Body is not XML that can be converted",
    "id-invalid": "Id of the delivery is invalid",
    "encoding-invalid": "Content encoding not supported or invalid",
    "body-slow": "Body was sent too slowly",
    "schema": "Event does not fit the schema of its source",
    "schema-unknown": "Schema is not one of the source's subjects",
    "event-type-missing": "Event has no type",
    "event-type-unknown": "Unknown event type",
    "avro-invalid": "Body is not framed Avro",
    "quota-exceeded": "Quota exceeded",
    "loop-detected": "Too many deliveries by Penstock (loop)",
    "unavailable": "Events cannot be stored now",
    "internal": "Internal error",
}
