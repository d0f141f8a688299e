"""Windows: which a pipe has, how many events were late for them, and what they say now of a key."""

from typing import Any

import msgspec
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.spec.windows import Window
from mgmt import access
from mgmt.api.problems import ProblemError
from mgmt.api.schema import answers, operation
from mgmt.api.views.base import View
from mgmt.api.window_shapes import CurrentOut, WindowsOut
from mgmt.queries.windows import RecordsAway, WrongKey, current_of, key_from, window_lines, windows_of

BY = OpenApiParameter(
    "by",
    str,
    many=True,
    description="The key: a value for each path of the window's `by`, in their order. JSON, or else taken as text.",
)


class WindowsView(View):
    """All windows of a pipe."""

    @operation("list_windows", responses=answers(200, WindowsOut, "not-found"))
    def get(self, _request: Request, pipe: str) -> Response:
        """The windows of the live revision, with the events of the last day that came too late for them."""
        lines = window_lines(pipe=access.get_pipe(self.user, pipe), now=timezone.now())
        found = [{"name": line.name, "late": line.late, **_plain(line.window)} for line in lines]
        return Response(WindowsOut({"results": found}).data)


class CurrentView(View):
    """What a window says now."""

    @operation(
        "get_window",
        parameters=[BY],
        responses=answers(200, CurrentOut, "not-found", "parameter-invalid", "unavailable"),
    )
    def get(self, request: Request, pipe: str, name: str) -> Response:
        """The values of a key's open windows so far, seconds after its events came."""
        row = access.get_pipe(self.user, pipe)
        window = windows_of(row).get(name)
        if window is None:
            raise NotFound
        try:
            by = key_from(window, request.query_params.getlist("by"))
            said = current_of(pipe=row, name=name, window=window, by=by)
        except WrongKey as exc:
            error = {"parameter": "by", "detail": str(exc), "code": "parameter-invalid"}
            raise ProblemError("parameter-invalid", f"by: {exc}", [error]) from exc
        except RecordsAway as exc:
            raise ProblemError("unavailable", f"What it says now cannot be read: {exc}.") from exc
        return Response(CurrentOut(said).data)


def _plain(window: Window) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(window)
    return {field: built[field] for field in ("span", "by", "late_s")}
