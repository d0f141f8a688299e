"""What is held: how many for each destination, since when and why, and the way to let them go."""

from functools import partial
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from mgmt import access
from mgmt.console.export import KINDS, export
from mgmt.console.lines import HeldLine, held_line
from mgmt.console.pages import as_curl, for_members, once, part_of, show, viewer_of
from mgmt.console.views.moves import latest_moves
from mgmt.console.views.pipe import shared
from mgmt.models import Destination, Move, Pipe
from mgmt.queries.delivery import standings
from mgmt.queries.places import held_before_steps
from mgmt.queries.relocations import held_for_order

_COLUMNS: Final = ("destination", "state", "why", "since", "messages", "oldest")
_PARTS: Final = {"held": "held.html", "moves": "moves.html"}


@for_members
@require_safe
def held(request: HttpRequest, pipe_id: str) -> HttpResponseBase:
    """Each destination that holds messages, or would hold the next one; `format` makes a file of them."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    if (kind := request.GET.get("format", "")) in KINDS:
        return export(kind, map(_row, _lines(pipe)), _COLUMNS, name=f"held-{pipe.id}")
    context = shared(pipe, "held") | {
        "now": timezone.now(),
        "get_held": once(partial(_lines, pipe)),
        "get_entrance": once(partial(held_before_steps, pipe_id=pipe.id)),
        "is_moved": once(held_for_order().filter(pipe=pipe).exists),
        "curl": as_curl(request, f"pipes/{pipe.id}/standings/"),
        "get_moves": once(partial(latest_moves, pipe, Move.What.RELEASE)),
    }
    template, part = part_of(request, _PARTS) or ("held.html", "")
    return show(request, template, context, tenant=pipe.tenant, part=part)


def _lines(pipe: Pipe) -> list[HeldLine]:
    lines = [held_line(one) for one in standings(pipe=pipe) if one.destination.state != Destination.State.REMOVED]
    return [line for line in lines if line.fact.held or line.fact.holds]


def _row(line: HeldLine) -> dict[str, Any]:
    """A destination in a file."""
    of_row = {"destination": line.row.name, "state": line.row.state, "why": line.words, "since": line.row.state_since}
    return of_row | {"messages": line.fact.held, "oldest": line.fact.held_since}
