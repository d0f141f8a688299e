"""Status board, losses of all tenants, common causes and histories of controllers. For staff; other users get 404."""

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.alerts.queries.common_causes import common_causes
from mgmt.cells.queries.board import LOSS_RANGE, board
from mgmt.cells.queries.control import history_of
from mgmt.cells.serializers.board_serializers import AllLossesOut, BoardOut, CommonCauseOut, HistoryOut
from mgmt.ledger.queries.all_losses import all_losses, cursor_of
from mgmt.ledger.queries.bucket_range import SPANS, span_until
from mgmt.models import ControlAction, Controller
from mgmt.web.api_view import StaffView
from mgmt.web.openapi import LIMIT, answers, operation
from mgmt.web.pagination import MAX_LIMIT, choice_of, limit_of, number_in, refused, text_of

RANGE = OpenApiParameter("range", str, enum=list(SPANS), description=f"Time range up to now. Default: `{LOSS_RANGE}`.")
BEFORE = OpenApiParameter("before", str, description="Continues after the page whose `next_before` this is.")
BEFORE_ID = OpenApiParameter("before", int, description="Continues after the page whose `next_before` this is.")
OUTCOME = OpenApiParameter("outcome", str, enum=ControlAction.Outcome.values, description="Only this outcome.")
MOST_ID = 999_999_999


class StatusBoardView(StaffView):
    """The status board."""

    @operation("get_status_board", responses=answers(200, BoardOut, "not-found"))
    def get(self, _request: Request) -> Response:
        """Return what is broken, since when, who is affected and what to do; cells, controllers, brokers. For staff."""
        return Response(BoardOut(board(timezone.now())).data)


class AllLossesView(StaffView):
    """Losses of all tenants."""

    @operation(
        "list_all_losses",
        parameters=[RANGE, LIMIT, BEFORE],
        responses=answers(200, AllLossesOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request) -> Response:
        """List the sealed minutes of all tenants that lost messages, newest first, with the loss by node. For staff."""
        span = span_until(choice_of(request, "range", list(SPANS), LOSS_RANGE), timezone.now())
        asked, limit = text_of(request, "before"), limit_of(request, MAX_LIMIT)
        before = cursor_of(asked)
        if asked and before is None:
            raise refused("before", "needs the `next_before` of a page")
        found = all_losses(span, before=before, most=limit)
        body = {"range": span.name, "results": found.lines, "next_before": found.next_before}
        return Response(AllLossesOut(body).data)


class CommonCausesView(StaffView):
    """Failures that several tenants share."""

    @operation("list_common_causes", responses=answers(200, CommonCauseOut(many=True), "not-found"))
    def get(self, _request: Request) -> Response:
        """List failures with the same cause, status, host and response at two tenants or more. For staff."""
        return Response(CommonCauseOut(common_causes(), many=True).data)


class ControllerHistoryView(StaffView):
    """History of a controller."""

    @operation(
        "list_controller_history",
        parameters=[OUTCOME, BEFORE_ID],
        responses=answers(200, HistoryOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request, controller: str) -> Response:
        """List the changes and refusals of a controller, newest first; repeated refusals share a line. For staff."""
        if controller not in Controller.values:
            raise NotFound
        outcome = choice_of(request, "outcome", ControlAction.Outcome.values)
        before = number_in(request, "before", 0, least=1, most=MOST_ID)
        found = history_of(controller, outcome=outcome, before=before)
        return Response(HistoryOut({"results": found.lines, "next_before": found.next_before}).data)
