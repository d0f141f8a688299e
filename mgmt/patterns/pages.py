"""Baseline and anomalies of a pipe."""

from functools import partial
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from mgmt.models import Finding
from mgmt.patterns.queries import MOST_FINDINGS, findings_of, pattern_now
from mgmt.pipes.page_context import pipe_context
from mgmt.web import access
from mgmt.web.export import KINDS, MOST_ROWS, export
from mgmt.web.rendering import as_curl, for_members, once, part_of, show, viewer_of

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
        "most": MOST_FINDINGS,
        "curl": as_curl(request, f"pipes/{pipe.id}/patterns/"),
    }
    template, part = part_of(request, dict.fromkeys(("now", "findings"), "patterns/patterns.html")) or (
        "patterns/patterns.html",
        "",
    )
    return show(request, template, context, tenant=pipe.tenant, part=part)


def _row(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in _COLUMNS}
