"""Migrations of pipes between cells, for staff."""

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.cells.queries.pipe_migrations import pipe_migrations
from mgmt.cells.serializers.pipe_migration_serializers import RelocationIn, RelocationOut, RelocationPageOut
from mgmt.models import Cell, Pipe, PipeMigration
from mgmt.services import cancel_migration, request_migration
from mgmt.web.api_view import StaffView, body_of
from mgmt.web.openapi import PAGE_PARAMETERS, answers, operation
from mgmt.web.pagination import NumberPage, page_of


class RelocationsView(StaffView):
    """All migrations of pipes."""

    @operation(
        "list_relocations",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, RelocationPageOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request) -> Response:
        """List the migrations of pipes, in progress and ended, newest first. For staff."""
        rows, paginator = page_of(pipe_migrations(), request, NumberPage())
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
        """Request the migration of a pipe to another cell while traffic continues. For staff."""
        body = body_of(request, RelocationIn)
        pipe, cell = (body.pop(name).replace("\x00", "") for name in ("pipe", "cell"))
        pipe, target = Pipe.objects.get(id=pipe), Cell.objects.get(id=cell)
        row = request_migration(pipe=pipe, target=target, by=self.user, now=timezone.now(), **body)
        return Response(RelocationOut(row).data, status=201)


class GiveUpRelocationView(StaffView):
    """Cancellation of a migration that has not been switched."""

    @operation("give_up_relocation", request=None, responses=answers(200, RelocationOut, "not-found"))
    def post(self, _request: Request, relocation: int) -> Response:
        """Cancel a migration. No effect once new events are sent to the target cell. For staff."""
        row = PipeMigration.objects.select_related("by").get(id=relocation)
        cancel_migration(migration=row, says=f"cancelled by {self.user.username}", by=self.user, now=timezone.now())
        row.refresh_from_db()
        return Response(RelocationOut(row).data)
