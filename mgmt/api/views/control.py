"""The control plane, for staff: cells, pauses of controllers, the audit. For anybody else there is no such thing."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.api.control_shapes import CellIn, CellOut, ControlActionOut, ControlActionPageOut, KeepIn, PauseIn, PauseOut
from mgmt.api.paging import NumberPage, page_of, refused
from mgmt.api.schema import PAGE_PARAMETERS, answers, operation
from mgmt.api.views.base import View, body_of
from mgmt.models import Cell, ControlAction, Pause, Tenant
from mgmt.queries.control import CellLine, cell_lines, control_actions, open_pauses
from mgmt.services import add_cell, end_pause, keep_cell_for, pause_controller

CELL = OpenApiParameter("cell", str, description="Only what was done to this cell.")
CONTROLLER = OpenApiParameter("controller", str, enum=[value for value, _ in ControlAction.CONTROLLERS])


class StaffView(View):
    """A view for those who run Penstock."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """After signing in, before anything is looked up."""
        super().initial(request, *args, **kwargs)
        if not self.user.is_staff:
            raise NotFound


class CellsView(StaffView):
    """The cells."""

    @operation("list_cells", responses=answers(200, CellOut(many=True), "not-found"))
    def get(self, _request: Request) -> Response:
        """Every cell with its verdict, its lanes and who changes it. For staff."""
        return Response(CellOut(cell_lines(timezone.now()), many=True).data)

    @operation(
        "add_cell",
        request=CellIn,
        responses=answers(201, CellOut, "invalid", "not-found", "body-too-large", "media-type"),
    )
    def post(self, request: Request) -> Response:
        """Have another cell made and started, with one lane of each kind. For staff."""
        row = add_cell(**body_of(request, CellIn), by=self.user, now=timezone.now())
        return Response(CellOut(_line_of(row)).data, status=201)


class KeepCellView(StaffView):
    """Whom a cell is for."""

    @operation(
        "keep_cell",
        request=KeepIn,
        responses=answers(200, CellOut, "invalid", "not-found", "body-too-large", "media-type"),
    )
    def post(self, request: Request, cell: str) -> Response:
        """Keep a cell for one tenant, and let it sleep while nothing comes; or give it back to all. For staff."""
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


def _line_of(cell: Cell) -> CellLine:
    return next(line for line in cell_lines(timezone.now()) if line.cell.id == cell.id)


class PausesView(StaffView):
    """Controllers that are held back."""

    @operation("list_pauses", responses=answers(200, PauseOut(many=True), "not-found"))
    def get(self, _request: Request) -> Response:
        """The pauses that hold now, the oldest first. For staff."""
        return Response(PauseOut(open_pauses(timezone.now()), many=True).data)

    @operation(
        "pause_controller",
        request=PauseIn,
        responses=answers(201, PauseOut, "invalid", "not-found", "paused-already", "body-too-large", "media-type"),
    )
    def post(self, request: Request) -> Response:
        """Keep a controller from changing a cell, or any. What it is doing now is ended first. For staff."""
        body = body_of(request, PauseIn)
        named = body.pop("cell")
        cell = Cell.with_ingest.get(id=named.replace("\x00", "")) if named is not None else None
        row = pause_controller(**body, cell=cell, by=self.user, now=timezone.now())
        return Response(PauseOut(row).data, status=201)


class EndPauseView(StaffView):
    """Ending a pause."""

    @operation("end_pause", request=None, responses=answers(200, PauseOut, "not-found"))
    def post(self, _request: Request, pause: int) -> Response:
        """Let the controller go on; of no effect if it does already. For staff."""
        row = Pause.objects.select_related("by").get(id=pause)
        end_pause(pause=row, by=self.user, now=timezone.now())
        row.refresh_from_db()
        return Response(PauseOut(row).data)


class ControlActionsView(StaffView):
    """The audit."""

    @operation(
        "list_control_actions",
        parameters=[CONTROLLER, CELL, *PAGE_PARAMETERS],
        responses=answers(200, ControlActionPageOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request) -> Response:
        """What was done to cells and pipes, and what was refused, newest first. For staff."""
        controller, cell = (request.query_params.get(name, "") for name in ("controller", "cell"))
        if controller not in ("", *dict(ControlAction.CONTROLLERS)):
            raise refused("controller", f"needs one of {', '.join(dict(ControlAction.CONTROLLERS))}")
        asked = control_actions(controller=controller, cell=cell.replace("\x00", ""))
        rows, paginator = page_of(asked, request, NumberPage())
        return paginator.get_paginated_response(ControlActionOut(rows, many=True).data)
