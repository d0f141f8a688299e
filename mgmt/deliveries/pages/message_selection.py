"""Selection of dead letters or held messages by filters in the URL, with a preview, redrive and release."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from mgmt import services
from mgmt.deliveries.causes import BY_CODE
from mgmt.deliveries.pages.redrives import RedriveRateForm
from mgmt.deliveries.queries.message_selection import MessageSelection, listed, preview
from mgmt.deliveries.services.redrives import RATE_PER_S
from mgmt.models import Destination, OffsetSet, Pipe
from mgmt.pipes.page_context import pipe_context
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, once, show, viewer_of

WITHINS: Final = {"15 min": 900, "1 h": 3_600, "24 h": 86_400, "7 d": 604_800}
MOST_LISTED: Final = 50
_FILTERS: Final = ("destination", "cause", "within", "key", "messages")
_TABS: Final = {OffsetSet.Kind.DEAD: "dead", OffsetSet.Kind.HELD: "held"}
_TEMPLATES: Final = {OffsetSet.Kind.DEAD: "deliveries/redrive.html", OffsetSet.Kind.HELD: "deliveries/release.html"}


@for_members
@require_http_methods(["GET", "POST"])
def redrive(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Preview the dead letters of a destination that match the filters; a POST redrives them at a rate.

    Without a destination: those that ended in the pipe's steps, which run again through the live revision.
    """
    return _choose(request, pipe_id, OffsetSet.Kind.DEAD)


@for_members
@require_http_methods(["GET", "POST"])
def release(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """Preview the held messages of a destination that match the filters; a POST releases these only."""
    return _choose(request, pipe_id, OffsetSet.Kind.HELD)


def filters_of(query: Mapping[str, str]) -> dict[str, str]:
    """Return the filters that are set; invalid values are dropped."""
    found = {name: str(query.get(name, "")).strip().replace("\x00", "")[:2_000] for name in _FILTERS}
    known = {"cause": found["cause"] in BY_CODE, "within": found["within"] in WITHINS}
    return {name: value for name, value in found.items() if value and known.get(name, True)}


def ids_of(filters: Mapping[str, str]) -> tuple[str, ...]:
    """Return the message ids of the filter."""
    return tuple(filters.get("messages", "").replace(",", " ").split())


def since_of(filters: Mapping[str, str], now: datetime) -> datetime | None:
    """Return the start of the `within` filter; None if it is not set."""
    return now - timedelta(seconds=WITHINS[filters["within"]]) if "within" in filters else None


def _choose(request: HttpRequest, pipe_id: str, kind: OffsetSet.Kind) -> HttpResponse:
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.MOVE_MESSAGES)
    filters = filters_of(request.POST if request.method == "POST" else request.GET)
    name = filters.get("destination", "")
    destination = None
    if name or kind == OffsetSet.Kind.HELD:  # messages held before the steps are released with the pipe
        destination = access.get_destination(viewer_of(request), pipe_id, name)
    chosen = _chosen(name, kind, filters, timezone.now())
    form = RedriveRateForm(request.POST or None)
    refused = ""
    if request.method == "POST" and form.is_valid():
        refused = _start(request, pipe, chosen, form.cleaned_data["rate_per_s"])
        if not refused:
            return redirect(f"console:{_TABS[kind]}", pipe.id)
    context = pipe_context(pipe, _TABS[kind]) | _shown(pipe, destination, chosen)
    context |= {"filters": filters, "form": form, "refused": refused}
    status = 422 if refused or form.errors else 200
    return show(request, _TEMPLATES[kind], context, tenant=pipe.tenant, status=status)


def _start(request: HttpRequest, pipe: Pipe, chosen: MessageSelection, rate_per_s: float) -> str:
    """Start the redrive or release; return the error text, "" on success."""
    try:
        move = services.start_redrive(
            pipe=pipe, chosen=chosen, rate_per_s=rate_per_s, by=viewer_of(request), through=True
        )
    except (services.ServiceError, services.InvalidValue) as exc:
        return str(exc)
    where = f"to {chosen.destination}" if chosen.destination else "through the pipe's steps"
    messages.success(request, f"Sending {move.total} message{'s' if move.total != 1 else ''} {where}.", "fine")
    return ""


def _shown(pipe: Pipe, destination: Destination | None, chosen: MessageSelection) -> dict[str, Any]:
    return {
        "destination": destination,
        "now": timezone.now(),
        "withins": list(WITHINS),
        "found": preview(pipe_id=pipe.id, chosen=chosen),
        "get_listed": once(lambda: list(listed(pipe.id, chosen)[:MOST_LISTED])),
        "curl": as_curl(f"pipes/{pipe.id}/moves/", _redrive_body(chosen)),
    }


def _redrive_body(chosen: MessageSelection) -> dict[str, Any]:
    return {"destination": "", **chosen.to_builtins(), "rate_per_s": RATE_PER_S}


def _chosen(destination: str, kind: OffsetSet.Kind, filters: Mapping[str, str], now: datetime) -> MessageSelection:
    return MessageSelection(
        destination=destination,
        kind=kind,
        cause=filters.get("cause", "") if kind == OffsetSet.Kind.DEAD else "",
        key=filters.get("key", ""),
        ids=ids_of(filters),
        since=since_of(filters, now),
    )
