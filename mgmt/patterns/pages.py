"""Baseline and anomalies of a pipe, and the fields whose drift it ignores."""

from functools import partial
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from mgmt import services
from mgmt.models import Finding
from mgmt.patterns.queries import MOST_FINDINGS, findings_of, ignored_fields, pattern_now
from mgmt.pipes.page_context import pipe_context
from mgmt.web import access
from mgmt.web.export import KINDS, MOST_ROWS, export
from mgmt.web.rendering import act_and_report, as_curl, for_members, once, show, viewer_of

_LIVE: Final = {"head": "pipes/base.html", **dict.fromkeys(("now", "findings"), "patterns/patterns.html")}
_COLUMNS: Final = ("kind", "since", "ended_at", "told_at", "words", "silenced")


@for_members
@require_safe
def patterns(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """Show current signals with their baseline, and the findings; `format` exports the findings."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, map(_row, findings_of(pipe)[:MOST_ROWS]), _COLUMNS, name=f"findings-{pipe.id}")
    context = pipe_context(pipe, "patterns") | {
        "get_now": once(partial(pattern_now, pipe)),
        "get_findings": once(lambda: list(findings_of(pipe)[:MOST_FINDINGS])),
        "get_ignored": once(lambda: list(ignored_fields(pipe))),
        "most": MOST_FINDINGS,
        "curl": as_curl(f"pipes/{pipe.id}/patterns/"),
    }
    return show(request, "patterns/patterns.html", context, tenant=pipe.tenant, live=_LIVE)


@for_members
@require_POST
def ignore_field(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Ignore the drift of a numeric field."""
    by = viewer_of(request)
    pipe = access.get_pipe(by, pipe_id, access.HANDLE_ALERT)
    source, path = request.POST.get("source", ""), request.POST.get("field", "")
    act_and_report(
        request,
        lambda: services.ignore_field(pipe=pipe, source=source, path=path, by=by, now=timezone.now()),
        f"Field {path} of source {source} is ignored: its values open no alert.",
    )
    return redirect("console:patterns", pipe_id)


@for_members
@require_POST
def watch_field(request: HttpRequest, pipe_id: str, ignored_id: str) -> HttpResponse:
    """Watch an ignored field again."""
    row = access.get_ignored_field(viewer_of(request), pipe_id, ignored_id, access.HANDLE_ALERT)
    act_and_report(
        request, lambda: services.watch_field(ignored=row, by=viewer_of(request)), f"Field {row.path} is watched again."
    )
    return redirect("console:patterns", pipe_id)


def _row(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in _COLUMNS}
