"""Refusals at ingest, as problem details (RFC 9457). They carry no payload and no key."""

from typing import Final

import msgspec


class RefusalError(Exception):
    """A request or one event of it is not taken. `code` is stable; `detail` says what was needed and what came.

    pointer: where in the event, as a JSON pointer; "" for all of it
    """

    def __init__(self, status: int, code: str, detail: str, *, retry_after_s: int = 0, pointer: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.pointer = pointer
        self.policies: list[str] = []  # the quotas that are exceeded
        self.headers: list[tuple[str, str]] = []  # for the answer


TITLES: Final = {
    "key-missing": "No API key",
    "key-invalid": "API key not known",
    "not-found": "Nothing here",
    "method-not-allowed": "Method not allowed",
    "pipe-closed": "Pipe closed",
    "pipe-starting": "Pipe not live yet",
    "json-invalid": "Body is not valid JSON",
    "json-duplicate-key": "Key stands twice in an object",
    "json-too-deep": "JSON nested too deeply",
    "cloudevent-invalid": "Not a CloudEvent",
    "body-too-large": "Body too large",
    "event-too-large": "Event too large",
    "too-many-events": "Too many events in one request",
    "media-type": "Media type not supported",
    "encoding-invalid": "Content encoding not readable",
    "body-slow": "Body came too slowly",
    "schema": "Event does not fit the schema of its source",
    "quota-exceeded": "Quota exceeded",
    "loop-detected": "Event was delivered by Penstock too often",
    "unavailable": "Cannot store events now",
    "internal": "Something went wrong on our side",
}


class Problem(msgspec.Struct, omit_defaults=True):
    """The body of an error answer."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    pointer: str = ""
    policies: list[str] = msgspec.field(default_factory=list, name="violated-policies")


def problem_body(refusal: RefusalError, request_id: str) -> bytes:
    """JSON of the refusal; `type` is the path of its page in the documentation."""
    return msgspec.json.encode(
        Problem(
            type=f"/docs/errors/{refusal.code}",
            title=TITLES[refusal.code],
            status=refusal.status,
            detail=refusal.detail,
            code=refusal.code,
            request_id=request_id,
            pointer=refusal.pointer,
            policies=refusal.policies,
        )
    )
