"""Usage of all tenants, including unattributed CPU time, for staff."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt.usage.queries import RANGES, UsageLine, by_group, by_tenant, days_until, rows_of, total_of
from mgmt.web.export import KINDS, export
from mgmt.web.rendering import for_staff, once, show, tenant_of

MOST_TENANTS: Final = 200
_COLUMNS: Final = ("tenant", "events", "in_bytes", "runs", "attempts", "out_bytes", "cpu_us", "refused")


@for_staff
@require_safe
def spending(request: HttpRequest) -> HttpResponseBase:
    """Show usage by tenant, and by cell and process type; `range` is the period, `format` exports the tenants."""
    days = days_until(request.GET.get("range", ""), timezone.now().date())
    rows = rows_of(days)
    get_tenants = once(lambda: by_tenant(rows))
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, _rows(get_tenants()), _COLUMNS, name="usage-by-tenant")
    context = {
        "tab": "usage",
        "days": days,
        "ranges": [(name, f"range={name}") for name in RANGES],
        "query": f"range={days.name}",
        "get_total": once(lambda: total_of(rows)),
        "get_tenants": once(lambda: get_tenants()[:MOST_TENANTS]),
        "get_more": once(lambda: len(get_tenants()[MOST_TENANTS:])),
        "get_groups": once(lambda: by_group(rows)),
    }
    return show(request, "usage/staff.html", context, tenant=tenant_of(request))


def _rows(lines: list[UsageLine]) -> Iterator[dict[str, Any]]:
    for line in lines:
        yield {"tenant": line.about} | asdict(line.amount)
