"""Converts every exception of an API view to a problem, and Django's own errors for paths of the API."""

import sys
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.views import defaults
from drf_standardized_errors.formatter import ExceptionFormatter
from drf_standardized_errors.handler import ExceptionHandler
from drf_standardized_errors.types import Error, ErrorResponse
from rest_framework import exceptions
from rest_framework.response import Response

from dataplane.schemas.types import Incompatibility, SchemaRejectedError
from dataplane.spec import SpecError
from dataplane.spec.compatible import BreakingChange
from dataplane.spec.schema import SchemaError, pointer_of
from mgmt.errors import NeededCredential
from mgmt.lookups.row_files import RowFileError, UploadTooLarge
from mgmt.pipes.spec_check import DestinationForbidden
from mgmt.registry.wire import error_response
from mgmt.sandbox import SandboxRefused
from mgmt.services import (
    CredentialNeededError,
    InvalidValue,
    SchemaIncompatibleError,
    ServiceError,
    VersionIncompatibleError,
)
from mgmt.web.access import Forbidden
from mgmt.web.problems import MEDIA_TYPE, RETRY_AFTER_S, ProblemError, problem_body, problem_response

_CODES: dict[type[exceptions.APIException], str] = {
    exceptions.ValidationError: "invalid",
    exceptions.ParseError: "json-invalid",
    exceptions.NotAuthenticated: "not-authenticated",
    exceptions.AuthenticationFailed: "authentication-failed",
    exceptions.PermissionDenied: "forbidden",
    exceptions.NotFound: "not-found",
    exceptions.MethodNotAllowed: "method-not-allowed",
    exceptions.NotAcceptable: "not-acceptable",
    exceptions.UnsupportedMediaType: "media-type",
    exceptions.Throttled: "throttled",
}


class ProblemHandler(ExceptionHandler):  # type: ignore[misc]  # the package is not followed by mypy
    """Exception handler that also converts the exceptions of services and access."""

    def convert_known_exceptions(self, exc: Exception) -> Exception:
        """Return the framework's exception for one of Penstock's."""
        own = own_problem(exc)
        known: Exception = own or super().convert_known_exceptions(exc)
        return known

    def get_response(self, exc: exceptions.APIException, data: dict[str, Any]) -> Response:
        """Return the response with the problem's media type."""
        return Response(data, status=exc.status_code, headers=self.get_headers(exc), content_type=MEDIA_TYPE)


def own_problem(exc: Exception) -> exceptions.APIException | None:
    """Return the framework's exception for one of Penstock's; None for those that the framework converts."""
    found: exceptions.APIException | None = None
    match exc:
        case ObjectDoesNotExist():
            found = exceptions.NotFound()
        case Forbidden():
            found = ProblemError(exc.code, str(exc))
        case RowFileError():
            error = {"row": str(exc.number), "detail": exc.reason, "code": "row-invalid"}
            found = ProblemError("row-invalid", str(exc), [error])
        case UploadTooLarge():
            found = ProblemError("body-too-large", str(exc))
        case SchemaIncompatibleError() | VersionIncompatibleError() | SchemaRejectedError() | SchemaError():
            found = _schema_problem(exc)
        case CredentialNeededError():
            errors = [_needed_error(one) for one in exc.needed]
            found = ProblemError(exc.code, str(exc), errors)
        case ServiceError() | SandboxRefused():
            found = ProblemError(exc.code, str(exc))
        case InvalidValue():
            found = exceptions.ValidationError({exc.field: [exc.reason]})
        case SpecError():
            code = "destination-forbidden" if isinstance(exc, DestinationForbidden) else "spec-invalid"
            error = {"pointer": spec_pointer(exc.path), "detail": exc.reason, "code": code}
            found = ProblemError(code, f"{exc.path}: {exc.reason}", [error])
        case OperationalError() | InterfaceError():
            found = ProblemError("unavailable")
    return found


def _schema_problem(
    exc: SchemaIncompatibleError | VersionIncompatibleError | SchemaRejectedError | SchemaError,
) -> ProblemError:
    match exc:
        case SchemaIncompatibleError():
            return ProblemError(exc.code, str(exc), [breaking_error(one) for one in exc.broken])
        case VersionIncompatibleError():
            return ProblemError(exc.code, str(exc), [incompatible_error(one) for one in exc.broken])
        case SchemaRejectedError():
            pointer = f"#{exc.path}" if exc.path.startswith("/references") else f"#/schema{exc.path}"
        case SchemaError():
            pointer = _pointer(["schema", *exc.path])
    return ProblemError(
        "schema-invalid", str(exc), [{"pointer": pointer, "detail": exc.reason, "code": "schema-invalid"}]
    )


