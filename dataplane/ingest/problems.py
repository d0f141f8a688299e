"""Refusals at ingest, as problem details (RFC 9457). They contain no payload and no API key."""

from typing import Final

import msgspec

from dataplane.names import ERRORS_PATH
from dataplane.refusals import TITLES

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


def unavailable() -> EventRejectedError:
    """Return the refusal of an event that cannot be stored now."""
    detail = "events cannot be stored now; retry later with the same id"
    return EventRejectedError(503, "unavailable", detail, retry_after_s=RETRY_AFTER_S)


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
