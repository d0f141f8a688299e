"""Errors as application/problem+json (RFC 9457): the list of codes, and the only function that builds a body."""

from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from rest_framework.exceptions import APIException

from dataplane.names import ERRORS_PATH

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 5
_WAIT_S: Final = {
    "idempotency-key-in-use": 1,
    "unavailable": RETRY_AFTER_S,
    "busy": RETRY_AFTER_S,
    "table-unreachable": RETRY_AFTER_S,
    "too-many-at-once": 2,
    "too-many-tails": RETRY_AFTER_S,
    "too-many-tests": 60,
    "too-many-confirmations": 3_600,
    "too-many-invitations": 3_600,
}


@dataclass(frozen=True)
class ProblemType:
    """Kind of error. `meaning` is the text of its help page: the reason and the next action."""

    status: int
    title: str
    meaning: str


PROBLEMS: Final[dict[str, ProblemType]] = {
    "invalid": ProblemType(
        400,
        "The request is not valid",
        "`errors` names each field and what it needs. Correct them and send the request again.",
    ),
    "json-invalid": ProblemType(
        400, "The body is not JSON", "`detail` says at which line and column parsing stopped. Send one JSON object."
    ),
    "parameter-invalid": ProblemType(
        400, "A query parameter is not valid", "`errors` names the parameter and what it needs."
    ),
    "idempotency-key-invalid": ProblemType(
        400,
        "The Idempotency-Key is not valid",
        "Send 1 to 255 printable ASCII characters, such as a new UUID for each request that is not a retry.",
    ),
    "bad-request": ProblemType(400, "The request cannot be read", "Check the host, path and headers of the request."),
    "not-authenticated": ProblemType(
        401, "You are not signed in", "Send an API token: `Authorization: Bearer pst_...`. Create one under API tokens."
    ),
    "authentication-failed": ProblemType(
        401, "The user name or password is wrong", "Check both. After ten failed attempts, wait before you try again."
    ),
    "token-invalid": ProblemType(
        401, "The API token is not valid", "Check that it was copied whole, or create a new one under API tokens."
    ),
    "token-expired": ProblemType(401, "The API token has expired", "Create a new one under API tokens."),
    "token-revoked": ProblemType(401, "The API token was revoked", "Create a new one under API tokens."),
    "csrf-failed": ProblemType(
        403,
        "The CSRF token is missing or wrong",
        "Send the token of the CSRF cookie as X-CSRFToken, together with the session cookie.",
    ),
    "second-factor-required": ProblemType(
        403,
        "A second factor is required",
        "The account needs or has a second factor, so its password alone is not enough. In the console, set one up on "
        "the account page; in programs, use an API token instead of the password.",
    ),
    "role-too-low": ProblemType(
        403, "Your role does not allow this", "Ask an owner of the tenant for the role that `detail` names."
    ),
    "scope-too-low": ProblemType(
        403,
        "The scope of the API token does not allow this",
        "Use a token with the scope that `detail` names. Its user needs the role for it.",
    ),
    "token-of-one-pipe": ProblemType(
        403, "The API token reaches one pipe only", "Use a token that is not bound to a pipe."
    ),
    "forbidden": ProblemType(403, "This is not allowed", "`detail` says why."),
    "not-found": ProblemType(
        404, "Not found", "Check the id. A resource of another tenant is also reported as not found."
    ),
    "method-not-allowed": ProblemType(405, "The method is not allowed", "The Allow header lists the allowed methods."),
    "not-acceptable": ProblemType(406, "Only JSON is available", "Send `Accept: application/json`."),
    "conflict": ProblemType(
        409, "The request conflicts with the stored state", "Read the newest state, then decide again."
    ),
    "revision-conflict": ProblemType(
        409,
        "Another user published a revision first",
        "Read the newest revision, apply your change to it, and publish with `based_on` set to its number.",
    ),
    "name-taken": ProblemType(409, "The name is already in use", "Choose another name."),
    "pipe-closed": ProblemType(409, "The pipe is closed", "Reopen the pipe first."),
    "pipe-paused": ProblemType(409, "The pipe is paused", "Resume the pipe first."),
    "fix-not-live": ProblemType(
        409,
        "The revision that fails is still live",
        "Publish a corrected revision and wait until it is live, then resume the pipe. If you corrected the events "
        "or a look-up table instead, resume with `without_fix`.",
    ),
    "unchanged": ProblemType(
        409, "The revision changes nothing", "The spec is that of the live revision. Change it, or publish nothing."
    ),
    "not-comparable": ProblemType(
        409,
        "There is nothing to compare the draft with",
        "`detail` says what is missing: a live revision, or an event. Nothing was sent or stored.",
    ),
    "idempotency-key-in-use": ProblemType(
        409,
        "The first request with this Idempotency-Key is running",
        "Send the same request again after Retry-After: it gets the response of the first one.",
    ),
    "roles-changed": ProblemType(
        409,
        "Your roles have changed since the first request with this Idempotency-Key",
        "The stored response is not sent again. Read the state, then use a new key if the request is still needed.",
    ),
    "limit-reached": ProblemType(409, "The limit is reached", "First remove one that you no longer need."),
    "quota-exceeded": ProblemType(
        409,
        "Your quota is used up",
        "Remove what you no longer need, or ask the operator of Penstock for a higher quota.",
    ),
    "table-in-use": ProblemType(
        409, "The look-up table is in use", "`detail` names the revision. First publish one without the table."
    ),
    "access-not-offered": ProblemType(
        409,
        "Look-up tables cannot be read directly here",
        "The operator has not configured a public address for table queries. Read rows through the API.",
    ),
    "table-removed": ProblemType(409, "The look-up table was removed", "Create the table again, or use another one."),
    "destination-removed": ProblemType(
        409, "The destination was removed", "Publish a revision that contains it again."
    ),
    "schema-breaking": ProblemType(
        409,
        "The schema would refuse events that are accepted now",
        "`errors` names each field and the reason. Relax the schema there, or create a new source for the new events.",
    ),
    "schema-incompatible": ProblemType(
        409,
        "The schema is incompatible with an earlier version",
        "`errors` names each place with reader, writer and reason. Change the schema there, or register it under the "
        "subject that `detail` offers.",
    ),
    "subject-deprecated": ProblemType(
        409, "The subject is deprecated", "Register the schema under another subject, or end the deprecation."
    ),
    "schema-conflict": ProblemType(
        409, "Another user registered a schema first", "Read the newest version, then register yours."
    ),
    "event-types-conflict": ProblemType(
        409,
        "Another user changed the event types first",
        "Read the event types of the source, apply your change to them, and send `based_on` with their version.",
    ),
    "key-ended": ProblemType(409, "The API key is revoked or has expired", "Create a new key of the source."),
    "ramp-over": ProblemType(
        409, "The ramp has ended", "The revision is live or was rolled back. Read the ramp again."
    ),
    "admission-over": ProblemType(
        409, "The pipe's admission has ended", "All its keys are admitted. There is nothing left to hold or resume."
    ),
    "nothing-to-move": ProblemType(
        409,
        "No message matches the selection",
        "The messages are already in a redrive or release, or none match. Preview the selection.",
    ),
    "replay-under-way": ProblemType(
        409, "A replay is under way", "A tenant has one replay at a time. Wait until it has ended, or abort it."
    ),
    "nothing-to-replay": ProblemType(409, "There is no event to replay", "`detail` gives the reason and a remedy."),
    "backfill-started": ProblemType(
        409,
        "The backfill has already started",
        "`detail` names the replay. Pause, resume or abort it instead; after its end, repeat what failed.",
    ),
    "shadow-under-way": ProblemType(
        409, "A shadow run is under way", "A tenant has one shadow run at a time. Wait until it has ended, or stop it."
    ),
    "alert-not-open": ProblemType(409, "The alert is resolved, or its probe is in progress", "Read the alert again."),
    "nothing-to-send": ProblemType(
        409, "The event produces no request to this destination", "Send an event that reaches the destination."
    ),
    "nothing-to-probe": ProblemType(409, "There is no message to send as a probe", "Resume the destination instead."),
    "order-needed": ProblemType(
        409, "A destination keeps the order of each key", "Make the destination unordered, or use a finer key."
    ),
    "paused-already": ProblemType(409, "The controller is already paused there", "End that pause first."),
    "not-movable": ProblemType(409, "The pipe cannot be migrated to another cell", "`detail` gives the reason."),
    "relocation-under-way": ProblemType(
        409, "A migration of the pipe is in progress", "Wait until it ends, or cancel it."
    ),
    "already-member": ProblemType(409, "The user is already a member", "Change the role of the existing membership."),
    "last-owner": ProblemType(
        409, "The tenant needs an owner", "Make another member an owner first, then change or remove this one."
    ),
    "second-factor-missing": ProblemType(
        409, "You have no second factor", "Set one up on the account page, then require it of all members."
    ),
    "sso-failed": ProblemType(
        409,
        "Single sign-on cannot be used like this",
        "`detail` says what to change, here or at the identity provider. Nothing was stored.",
    ),
    "domain-not-verified": ProblemType(
        409,
        "The domain is not verified",
        "Create the TXT record that the domain names, wait until DNS shows it, and try again.",
    ),
    "invitation-invalid": ProblemType(
        409, "The invitation is not valid", "It was accepted or revoked, or it has expired. Invite the person again."
    ),
    "too-many-invitations": ProblemType(
        429, "Too many invitations were sent today", "Ask the person to look for the newest e-mail, or try tomorrow."
    ),
    "body-too-large": ProblemType(413, "The body is too large", "Send at most 1 MiB."),
    "media-type": ProblemType(415, "The media type is not supported", "Send application/json."),
    "spec-invalid": ProblemType(
        422, "The spec cannot run", "`errors` names the field and what it needs. Nothing was stored."
    ),
    "schema-invalid": ProblemType(
        422, "The schema cannot be used", "`errors` points to the keyword and says what it needs. Nothing was stored."
    ),
    "row-invalid": ProblemType(
        422, "A row is not valid", "`errors` gives the row's number and what the row needs. No row was stored."
    ),
    "credential-needed": ProblemType(
        422,
        "A credential must be entered again",
        "Send it in `credentials`: a stored credential is sent only to the address it was entered for. "
        "Nothing was stored.",
    ),
    "destination-forbidden": ProblemType(
        422, "The destination's address is not allowed", "Use a public address. `errors` names the field."
    ),
    "idempotency-key-reused": ProblemType(
        422,
        "The Idempotency-Key belongs to a different request",
        "A key identifies one method, path, query and body for 24 hours. Use a new key. Nothing was stored.",
    ),
    "too-expensive": ProblemType(
        422,
        "The dry run, check or search exceeds a limit",
        "`detail` names the limit. Use simpler steps or conditions, or a smaller event.",
    ),
    "too-many-at-once": ProblemType(
        429, "Too many dry runs, checks or searches at once", "Wait until one of yours has ended."
    ),
    "throttled": ProblemType(429, "Too many requests", "Wait for the number of seconds in Retry-After."),
    "too-many-tails": ProblemType(
        429, "Too many live tails", "Close one: you or your tenant have as many open as the quota allows."
    ),
    "too-many-tests": ProblemType(429, "Too many test requests", "Wait for the number of seconds in Retry-After."),
    "too-many-confirmations": ProblemType(
        429,
        "Too many confirmation e-mails",
        "Look for the e-mail that was sent, also in the spam folder, or wait a day.",
    ),
    "channel-not-confirmed": ProblemType(
        409,
        "The e-mail address is not confirmed",
        "Open the link in the confirmation e-mail, or have it sent again, and repeat the request.",
    ),
    "internal": ProblemType(500, "Internal error", "Try again. If the error persists, report `request_id`."),
    "body-slow": ProblemType(408, "The body arrived too slowly", "Send the whole body at once."),
    "busy": ProblemType(503, "The server is busy", "Nothing was stored. Try again after Retry-After."),
    "table-unreachable": ProblemType(
        503,
        "The rows of the look-up table cannot be read now",
        "A pipe writes the table, so its rows are on the hosts of the data plane, and none of them responds. Pipes are "
        "not affected. Try again after Retry-After.",
    ),
    "unavailable": ProblemType(
        503, "A required service is unavailable", "Nothing was stored. Try again after Retry-After."
    ),
}


class ProblemError(APIException):
    """Exception for one of PROBLEMS, by its code."""

    def __init__(self, code: str, detail: str = "", errors: list[dict[str, str]] | None = None) -> None:
        super().__init__(detail or PROBLEMS[code].meaning, code)
        self.code = code
        self.status_code = PROBLEMS[code].status
        self.errors = errors or []
        self.wait = _WAIT_S.get(code)


def problem_body(
    request: HttpRequest, code: str, detail: str = "", errors: list[dict[str, str]] | None = None
) -> dict[str, Any]:
    """Return the body for one of PROBLEMS. It names the request's fields and never repeats their values."""
    problem = PROBLEMS[code]
    return {
        "type": f"{settings.PENSTOCK_WEB_URL}{ERRORS_PATH}{code}/",
        "title": problem.title,
        "status": problem.status,
        "detail": detail or problem.meaning,
        "instance": request.path,
        "code": code,
        "request_id": request.META.get("penstock.request_id", ""),
        "errors": errors or [],
    }


def problem_response(request: HttpRequest, code: str) -> JsonResponse:
    """Return a problem response for a request that reached no view of the API."""
    return JsonResponse(problem_body(request, code), status=PROBLEMS[code].status, content_type=MEDIA_TYPE)
