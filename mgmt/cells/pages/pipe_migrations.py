"""Migration of pipes between cells: requested and cancelled on the page of the source cell."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from mgmt import services
from mgmt.cells.pages.cells import page_of_cell
from mgmt.models import Cell, Pipe, PipeMigration
from mgmt.web.rendering import for_staff, viewer_of


@for_staff
@require_POST
def relocate(request: HttpRequest, cell_id: str) -> HttpResponse:
    """Request the migration of a pipe to another cell."""
    row, posted = Cell.objects.get(id=cell_id.replace("\x00", "")), request.POST
    try:
        asked = services.request_migration(
            pipe=Pipe.objects.get(id=posted.get("pipe", "").replace("\x00", ""), cell=row),
            target=Cell.objects.get(id=posted.get("to", "").replace("\x00", "")),
            reason=posted.get("reason", ""),
            by=viewer_of(request),
            now=timezone.now(),
        )
    except services.InvalidValue as exc:
        return page_of_cell(request, row, error=f"{exc.field}: {exc.reason}.", typed=posted.dict())
    except services.ServiceError as exc:
        return page_of_cell(request, row, error=str(exc), typed=posted.dict())
    messages.success(request, f"Migration of {asked.pipe.name} to {asked.target_id} requested.", "fine")
    return redirect("console:cell", row.id)


@for_staff
@require_POST
def give_up(request: HttpRequest, number: int) -> HttpResponse:
    """Cancel a migration that has not been switched yet."""
    row, viewer = PipeMigration.objects.get(id=min(number, 2**63 - 1)), viewer_of(request)
    words = f"cancelled by {viewer.username}"
    if services.cancel_migration(migration=row, says=words, by=viewer, now=timezone.now()):
        messages.success(request, "Migration cancelled.", "fine")
    return redirect("console:cell", row.source_id)
