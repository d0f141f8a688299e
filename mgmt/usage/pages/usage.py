"""Usage of a tenant's pipes, by pipe and by day."""

from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt.quotas.queries import quota_lines
from mgmt.usage.queries import RANGES, by_day, by_day_and_pipe, by_pipe, days_until, rows_of, total_of
from mgmt.web import access
from mgmt.web.export import KINDS, MOST_ROWS, export
from mgmt.web.rendering import as_curl, for_members, once, selected_tenant, show, viewer_of

MOST_PIPES: Final = 100
COLUMNS: Final = (
    "day", "pipe", "name", "events", "in_bytes", "runs", "attempts", "out_bytes", "cpu_us", "refused",
)  # fmt: skip


@for_members
@require_safe
def usage(request: HttpRequest) -> HttpResponseBase:
    """Show the usage of the selected tenant or of one `pipe`; `range` is the period, `format` exports it."""
    viewer, tenant = viewer_of(request), selected_tenant(request)
    named = request.GET.get("pipe", "")
    pipe = access.get_pipe(viewer, named) if named else None
    days = days_until(request.GET.get("range", ""), timezone.now().date())
    rows = rows_of(days, tenant=tenant, pipe=pipe)
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, by_day_and_pipe(rows, MOST_ROWS), COLUMNS, name="usage")
    chosen = {"pipe": pipe.id} if pipe else {}
    get_pipes = once(lambda: by_pipe(rows))
    context = {
        "days": days,
        "pipe": pipe,
        "ranges": [(name, urlencode({**chosen, "range": name})) for name in RANGES],
        "query": urlencode({**chosen, "range": days.name}),
        "get_quotas": once(lambda: quota_lines(tenant, timezone.now())),
        "get_total": once(lambda: total_of(rows)),
        "get_days": once(lambda: by_day(rows)),
        "get_pipes": once(lambda: get_pipes()[:MOST_PIPES]),
        "get_more": once(lambda: len(get_pipes()[MOST_PIPES:])),
        "curl": as_curl(f"pipes/{pipe.id}/usage/" if pipe else f"tenants/{tenant.id}/usage/"),
    }
    return show(request, "usage/usage.html", context, tenant=pipe.tenant if pipe else tenant)
