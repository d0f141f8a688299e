"""Moving pipes between cells: asked for on the page of the cell that a pipe is on, and given up there."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from mgmt import services
from mgmt.console.pages import for_staff, viewer_of
from mgmt.console.views.staff.cells import page_of_cell
from mgmt.models import Cell, Pipe, Relocation


@for_staff
@require_POST
def relocate(request: HttpRequest, cell_id: str) -> HttpResponse:
    """Asks that a pipe of this cell be moved to another."""
    row, posted = Cell.objects.get(id=cell_id.replace("\x00", "")), request.POST
    try:
        asked = services.request_relocation(
            pipe=Pipe.objects.get(id=posted.get("pipe", "").replace("\x00", ""), cell=row),
            target=Cell.objects.get(id=posted.get("to", "").replace("\x00", "")),
            reason=posted.get("reason", ""),
            by=viewer_of(request),
            now=timezone.now(),
        )
    except services.InvalidValue as exc:
        return page_of_cell(request, row, error=f"{exc.field}: {exc.reason}.", typed=posted.dict())
    except services.Refused as exc:
        return page_of_cell(request, row, error=str(exc), typed=posted.dict())
    messages.success(request, f"{asked.pipe.name} is to be moved to {asked.target_id}.", "fine")
    return redirect("console:cell", row.id)


@for_staff
@require_POST
def give_up(request: HttpRequest, number: int) -> HttpResponse:
    """Ends one that has not been switched."""
    row, viewer = Relocation.objects.get(id=min(number, 2**63 - 1)), viewer_of(request)
    words = f"given up by {viewer.username}"
    if services.give_up_relocation(relocation=row, says=words, by=viewer, now=timezone.now()):
        messages.success(request, "It stays where it is.", "fine")
    return redirect("console:cell", row.source_id)
