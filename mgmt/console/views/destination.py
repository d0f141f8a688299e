"""One destination: its state, what it did not get and why, its settings and its latest attempts."""

from functools import partial
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt import access
from mgmt.console.pages import as_curl, for_members, once, part_of, show, viewer_of
from mgmt.console.told import shown_attempts
from mgmt.console.troubles import trouble_line, troubles_of
from mgmt.console.views.pipe import shared
from mgmt.queries.attempts import Filter
from mgmt.queries.minutes import minute_lines
from mgmt.queries.span import Span, span_until

MOST_ATTEMPTS: Final = 10
_PARTS: Final = dict.fromkeys(("now", "attempts"), "destination.html")


@for_members
@require_safe
def destination(request: HttpRequest, pipe_id: str, name: str) -> HttpResponse:
    """Does it get what it is due, if not why, and what can be done."""
    row = access.get_destination(viewer_of(request), pipe_id, name)
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    now = timezone.now()
    context = shared(pipe, "settings") | {
        "destination": row,
        "get_bins": once(partial(_bins, pipe.id, name, span_until("1h", now))),
        "get_troubles": once(lambda: [trouble_line(t) for t in troubles_of([pipe], now) if t.where == name]),
        "get_attempts": once(partial(shown_attempts, pipe.id, MOST_ATTEMPTS, Filter(destination=name))),
        "filters": {"destination": name},
        "curl": as_curl(request, f"pipes/{pipe.id}/destinations/{name}/"),
    }
    template, part = part_of(request, _PARTS) or ("destination.html", "")
    return show(request, template, context, tenant=pipe.tenant, part=part)


def _bins(pipe_id: str, name: str, span: Span) -> dict[str, int]:
    """How many units are in each bin at this destination."""
    found: dict[str, int] = {}
    for line in minute_lines([pipe_id], span).get(pipe_id, []):
        for part in line.destinations:
            for bin_, count in part.bins.items() if part.name == name else ():
                found[bin_] = found.get(bin_, 0) + count
    return found
