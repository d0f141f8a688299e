"""Held messages by destination: count, reason, age, and release."""

from functools import partial
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt.cells.queries.pipe_migrations import held_for_order
from mgmt.deliveries.pages.redrives import latest_redrives
from mgmt.deliveries.presenters import HeldGroup, held_group
from mgmt.deliveries.queries.delivery import delivery_states
from mgmt.deliveries.queries.message_selection import held_before_steps
from mgmt.models import Destination, Pipe, Redrive
from mgmt.pipes.page_context import pipe_context
from mgmt.web import access
from mgmt.web.export import KINDS, export
from mgmt.web.rendering import as_curl, for_members, once, show, viewer_of

_COLUMNS: Final = ("destination", "state", "why", "since", "messages", "oldest")
_LIVE: Final = {"head": "pipes/base.html", "held": "deliveries/held.html", "moves": "deliveries/redrives.html"}


@for_members
@require_safe
def held(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """List destinations that hold messages or would hold the next one; `format` exports them."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, map(_row, _lines(pipe)), _COLUMNS, name=f"held-{pipe.id}")
    context = pipe_context(pipe, "held") | {
        "now": timezone.now(),
        "get_held": once(partial(_lines, pipe)),
        "get_entrance": once(partial(held_before_steps, pipe_id=pipe.id)),
        "is_moved": once(held_for_order().filter(pipe=pipe).exists),
        "curl": as_curl(f"pipes/{pipe.id}/standings/"),
        "get_moves": once(partial(latest_redrives, pipe, Redrive.What.RELEASE)),
    }
    return show(request, "deliveries/held.html", context, tenant=pipe.tenant, live=_LIVE)


def _lines(pipe: Pipe) -> list[HeldGroup]:
    lines = [
        held_group(one) for one in delivery_states(pipe=pipe) if one.destination.state != Destination.State.REMOVED
    ]
    return [line for line in lines if line.fact.held or line.fact.holds]


def _row(line: HeldGroup) -> dict[str, Any]:
    """Return a destination's row of the export."""
    of_row = {"destination": line.row.name, "state": line.row.state, "why": line.words, "since": line.row.state_since}
    return of_row | {"messages": line.fact.held, "oldest": line.fact.held_since}
