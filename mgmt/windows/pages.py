"""Windows of a pipe: definition, late events, and current values of a key."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt.models import Pipe
from mgmt.pipes.page_context import pipe_context
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, show, viewer_of
from mgmt.windows.queries import (
    RecordUnavailableError,
    WindowKeyError,
    WindowSummary,
    current_of,
    key_from,
    window_lines,
)


@for_members
@require_safe
def windows(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """List the windows; `window` and one `by` per path of its key request its current values."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    lines = window_lines(pipe=pipe, now=timezone.now())
    asked = next((line for line in lines if line.name == request.GET.get("window")), None)
    typed = request.GET.getlist("by")
    context = pipe_context(pipe, "windows") | {
        "lines": lines,
        "asked": asked.name if asked else "",
        "typed": typed,
        **(_current_values(pipe, asked, typed) if asked else {}),
        "curl": as_curl(f"pipes/{pipe.id}/windows/"),
    }
    return show(request, "windows/windows.html", context, tenant=pipe.tenant)


def _current_values(pipe: Pipe, line: WindowSummary, typed: list[str]) -> dict[str, Any]:
    """Return the current values, or the reason why they are not available."""
    try:
        by = key_from(line.window, typed)
        return {"current": current_of(pipe=pipe, name=line.name, window=line.window, by=by)}
    except (WindowKeyError, RecordUnavailableError) as exc:
        return {"why_unavailable": str(exc)}