class ProblemFormatter(ExceptionFormatter):  # type: ignore[misc]
    """Formatter that builds the problem's body."""

    def format_error_response(self, error_response: ErrorResponse) -> dict[str, Any]:
        """Return a problem with one entry in `errors` for each field that is not valid."""
        request = self.context["request"]
        if isinstance(self.exc, ProblemError):
            return problem_body(request, self.exc.code, str(self.exc.detail), self.exc.errors)
        code = next((code for kind, code in _CODES.items() if isinstance(self.exc, kind)), "internal")
        if code == "invalid":
            return problem_body(request, code, errors=[field_error(error) for error in error_response.errors])
        detail = "" if code in ("internal", "not-found") else error_response.errors[0].detail
        return problem_body(request, code, detail)


def field_error(error: Error) -> dict[str, str]:
    """Return the `errors` entry of a field, by JSON pointer."""
    parts = [] if error.attr in (None, "non_field_errors") else error.attr.split(FIELD_SEPARATOR)
    return {"pointer": _pointer(parts), "detail": error.detail, "code": error.code.replace("_", "-")}


def breaking_error(one: BreakingChange) -> dict[str, str]:
    """Return the `errors` entry of a breaking schema change: its pointer in the new document, each `$ref` expanded."""
    return {"pointer": _pointer(["schema", *one.path]), "detail": str(one), "code": "schema-breaking"}


def incompatible_error(one: Incompatibility) -> dict[str, str]:
    """Return the `errors` entry of an incompatibility: its pointer in the schema, and both sides in words."""
    detail = f"version {one.version}: {one.message} (reader: {one.reader}; writer: {one.writer}; {one.reason})"
    return {"pointer": f"#/schema{one.path}", "detail": detail, "code": "schema-incompatible"}


def _needed_error(one: NeededCredential) -> dict[str, str]:
    pointer = _pointer(["credentials", one.destination])
    return {"pointer": pointer, "detail": f"needs {', '.join(one.fields)}", "code": "credential-needed"}


FIELD_SEPARATOR = "\x1f"  # not a dot: names of fields may hold dots


def spec_pointer(path: str) -> str:
    """Return the JSON pointer for a spec's path: `$.normalize[0].op` is `#/spec/normalize/0/op`."""
    if "$" not in path:  # a field of the body itself
        return _pointer([path])
    path = path[path.rfind("$") + 1 :].partition("[...]")[0]
    parts = path.replace("[", ".").replace("]", "").split(".")
    return _pointer(["spec", *filter(None, parts)])


def _pointer(parts: list[str]) -> str:
    return "#" + pointer_of(tuple(parts))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the 400 response for an error outside a view."""
    if _is_wire(request):
        return error_response(400, "The request cannot be read")
    return problem_response(request, "bad-request") if _is_api(request) else defaults.bad_request(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the 404 response for a path without a route: the same body as for a missing row."""
    if _is_wire(request):
        return error_response(404, "HTTP 404 Not Found")
    return problem_response(request, "not-found") if _is_api(request) else defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the 500 response for a page or outside an API view; 503 with Retry-After while Postgres is unavailable."""
    is_away = isinstance(sys.exc_info()[1], OperationalError | InterfaceError)
    if _is_api(request):
        response: HttpResponse = problem_response(request, "unavailable" if is_away else "internal")
    elif _is_wire(request):
        response = _wire_error(is_away)
    elif is_away:
        response = HttpResponse(loader.render_to_string("503.html"), status=503)
    else:
        response = defaults.server_error(request)
    if is_away:
        response["Retry-After"] = str(RETRY_AFTER_S)
    return response


def _is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/")


def _wire_error(is_away: bool) -> HttpResponse:
    if is_away:
        return error_response(50001, "Error in the backend data store. Try again.")
    return error_response(500, "Internal error. If it persists, report the response's X-Request-Id.")


def _is_wire(request: HttpRequest) -> bool:
    """Return True for the wire API of the schema registry (mgmt.registry.api.confluent)."""
    return request.path_info.startswith("/registry/")
