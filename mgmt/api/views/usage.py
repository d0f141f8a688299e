"""Usage: what a pipe took of the machine, and for staff what everybody did."""

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt import access
from mgmt.api.paging import refused
from mgmt.api.schema import answers, operation
from mgmt.api.usage_shapes import AllUsageOut, PipeUsageOut
from mgmt.api.views.base import View
from mgmt.api.views.control import StaffView
from mgmt.queries.usage import DEFAULT_RANGE, RANGES, Days, by_day, by_group, by_tenant, days_until, rows_of, total_of

RANGE = OpenApiParameter("range", str, enum=list(RANGES), description=f"Up to today; {DEFAULT_RANGE} if left out.")


class PipeUsageView(View):
    """Of one pipe."""

    @operation("get_usage", parameters=[RANGE], responses=answers(200, PipeUsageOut, "parameter-invalid", "not-found"))
    def get(self, request: Request, pipe: str) -> Response:
        """What the pipe took in, sent and used of our processors, by day. Up to a minute old."""
        rows = rows_of(_days(request), pipe=access.get_pipe(self.user, pipe))
        return Response(PipeUsageOut({"total": total_of(rows), "results": by_day(rows)}).data)


class AllUsageView(StaffView):
    """Of everybody."""

    @operation(
        "get_all_usage", parameters=[RANGE], responses=answers(200, AllUsageOut, "parameter-invalid", "not-found")
    )
    def get(self, request: Request) -> Response:
        """What all tenants took, the largest first, and what each kind of process used in each cell. For staff."""
        rows = rows_of(_days(request))
        found = {"total": total_of(rows), "tenants": by_tenant(rows), "groups": by_group(rows)}
        return Response(AllUsageOut(found).data)


def _days(request: Request) -> Days:
    name = request.query_params.get("range", DEFAULT_RANGE)
    if name not in RANGES:
        raise refused("range", f"needs one of {', '.join(RANGES)}")
    return days_until(name, timezone.now().date())
