"""The hand on a pipe that is let in by shares: hold it where it is, let it go on."""

from collections.abc import Callable
from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from mgmt import access, services
from mgmt.console.pages import do_and_say, for_members, viewer_of


@for_members
@require_POST
def hold_admission(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Lets no more in."""
    return _steer(request, pipe_id, services.hold_admission, "lets no more in until somebody resumes it.")


@for_members
@require_POST
def resume_admission(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Lets it go on."""
    return _steer(request, pipe_id, services.resume_admission, "goes on.")


def _steer(request: HttpRequest, pipe_id: str, deed: Callable[..., object], words: str) -> HttpResponse:
    viewer = viewer_of(request)
    row = access.get_admission(viewer, pipe_id, access.STEER_RAMP)
    do_and_say(request, partial(deed, admission=row, by=viewer, now=timezone.now()), f"{row.pipe.name} {words}")
    return redirect("console:pipe", pipe_id)
