"""Errors as application/problem+json (RFC 9457): the list of codes, and the one place where a body is built."""

from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from rest_framework.exceptions import APIException

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 5
_WAIT_S: Final = {
    "unavailable": RETRY_AFTER_S,
    "busy": RETRY_AFTER_S,
    "too-many-at-once": 2,
    "too-many-tests": 60,
    "too-many-confirmations": 3_600,
}


@dataclass(frozen=True)
class Problem:
    """A kind of error. `meaning` is what its page says: what happened, and what to do next."""

    status: int
    title: str
    meaning: str


PROBLEMS: Final[dict[str, Problem]] = {
    "invalid": Problem(
        400, "The request is not valid", "`errors` names each field and what it needs. Mend them, send again."
    ),
    "json-invalid": Problem(400, "The body is not JSON", "`detail` says where reading stopped. Send one JSON object."),
    "parameter-invalid": Problem(400, "A query parameter is not valid", "`errors` names it and says what it needs."),
    "bad-request": Problem(400, "The request cannot be read", "Check host, path and headers of the request."),
    "not-authenticated": Problem(
        401, "Nobody is signed in", "Sign in, or send a user's name and password by Basic auth."
    ),
    "authentication-failed": Problem(401, "Name or password is wrong", "Check both; after ten failures one must wait."),
    "csrf-failed": Problem(
        403, "The CSRF token is missing or wrong", "Send the cookie's token as X-CSRFToken with the session."
    ),
    "role-too-low": Problem(
        403, "Your role does not allow this", "Ask an owner of the tenant for the role in `detail`."
    ),
    "forbidden": Problem(403, "This is not allowed", "`detail` says why."),
    "not-found": Problem(
        404, "There is no such thing", "Check the id; what belongs to others looks the same as what is missing."
    ),
    "method-not-allowed": Problem(405, "The method does not fit", "The Allow header lists the methods that do."),
    "not-acceptable": Problem(406, "Only JSON is to be had", "Accept application/json."),
    "conflict": Problem(409, "It does not fit what is stored now", "Read the newest state, then decide again."),
    "revision-conflict": Problem(
        409, "Somebody published before you", "Read the newest revision, make your change to it, publish based on it."
    ),
    "name-taken": Problem(409, "The name is taken", "Choose another name."),
    "pipe-closed": Problem(409, "The pipe is closed", "Open it again first."),
    "limit-reached": Problem(409, "As many as there may be are there", "Remove what is not needed first."),
    "quota-exceeded": Problem(
        409, "Your quota is used up", "Remove what is not needed, or ask the operator of Penstock for a higher quota."
    ),
    "table-in-use": Problem(
        409, "The look-up table is in use", "`detail` names the revision; publish one without the table first."
    ),
    "table-removed": Problem(409, "The look-up table was removed", "Make it again, or another one."),
    "destination-removed": Problem(409, "The destination was removed", "Publish a revision that has it again."),
    "schema-breaking": Problem(
        409,
        "The schema would refuse events that are taken now",
        "`errors` names each field and why. Loosen it there, or make a new source for events of another shape.",
    ),
    "schema-conflict": Problem(
        409, "Somebody registered a schema before you", "Read the newest version, then register yours."
    ),
    "ramp-over": Problem(409, "The ramp is over", "The revision is live, or went back. Read it again."),
    "admission-over": Problem(409, "Everything of the pipe is let in", "Nothing is left to be held or resumed."),
    "nothing-to-move": Problem(
        409, "There is no such message to bring back", "It is on its way already, or your choice fits none: preview it."
    ),
    "alert-not-open": Problem(409, "The alert is over, or its probe is under way", "Read it again."),
    "nothing-to-send": Problem(409, "The event makes no request there", "Take an event that comes to the destination."),
    "nothing-to-probe": Problem(409, "There is no message to send as a probe", "Resume the destination instead."),
    "paused-already": Problem(409, "The controller is paused there", "End that pause first."),
    "not-movable": Problem(409, "The pipe cannot be moved to another cell as it is", "The detail says what ties it."),
    "relocation-under-way": Problem(409, "The pipe is being moved already", "Wait until that is over, or give it up."),
    "already-member": Problem(409, "The user is a member already", "Change the role of the membership they have."),
    "body-too-large": Problem(413, "The body is too large", "Send at most 1 MiB."),
    "media-type": Problem(415, "The media type does not fit", "Send application/json."),
    "spec-invalid": Problem(
        422, "The spec cannot run", "`errors` points at the field and says what was needed. Nothing was stored."
    ),
    "schema-invalid": Problem(
        422, "The schema cannot be taken", "`errors` points at the place and says what was needed. Nothing was stored."
    ),
    "row-invalid": Problem(
        422, "A row cannot be taken", "`errors` has the row's number and what it needs. No row was stored."
    ),
    "credential-needed": Problem(
        422,
        "A credential must be entered again",
        "Send it in `credentials`: a stored one is sent only to the address it was entered for. Nothing was stored.",
    ),
    "destination-forbidden": Problem(
        422, "The platform does not connect there", "Name a public address; `errors` points at the field."
    ),
    "too-expensive": Problem(
        422, "It needs more than a dry run may use", "`detail` names the limit. Use simpler steps or a smaller event."
    ),
    "too-many-at-once": Problem(429, "Too many dry runs at once", "Wait until one of yours is done."),
    "throttled": Problem(429, "Too many requests", "Wait as long as Retry-After says."),
    "too-many-tests": Problem(429, "Too many test requests", "Wait as long as Retry-After says."),
    "too-many-confirmations": Problem(
        429, "Too many confirmation mails", "Find the mail that was sent, in the spam folder too, or wait a day."
    ),
    "internal": Problem(500, "We failed", "Try again; if it stays, report request_id."),
    "body-slow": Problem(408, "The body came too slowly", "Send the whole body at once."),
    "busy": Problem(503, "The server is busy", "Nothing was stored. Try again after Retry-After."),
    "unavailable": Problem(503, "A service we need is away", "Nothing was stored. Try again after Retry-After."),
}


class ProblemError(APIException):
    """One of PROBLEMS, raised by our own code."""

    def __init__(self, code: str, detail: str = "", errors: list[dict[str, str]] | None = None) -> None:
        super().__init__(detail or PROBLEMS[code].meaning, code)
        self.code = code
        self.status_code = PROBLEMS[code].status
        self.errors = errors or []
        self.wait = _WAIT_S.get(code)


def problem_body(
    request: HttpRequest, code: str, detail: str = "", errors: list[dict[str, str]] | None = None
) -> dict[str, Any]:
    """The body for one of PROBLEMS. It never repeats what was sent, only names it."""
    problem = PROBLEMS[code]
    return {
        "type": f"{settings.PENSTOCK_WEB_URL}/api/v1/problems/{code}/",
        "title": problem.title,
        "status": problem.status,
        "detail": detail or problem.meaning,
        "instance": request.path,
        "code": code,
        "request_id": request.META.get("penstock.request_id", ""),
        "errors": errors or [],
    }


def problem_response(request: HttpRequest, code: str) -> JsonResponse:
    """A problem where no view of the API was reached."""
    return JsonResponse(problem_body(request, code), status=PROBLEMS[code].status, content_type=MEDIA_TYPE)
