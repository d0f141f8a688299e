"""Actions of backfills: the pages of their destination and the list of replays show them."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from mgmt import services
from mgmt.web import access
from mgmt.web.rendering import for_members, viewer_of


@for_members
@require_POST
def cancel(request: HttpRequest, pipe_id: str, backfill_id: str) -> HttpResponse:
    """Cancel a backfill that waits for its replay."""
    words = "Backfill of {} cancelled. Its events are not sent."
    return _change(request, pipe_id, backfill_id, services.cancel_backfill, words)


@for_members
@require_POST
def retry(request: HttpRequest, pipe_id: str, backfill_id: str) -> HttpResponse:
    """Let a backfill that has ended without a replay wait for one again."""
    words = "Backfill of {} requested again. It starts as soon as nothing delays it."
    return _change(request, pipe_id, backfill_id, services.retry_backfill, words)


def _change(
    request: HttpRequest, pipe_id: str, backfill_id: str, action: Callable[..., bool], words: str
) -> HttpResponse:
    """Run an action, and return to the list of replays if its form says so, else to the destination."""
    row = access.get_backfill(viewer_of(request), pipe_id, backfill_id, access.MOVE_MESSAGES)
    try:
        if action(backfill=row, by=viewer_of(request), now=timezone.now()):
            messages.success(request, words.format(row.destination), "fine")
        else:
            messages.info(request, f"Nothing was changed: the backfill is {row.state}.", "wait")
    except services.ServiceError as exc:
        messages.error(request, str(exc), "bad")
    if request.POST.get("back") == "replays":
        return redirect("console:replays", pipe_id)
    return redirect("console:destination", pipe_id, row.destination)
