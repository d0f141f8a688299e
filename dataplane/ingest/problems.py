"""Refusals at ingest, as problem details (RFC 9457). They contain no payload and no API key."""

from typing import Final

import msgspec

from dataplane.names import ERRORS_PATH

RETRY_AFTER_S: Final = 2  # of a refusal that ends without a change by the sender


class EventRejectedError(Exception):
    """A request or one of its events is refused. `code` is stable; `detail` says what was needed and what came.

    pointer:    JSON pointer into the event; "" for all of it
    event_type: name of the event's type; "" if it is unknown or the source has one type
    version:    version of a schema that an event does not fit, `<subject>@<number>`; "" if it was checked with none
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        retry_after_s: int = 0,
        pointer: str = "",
        event_type: str = "",
        version: str = "",
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.pointer = pointer
        self.event_type = event_type
        self.version = version
        self.policies: list[str] = []  # names of the exceeded quotas
        self.headers: list[tuple[str, str]] = []  # of the response


def table_unread() -> EventRejectedError:
    """Return the refusal while the control topic is being read: an unknown key may be newer than the snapshot."""
    detail = "the replica is still loading API keys; retry later"
    return EventRejectedError(503, "unavailable", detail, retry_after_s=RETRY_AFTER_S)


TITLES: Final = {
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


class ProblemBody(msgspec.Struct, omit_defaults=True):
    """Body of an error response."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    pointer: str = ""
    policies: list[str] = msgspec.field(default_factory=list, name="violated-policies")


def problem_body(refusal: EventRejectedError, request_id: str, web_url: str) -> bytes:
    """Return the refusal as JSON; `type` is the URL of its help page in the console at `web_url`."""
    return msgspec.json.encode(
        ProblemBody(
            type=f"{web_url}{ERRORS_PATH}{refusal.code}/",
            title=TITLES[refusal.code],
            status=refusal.status,
            detail=refusal.detail,
            code=refusal.code,
            request_id=request_id,
            pointer=refusal.pointer,
            policies=refusal.policies,
        )
    )
