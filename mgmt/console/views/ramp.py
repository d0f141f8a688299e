"""A revision's ramp: its steps with the figures of both revisions, what it took by id, and the hand on it."""

from collections.abc import Callable
from functools import partial
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from mgmt import access, services
from mgmt.console.export import KINDS, MOST_ROWS, export
from mgmt.console.pages import as_curl, do_and_say, for_members, once, part_of, show, viewer_of
from mgmt.console.views.pipe import shared
from mgmt.console.wording import BINS
from mgmt.models import Ramp
from mgmt.queries.ramps import MOST_UNITS, bins_of, in_bin, shown, step_lines, taken_by

_PARTS: Final = {"ramp": "ramp.html", "taken": "ramp.html"}
_COLUMNS: Final = ("position", "child", "destination", "bin")
MOST_REASON: Final = 200


@for_members
@require_safe
def ramp(request: HttpRequest, pipe_id: str, number: int) -> HttpResponseBase:
    """How it goes or went; `bin` chooses among what the revision took, `format` makes a file of that."""
    row = access.get_ramp(viewer_of(request), pipe_id, number)
    pipe = row.revision.pipe
    chosen = request.GET.get("bin", "") if request.GET.get("bin", "") in BINS else ""
    get_units = once(partial(taken_by, row))
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, shown(in_bin(get_units(), chosen), MOST_ROWS), _COLUMNS, name=f"taken-{pipe.id}-{number}")
    context = shared(pipe, "revisions") | {
        "ramp": row,
        "get_steps": once(lambda: step_lines(row, timezone.now())),
        "get_bins": once(lambda: bins_of(get_units())),
        "get_units": once(lambda: shown(in_bin(get_units(), chosen), MOST_UNITS)),
        "chosen": chosen,
        "most": MOST_UNITS,
        "curl": as_curl(request, f"pipes/{pipe.id}/revisions/{number}/ramp/"),
    }
    template, part = part_of(request, _PARTS) or ("ramp.html", "")
    return show(request, template, context, tenant=pipe.tenant, part=part)


@for_members
@require_POST
def hold_ramp(request: HttpRequest, pipe_id: str, number: int) -> HttpResponse:
    """Lets it go no further."""
    deed = partial(services.hold_ramp, by=viewer_of(request), now=timezone.now())
    return _steer(request, pipe_id, number, deed, "stays at its share until somebody resumes it.")


@for_members
@require_POST
def resume_ramp(request: HttpRequest, pipe_id: str, number: int) -> HttpResponse:
    """Lets it go on."""
    deed = partial(services.resume_ramp, by=viewer_of(request), now=timezone.now())
    return _steer(request, pipe_id, number, deed, "goes on.")


@for_members
@require_POST
def roll_back_ramp(request: HttpRequest, pipe_id: str, number: int) -> HttpResponse:
    """Gives all keys back to the stable revision."""
    reason = request.POST.get("reason", "").strip()[:MOST_REASON]
    deed = partial(services.roll_back_ramp, by=viewer_of(request), now=timezone.now(), reason=reason)
    return _steer(request, pipe_id, number, deed, "goes back: the live revision takes all keys again.")


def _steer(request: HttpRequest, pipe_id: str, number: int, deed: Callable[..., object], words: str) -> HttpResponse:
    row: Ramp = access.get_ramp(viewer_of(request), pipe_id, number, access.STEER_RAMP)
    do_and_say(request, partial(deed, ramp=row), f"{row.revision} {words}")
    return redirect("console:ramp", pipe_id, number)
