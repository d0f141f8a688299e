"""Latency of a pipe."""

from dataclasses import asdict

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt import access
from mgmt.api.problems import ProblemError
from mgmt.api.schema import answers, operation
from mgmt.api.timing_serializers import TimingOut
from mgmt.api.views.base import View
from mgmt.queries.span import DEFAULT_SPAN, SPANS, span_until
from mgmt.queries.timing import timing

RANGE = OpenApiParameter("range", str, enum=list(SPANS), description=f"Up to now; {DEFAULT_SPAN} if left out.")


class TimingView(View):
    """Lags and process durations by node, and where the time went."""

    @operation("get_timing", parameters=[RANGE], responses=answers(200, TimingOut, "not-found", "parameter-invalid"))
    def get(self, request: Request, pipe: str) -> Response:
        """Lags and process durations of each node, and where the time of delivered messages went."""
        row = access.get_pipe(self.user, pipe)
        name = request.query_params.get("range", DEFAULT_SPAN)
        if name not in SPANS:
            error = {"parameter": "range", "detail": f"needs one of {', '.join(SPANS)}", "code": "parameter-invalid"}
            raise ProblemError("parameter-invalid", f"range: {error['detail']}", [error])
        found = timing(pipe_id=row.id, span=span_until(name, timezone.now()))
        return Response(TimingOut(asdict(found) | {"range": name}).data)
