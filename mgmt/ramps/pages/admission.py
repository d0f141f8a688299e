"""Actions on the gradual admission of a pipe: hold and resume."""

from collections.abc import Callable
from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from mgmt import services
from mgmt.web import access
from mgmt.web.rendering import act_and_report, for_members, viewer_of


@for_members
@require_POST
def hold_admission(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Hold the admission at its current share."""
    return _steer(request, pipe_id, services.hold_admission, "stays at its share until you resume the admission.")


@for_members
@require_POST
def resume_admission(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Resume the admission."""
    return _steer(request, pipe_id, services.resume_admission, "continues its admission.")


def _steer(request: HttpRequest, pipe_id: str, action: Callable[..., object], words: str) -> HttpResponse:
    viewer = viewer_of(request)
    row = access.get_admission(viewer, pipe_id, access.STEER_RAMP)
    act_and_report(request, partial(action, admission=row, by=viewer, now=timezone.now()), f"{row.pipe.name} {words}")
    return redirect("console:pipe", pipe_id)
