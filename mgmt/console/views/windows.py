"""A pipe's windows: what each counts, how many events came too late for it, and what it says now of a key."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt import access
from mgmt.console.pages import as_curl, for_members, show, viewer_of
from mgmt.console.views.pipe import shared
from mgmt.models import Pipe
from mgmt.queries.windows import RecordsAway, WindowLine, WrongKey, current_of, key_from, window_lines


@for_members
@require_safe
def windows(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """All of them; `window` and a `by` for each path of its key ask what one says now."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    lines = window_lines(pipe=pipe, now=timezone.now())
    asked = next((line for line in lines if line.name == request.GET.get("window")), None)
    typed = request.GET.getlist("by")
    context = shared(pipe, "windows") | {
        "lines": lines,
        "asked": asked.name if asked else "",
        "typed": typed,
        **(_said(pipe, asked, typed) if asked else {}),
        "curl": as_curl(request, f"pipes/{pipe.id}/windows/"),
    }
    return show(request, "windows.html", context, tenant=pipe.tenant)


def _said(pipe: Pipe, line: WindowLine, typed: list[str]) -> dict[str, Any]:
    """What it says now, or why that cannot be told."""
    try:
        by = key_from(line.window, typed)
        return {"said": current_of(pipe=pipe, name=line.name, window=line.window, by=by)}
    except (WrongKey, RecordsAway) as exc:
        return {"why_not": str(exc)}
