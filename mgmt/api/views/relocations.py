"""Pipes that are moved between cells, for staff."""

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.api.paging import NumberPage, page_of
from mgmt.api.relocation_shapes import RelocationIn, RelocationOut, RelocationPageOut
from mgmt.api.schema import PAGE_PARAMETERS, answers, operation
from mgmt.api.views.base import body_of
from mgmt.api.views.control import StaffView
from mgmt.models import Cell, Pipe, Relocation
from mgmt.queries.relocations import relocations
from mgmt.services import give_up_relocation, request_relocation


class RelocationsView(StaffView):
    """All of them."""

    @operation(
        "list_relocations",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, RelocationPageOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request) -> Response:
        """Pipes on their way to another cell, and those that have come, newest first. For staff."""
        rows, paginator = page_of(relocations(), request, NumberPage())
        return paginator.get_paginated_response(RelocationOut(rows, many=True).data)

    @operation(
        "move_pipe",
        request=RelocationIn,
        responses=answers(
            201,
            RelocationOut,
            "invalid",
            "not-found",
            "not-movable",
            "relocation-under-way",
            "body-too-large",
            "media-type",
        ),
    )
    def post(self, request: Request) -> Response:
        """Ask that a pipe be moved to another cell, under traffic. For staff."""
        body = body_of(request, RelocationIn)
        pipe, cell = (body.pop(name).replace("\x00", "") for name in ("pipe", "cell"))
        pipe, target = Pipe.objects.get(id=pipe), Cell.objects.get(id=cell)
        row = request_relocation(pipe=pipe, target=target, by=self.user, now=timezone.now(), **body)
        return Response(RelocationOut(row).data, status=201)


class GiveUpRelocationView(StaffView):
    """Ending one that has not been switched."""

    @operation("give_up_relocation", request=None, responses=answers(200, RelocationOut, "not-found"))
    def post(self, _request: Request, relocation: int) -> Response:
        """Leave the pipe where it is; of no effect once new events go to the target. For staff."""
        row = Relocation.objects.select_related("by").get(id=relocation)
        give_up_relocation(relocation=row, says=f"given up by {self.user.username}", by=self.user, now=timezone.now())
        row.refresh_from_db()
        return Response(RelocationOut(row).data)
