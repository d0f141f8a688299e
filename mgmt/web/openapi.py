"""Parts of the OpenAPI document that the views do not give: responses with problems, and the spec's types."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema

from dataplane.spec import PipeSpec
from mgmt.ledger.queries.bucket_range import DEFAULT_SPAN, SPANS
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
_ALWAYS = ("parameter-invalid", "not-authenticated", "throttled", "busy")

Method = TypeVar("Method", bound=Callable[..., Any])
Answers = dict[int | tuple[int, str], Any]


def answers(status: int, ok: Any, *codes: str) -> Answers:
    """Return the responses of an operation: the success response, and one per status of its problem codes."""
    bad = {PROBLEMS[code].status for code in (*_ALWAYS, *codes)}
    found: Answers = {status: ok}
    for number in sorted(bad):
        found[number, MEDIA_TYPE] = ProblemOut
    return found


def operation(
    operation_id: str, *, parameters: Sequence[OpenApiParameter] = (), **described: Any
) -> Callable[[Method], Method]:
    """Name and describe an operation of the OpenAPI document; its description is the method's docstring.

    The operation takes these query parameters only: mgmt.web.api_view.StrictView refuses any other.
    """

    def described_as(method: Method) -> Method:
        method.query_parameters = frozenset(one.name for one in parameters if one.location == OpenApiParameter.QUERY)  # type: ignore[attr-defined]
        found: Method = extend_schema(operation_id=operation_id, parameters=list(parameters), **described)(method)
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


def spec_components() -> dict[str, Any]:
    """Return the JSON Schemas of the spec's types by component name, generated from the types."""
    _, components = msgspec.json.schema_components((PipeSpec,), ref_template="#/components/schemas/{name}")
    return components
