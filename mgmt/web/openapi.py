"""Description of operations for the OpenAPI document: parameters, responses with problems, security."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema

from mgmt.ledger.queries.bucket_range import DEFAULT_SPAN, SPANS
from mgmt.web.idempotency import HEADER, once_per_key
from mgmt.web.pagination import MAX_LIMIT
from mgmt.web.problems import MEDIA_TYPE, PROBLEMS
from mgmt.web.serializers import ProblemOut

LIMIT = OpenApiParameter("limit", int, description=f"Rows in the response, 1 to {MAX_LIMIT}. Default: {MAX_LIMIT}.")
OFFSET = OpenApiParameter("offset", int, description="Number of messages to skip, such as `next_offset`. Default: 0.")
RANGE = OpenApiParameter(
    "range", str, enum=list(SPANS), description=f"Time range up to now. Default: `{DEFAULT_SPAN}`."
)
PAGE_PARAMETERS = [
    OpenApiParameter("limit", int, description=f"Rows per page, 1 to {MAX_LIMIT}. Default: 50."),
    OpenApiParameter("cursor", str, description="Cursor from the `next` or `previous` URL of another page."),
]
IDEMPOTENCY_KEY = OpenApiParameter(
    HEADER,
    str,
    OpenApiParameter.HEADER,
    description=(
        "Key of your choice, such as a UUID, that makes the request safe to retry: for 24 hours the same request with "
        "the same key gets the response of the first one, with the header `Idempotent-Replayed: true`, and changes "
        "nothing. A refused request leaves its key unused."
    ),
)
_KEYED = ("idempotency-key-in-use", "idempotency-key-reused", "idempotency-key-invalid", "roles-changed")
LOCATION = OpenApiParameter(
    "Location", str, OpenApiParameter.HEADER, response=[200, 201, 202], description="Path of the new resource."
)
_ALWAYS = (
    "parameter-invalid",
    "not-authenticated",
    "authentication-failed",
    "not-acceptable",
    "throttled",
    "busy",
    "unavailable",
    "internal",
)
_WITH_BODY = ("json-invalid", "body-slow", "body-too-large", "media-type")
_SUCCESSES = {
    200: "Success.",
    201: "Created.",
    202: "Accepted: the work continues after the response.",
    204: "Done. The response has no body.",
}

Method = TypeVar("Method", bound=Callable[..., Any])
Answers = dict[int | tuple[int, str], Any]


def answers(statuses: int | tuple[int, ...], ok: Any, *codes: str) -> Answers:
    """Return the responses of an operation: the success responses, and one per status of its problem codes."""
    succeeded = (statuses,) if isinstance(statuses, int) else statuses
    found: Answers = {status: OpenApiResponse(ok, description=_SUCCESSES[status]) for status in succeeded}
    return _with_problems(found, (*_ALWAYS, *codes))


def _with_problems(found: Answers, codes: Iterable[str]) -> Answers:
    """Return the responses with these problem codes, of which each status lists its own."""
    found = dict(found)
    for code in codes:
        status, title = PROBLEMS[code].status, PROBLEMS[code].title
        known, line = found.get((status, MEDIA_TYPE)), f"- `{code}`: {title}."
        lines = known.description.split("\n") if known else []
        if line not in lines:
            found[status, MEDIA_TYPE] = OpenApiResponse(ProblemOut, description="\n".join([*lines, line]))
    return dict(sorted(found.items(), key=lambda one: one[0][0] if isinstance(one[0], tuple) else one[0]))


def operation(
    operation_id: str,
    *,
    responses: Answers,
    parameters: Sequence[OpenApiParameter] = (),
    idempotency_key: bool = True,
    **described: Any,
) -> Callable[[Method], Method]:
    """Name and describe an operation of the OpenAPI document; its description is the method's docstring.

    The operation takes these query parameters only: mgmt.web.api_view.StrictView refuses any other. A `post` also takes
    an Idempotency-Key, unless `idempotency_key` is False: for reads by POST, and for bodies that are streamed.
    """

    def described_as(method: Method) -> Method:
        headers, possible = [], responses
        if method.__name__ != "get":
            possible = _with_problems(possible, ["csrf-failed"])
        if described.get("request") is not None:
            possible = _with_problems(possible, _WITH_BODY)
        if method.__name__ == "post" and idempotency_key:
            method, headers = cast("Method", once_per_key(method)), [IDEMPOTENCY_KEY]
            possible = _with_problems(possible, _KEYED)
        method.query_parameters = frozenset(one.name for one in parameters if one.location == OpenApiParameter.QUERY)  # type: ignore[attr-defined]
        shown = [*parameters, *headers]
        found: Method = extend_schema(operation_id=operation_id, parameters=shown, responses=possible, **described)(
            method
        )
        return found

    return described_as


def example(value: Any) -> OpenApiExample:
    """Return the example of a success response."""
    return OpenApiExample("Example", value=value, response_only=True, status_codes=["200"])


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[misc]  # the package is not followed by mypy
    """Security scheme of API tokens."""

    target_class = "mgmt.web.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, _auto_schema: Any) -> dict[str, Any]:
        """Return the definition of a bearer token."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "pst_..."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[misc]  # the package is not followed by mypy
    """Security scheme of the browser's session; unsafe methods also need X-CSRFToken."""

    target_class = "mgmt.web.authentication.CsrfSessionAuthentication"
    name = "session"

    def get_security_definition(self, _auto_schema: Any) -> dict[str, Any]:
        """Return the definition of the session cookie."""
        return {"type": "apiKey", "in": "cookie", "name": "penstock_session"}


class BasicScheme(OpenApiAuthenticationExtension):  # type: ignore[misc]
    """Security scheme of a user name and password."""

    target_class = "mgmt.web.authentication.LimitedBasicAuthentication"
    name = "basic"

    def get_security_definition(self, _auto_schema: Any) -> dict[str, Any]:
        """Return the definition of HTTP Basic authentication."""
        return {"type": "http", "scheme": "basic"}
