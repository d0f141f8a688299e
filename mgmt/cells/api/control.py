"""Control plane for staff: cells, pauses of controllers, the control audit. Other users get 404."""

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.cells.queries.control import CellSummary, cell_lines, control_actions, open_pauses
from mgmt.cells.serializers.control_serializers import (
    CellIn,
    CellOut,
    ControlActionOut,
    ControlActionPageOut,
    KeepIn,
    PauseIn,
    PauseOut,
)
from mgmt.models import Cell, ControlAction, Pause, Tenant
from mgmt.services import add_cell, keep_cell_for, pause_controller, resume_controller
from mgmt.web.api_view import StaffView, body_of
from mgmt.web.openapi import PAGE_PARAMETERS, answers, operation
from mgmt.web.pagination import NumberPage, page_of, refused

CELL = OpenApiParameter("cell", str, description="Only changes of this cell.")
CONTROLLER = OpenApiParameter("controller", str, enum=[value for value, _ in ControlAction.CONTROLLERS])


class CellsView(StaffView):
    """All cells."""

    @operation("list_cells", responses=answers(200, CellOut(many=True), "not-found"))
    def get(self, _request: Request) -> Response:
        """List the cells, each with its verdict, lanes, lease and pauses. For staff."""
        return Response(CellOut(cell_lines(timezone.now()), many=True).data)

    @operation(
        "add_cell",
        request=CellIn,
        responses=answers(201, CellOut, "invalid", "not-found", "body-too-large", "media-type"),
    )
    def post(self, request: Request) -> Response:
        """Create and start a cell with one lane of each kind. For staff."""
        row = add_cell(**body_of(request, CellIn), by=self.user, now=timezone.now())
        return Response(CellOut(_line_of(row)).data, status=201)


class KeepCellView(StaffView):
    """Dedication of a cell to one tenant."""

    @operation(
        "keep_cell",
        request=KeepIn,
        responses=answers(200, CellOut, "invalid", "not-found", "body-too-large", "media-type"),
    )
    def post(self, request: Request, cell: str) -> Response:
        """Dedicate a cell to one tenant, with an optional sleep when idle, or make it available to all. For staff."""
        body = body_of(request, KeepIn)
        tenant = body.pop("tenant")
        row = keep_cell_for(
            cell=Cell.objects.get(id=cell.replace("\x00", "")),
            tenant=Tenant.objects.get(id=tenant.replace("\x00", "")) if tenant is not None else None,
            by=self.user,
            now=timezone.now(),
            **body,
        )
        return Response(CellOut(_line_of(row)).data)


def _line_of(cell: Cell) -> CellSummary:
    return next(line for line in cell_lines(timezone.now()) if line.cell.id == cell.id)


class PausesView(StaffView):
    """Pauses of controllers."""

    @operation("list_pauses", responses=answers(200, PauseOut(many=True), "not-found"))
    def get(self, _request: Request) -> Response:
        """List the pauses in effect, oldest first. For staff."""
        return Response(PauseOut(open_pauses(timezone.now()), many=True).data)

    @operation(
        "pause_controller",
        request=PauseIn,
        responses=answers(201, PauseOut, "invalid", "not-found", "paused-already", "body-too-large", "media-type"),
    )
    def post(self, request: Request) -> Response:
        """Pause a controller for one cell or all cells. A change in progress is completed first. For staff."""
        body = body_of(request, PauseIn)
        named = body.pop("cell")
        cell = Cell.with_ingest.get(id=named.replace("\x00", "")) if named is not None else None
        row = pause_controller(**body, cell=cell, by=self.user, now=timezone.now())
        return Response(PauseOut(row).data, status=201)


class EndPauseView(StaffView):
    """End of a pause."""

    @operation("end_pause", request=None, responses=answers(200, PauseOut, "not-found"))
    def post(self, _request: Request, pause: int) -> Response:
        """End a pause. Ending an ended pause changes nothing. For staff."""
        row = Pause.objects.select_related("by").get(id=pause)
        resume_controller(pause=row, by=self.user, now=timezone.now())
        row.refresh_from_db()
        return Response(PauseOut(row).data)


class ControlActionsView(StaffView):
    """The control audit."""

    @operation(
        "list_control_actions",
        parameters=[CONTROLLER, CELL, *PAGE_PARAMETERS],
        responses=answers(200, ControlActionPageOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request) -> Response:
        """List the changes of cells and pipes, and the refused changes, newest first. For staff."""
        controller, cell = (request.query_params.get(name, "") for name in ("controller", "cell"))
        if controller not in ("", *dict(ControlAction.CONTROLLERS)):
            raise refused("controller", f"needs one of {', '.join(dict(ControlAction.CONTROLLERS))}")
        asked = control_actions(controller=controller, cell=cell.replace("\x00", ""))
        rows, paginator = page_of(asked, request, NumberPage())
        return paginator.get_paginated_response(ControlActionOut(rows, many=True).data)
