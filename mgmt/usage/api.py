"""Usage of a pipe and of a tenant, and for staff of all tenants."""

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.usage.queries import (
    DEFAULT_RANGE,
    RANGES,
    DayRange,
    by_day,
    by_group,
    by_pipe,
    by_tenant,
    days_until,
    rows_of,
    total_of,
)
from mgmt.usage.serializers import TENANT_USAGE_EXAMPLE, AllUsageOut, OneTenantUsageOut, PipeUsageOut
from mgmt.web import access
from mgmt.web.api_view import StaffView, View
from mgmt.web.openapi import LIMIT, answers, example, operation
from mgmt.web.pagination import MAX_LIMIT, choice_of, limit_of

RANGE = OpenApiParameter("range", str, enum=list(RANGES), description=f"Days up to today. Default: `{DEFAULT_RANGE}`.")


class PipeUsageView(View):
    """Usage of one pipe."""

    @operation("get_usage", parameters=[RANGE], responses=answers(200, PipeUsageOut, "parameter-invalid", "not-found"))
    def get(self, request: Request, pipe: str) -> Response:
        """Return a pipe's accepted events, sent requests and CPU time by day. Figures are up to a minute old."""
        rows = rows_of(_days(request), pipe=access.get_pipe(self.user, pipe))
        return Response(PipeUsageOut({"total": total_of(rows), "results": by_day(rows)}).data)


class TenantUsageView(View):
    """Usage of one tenant."""

    @operation(
        "get_tenant_usage",
        parameters=[RANGE, LIMIT],
        responses=answers(200, OneTenantUsageOut, "not-found"),
        examples=[example(TENANT_USAGE_EXAMPLE)],
    )
    def get(self, request: Request, tenant: str) -> Response:
        """Return the usage of a tenant's pipes, by day and by pipe. `limit` applies to the pipes."""
        row, days, limit = access.get_tenant(self.user, tenant), _days(request), limit_of(request, MAX_LIMIT)
        rows = rows_of(days, tenant=row)
        pipes = by_pipe(rows)
        found = {"range": days.name, "total": total_of(rows), "days": by_day(rows), "pipes": pipes[:limit]}
        return Response(OneTenantUsageOut(found | {"more_pipes": len(pipes[limit:])}).data)


class AllUsageView(StaffView):
    """Usage of all tenants."""

    @operation(
        "get_all_usage", parameters=[RANGE], responses=answers(200, AllUsageOut, "parameter-invalid", "not-found")
    )
    def get(self, request: Request) -> Response:
        """Return the usage of all tenants, largest first, and of each kind of process in each cell. For staff."""
        rows = rows_of(_days(request))
        found = {"total": total_of(rows), "tenants": by_tenant(rows), "groups": by_group(rows)}
        return Response(AllUsageOut(found).data)


def _days(request: Request) -> DayRange:
    return days_until(choice_of(request, "range", list(RANGES), DEFAULT_RANGE), timezone.now().date())
