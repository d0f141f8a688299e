"""Windows of a pipe: their definitions, late events, and the current values of a key."""

from typing import Any

import msgspec
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.spec.windows import WindowSpec
from mgmt.web import access
from mgmt.web.api_view import View
from mgmt.web.openapi import answers, operation
from mgmt.web.problems import ProblemError
from mgmt.windows.queries import RecordUnavailableError, WindowKeyError, current_of, key_from, window_lines, windows_of
from mgmt.windows.serializers import CurrentOut, WindowsOut

BY = OpenApiParameter(
    "by",
    str,
    many=True,
    description="Key: one value per path of the window's `by`, in order. A value that is not JSON is used as text.",
)


class WindowsView(View):
    """All windows of a pipe."""

    @operation("list_windows", responses=answers(200, WindowsOut, "not-found"))
    def get(self, _request: Request, pipe: str) -> Response:
        """List the windows of the live revision, each with the number of late events of the last day."""
        lines = window_lines(pipe=access.get_pipe(self.user, pipe), now=timezone.now())
        found = [{"name": line.name, "late": line.late, **_plain(line.window)} for line in lines]
        return Response(WindowsOut({"results": found}).data)


class CurrentView(View):
    """Current values of a window."""

    @operation(
        "get_window",
        parameters=[BY],
        responses=answers(200, CurrentOut, "not-found", "parameter-invalid", "unavailable"),
    )
    def get(self, request: Request, pipe: str, name: str) -> Response:
        """Return the current values of a key's open windows. They include events after a few seconds."""
        row = access.get_pipe(self.user, pipe)
        window = windows_of(row).get(name)
        if window is None:
            raise NotFound
        try:
            by = key_from(window, request.query_params.getlist("by"))
            current = current_of(pipe=row, name=name, window=window, by=by)
        except WindowKeyError as exc:
            error = {"parameter": "by", "detail": str(exc), "code": "parameter-invalid"}
            raise ProblemError("parameter-invalid", f"by: {exc}", [error]) from exc
        except RecordUnavailableError as exc:
            raise ProblemError("unavailable", f"The current values cannot be read: {exc}.") from exc
        return Response(CurrentOut(current).data)


def _plain(window: WindowSpec) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(window)
    return {field: built[field] for field in ("span", "by", "late_s")}
