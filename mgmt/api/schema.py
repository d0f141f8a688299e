"""What the OpenAPI document needs beside the views: answers with their problems, and the spec's own types."""

from collections.abc import Callable
from typing import Any, TypeVar

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter, extend_schema

from mgmt.api.paging import MAX_LIMIT
from mgmt.api.problems import MEDIA_TYPE, PROBLEMS
from mgmt.api.shapes import ProblemOut, spec_components

PAGE_PARAMETERS = [
    OpenApiParameter("limit", int, description=f"Rows in a page, 1 to {MAX_LIMIT}; 50 if left out."),
    OpenApiParameter("cursor", str, description="From `next` or `previous` of another page."),
]
_ALWAYS = ("not-authenticated", "throttled", "busy")

Method = TypeVar("Method", bound=Callable[..., Any])
Answers = dict[int | tuple[int, str], Any]


def answers(status: int, ok: Any, *codes: str) -> Answers:
    """The good answer, and the problems that may come instead."""
    bad = {PROBLEMS[code].status for code in (*_ALWAYS, *codes)}
    found: Answers = {status: ok}
    for number in sorted(bad):
        found[number, MEDIA_TYPE] = ProblemOut
    return found


def operation(operation_id: str, **described: Any) -> Callable[[Method], Method]:
    """Name and describe one operation; its summary is the method's docstring."""
    decorator: Callable[[Method], Method] = extend_schema(operation_id=operation_id, **described)
    return decorator


def add_spec_types(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Put the spec's types among the document's components."""
    result["components"]["schemas"] |= spec_components()
    result["components"]["schemas"] = dict(sorted(result["components"]["schemas"].items()))
    return result


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[misc]  # the package is not followed by mypy
    """The browser's session; unsafe methods need X-CSRFToken too."""

    target_class = "mgmt.api.authentication.CsrfSessionAuthentication"
    name = "session"

    def get_security_definition(self, _auto_schema: Any) -> dict[str, Any]:
        """A cookie."""
        return {"type": "apiKey", "in": "cookie", "name": "penstock_session"}


class BasicScheme(OpenApiAuthenticationExtension):  # type: ignore[misc]
    """A user's name and password."""

    target_class = "mgmt.api.authentication.LimitedBasicAuthentication"
    name = "basic"

    def get_security_definition(self, _auto_schema: Any) -> dict[str, Any]:
        """HTTP Basic."""
        return {"type": "http", "scheme": "basic"}
