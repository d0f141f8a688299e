"""Parts of the OpenAPI document that the views do not give: responses with problems, and the spec's types."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import msgspec
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema

from dataplane.spec import PipeSpec
from mgmt.ledger.queries.bucket_range import DEFAULT_SPAN, SPANS
from mgmt.web.idempotency import HEADER, once_per_key
from mgmt.web.pagination import MAX_LIMIT
from mgmt.web.problems import MEDIA_TYPE, PROBLEMS
from mgmt.web.serializers import ProblemOut

LIMIT = OpenApiParameter("limit", int, description=f"Rows in the answer, 1 to {MAX_LIMIT}. Default: {MAX_LIMIT}.")
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
_ALWAYS = ("parameter-invalid", "not-authenticated", "throttled", "busy")

Method = TypeVar("Method", bound=Callable[..., Any])
Answers = dict[int | tuple[int, str], Any]


def answers(status: int, ok: Any, *codes: str) -> Answers:
    """Return the responses of an operation: the success response, and one per status of its problem codes."""
    return {status: ok} | _problems((*_ALWAYS, *codes))


def _problems(codes: Iterable[str]) -> Answers:
    """Return a response for each status of these problem codes."""
    return {(status, MEDIA_TYPE): ProblemOut for status in sorted({PROBLEMS[code].status for code in codes})}


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
        if method.__name__ == "post" and idempotency_key:
            method, headers = cast("Method", once_per_key(method)), [IDEMPOTENCY_KEY]
            possible = responses | _problems(_KEYED)
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


def add_spec_types(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Add the spec's types to the document's components. Postprocessing hook of drf-spectacular."""
    result["components"]["schemas"] |= spec_components()
    result["components"]["schemas"] = dict(sorted(result["components"]["schemas"].items()))
    return result


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


def spec_components() -> dict[str, Any]:
    """Return the JSON Schemas of the spec's types by component name, generated from the types."""
    _, components = msgspec.json.schema_components((PipeSpec,), ref_template="#/components/schemas/{name}")
    return components
