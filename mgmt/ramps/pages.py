"""Ramp of a revision, with the figures of both revisions and its messages; actions on ramps and admissions."""

from collections.abc import Callable
from functools import partial
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from mgmt import services
from mgmt.deliveries.cause_wording import BINS
from mgmt.models import Ramp
from mgmt.pipes.page_context import pipe_context
from mgmt.ramps.queries import MOST_UNITS, bins_of, in_bin, shown, step_lines, taken_by
from mgmt.web import access
from mgmt.web.export import KINDS, MOST_ROWS, export
from mgmt.web.rendering import act_and_report, as_curl, for_members, once, show, viewer_of

_LIVE: Final = {"head": "pipes/base.html", "ramp": "ramps/ramp.html", "taken": "ramps/ramp.html"}
_COLUMNS: Final = ("position", "child", "destination", "bin")
MOST_REASON: Final = 200


@for_members
@require_safe
def ramp(request: HttpRequest, pipe_id: str, number: int) -> HttpResponseBase:
    """Show a ramp; `bin` filters the messages of the revision, `format` exports them."""
    row = access.get_ramp(viewer_of(request), pipe_id, number)
    pipe = row.revision.pipe
    chosen = request.GET.get("bin", "") if request.GET.get("bin", "") in BINS else ""
    get_units = once(partial(taken_by, row))
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, shown(in_bin(get_units(), chosen), MOST_ROWS), _COLUMNS, name=f"taken-{pipe.id}-{number}")
    context = pipe_context(pipe, "revisions") | {
        "ramp": row,
        "get_steps": once(lambda: step_lines(row, timezone.now())),
        "get_bins": once(lambda: bins_of(get_units())),
        "get_units": once(lambda: shown(in_bin(get_units(), chosen), MOST_UNITS)),
        "chosen": chosen,
        "most": MOST_UNITS,
        "curl": as_curl(f"pipes/{pipe.id}/revisions/{number}/ramp/"),
    }
    return show(request, "ramps/ramp.html", context, tenant=pipe.tenant, live=_LIVE)


@for_members
@require_POST
def hold_ramp(request: HttpRequest, pipe_id: str, number: int) -> HttpResponse:
    """Hold a ramp at its current share."""
    action = partial(services.hold_ramp, by=viewer_of(request), now=timezone.now())
    return _steer(request, pipe_id, number, action, "stays at its share until you resume the ramp.")


@for_members
@require_POST
def resume_ramp(request: HttpRequest, pipe_id: str, number: int) -> HttpResponse:
    """Resume a ramp."""
    action = partial(services.resume_ramp, by=viewer_of(request), now=timezone.now())
    return _steer(request, pipe_id, number, action, "continues its ramp.")


@for_members
@require_POST
def roll_back_ramp(request: HttpRequest, pipe_id: str, number: int) -> HttpResponse:
    """Roll back a ramp: the stable revision processes all keys again."""
    reason = request.POST.get("reason", "").strip()[:MOST_REASON]
    action = partial(services.roll_back_ramp, by=viewer_of(request), now=timezone.now(), reason=reason)
    return _steer(request, pipe_id, number, action, "is being rolled back: the live revision processes all keys again.")


def _steer(request: HttpRequest, pipe_id: str, number: int, action: Callable[..., object], words: str) -> HttpResponse:
    row: Ramp = access.get_ramp(viewer_of(request), pipe_id, number, access.STEER_RAMP)
    act_and_report(request, partial(action, ramp=row), f"{row.revision} {words}")
    return redirect("console:ramp", pipe_id, number)


@for_members
@require_POST
def hold_admission(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Hold the admission at its current share."""
    return _admit(request, pipe_id, services.hold_admission, "stays at its share until you resume the admission.")


@for_members
@require_POST
def resume_admission(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Resume the admission."""
    return _admit(request, pipe_id, services.resume_admission, "continues its admission.")


def _admit(request: HttpRequest, pipe_id: str, action: Callable[..., object], words: str) -> HttpResponse:
    viewer = viewer_of(request)
    row = access.get_admission(viewer, pipe_id, access.STEER_RAMP)
    act_and_report(request, partial(action, admission=row, by=viewer, now=timezone.now()), f"{row.pipe.name} {words}")
    return redirect("console:pipe", pipe_id)
