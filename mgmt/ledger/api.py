"""Latency figures of a pipe."""

from dataclasses import asdict

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.ledger.queries.bucket_range import DEFAULT_SPAN, SPANS, span_until
from mgmt.ledger.queries.timing import timing
from mgmt.ledger.serializers import TimingOut
from mgmt.web import access
from mgmt.web.api_view import View
from mgmt.web.openapi import answers, operation
from mgmt.web.problems import ProblemError

RANGE = OpenApiParameter(
    "range", str, enum=list(SPANS), description=f"Time range up to now. Default: `{DEFAULT_SPAN}`."
)


class TimingView(View):
    """Lags and process durations by node, and the breakdown of the delivery time."""

    @operation("get_timing", parameters=[RANGE], responses=answers(200, TimingOut, "not-found", "parameter-invalid"))
    def get(self, request: Request, pipe: str) -> Response:
        """Return the lags and process durations of each node, and the breakdown of the time of delivered messages."""
        row = access.get_pipe(self.user, pipe)
        name = request.query_params.get("range", DEFAULT_SPAN)
        if name not in SPANS:
            error = {"parameter": "range", "detail": f"needs one of {', '.join(SPANS)}", "code": "parameter-invalid"}
            raise ProblemError("parameter-invalid", f"range: {error['detail']}", [error])
        found = timing(pipe_id=row.id, span=span_until(name, timezone.now()))
        return Response(TimingOut(asdict(found) | {"range": name}).data)
