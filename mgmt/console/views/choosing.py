"""Choosing among what did not go out: filters that stand in the URL, a preview, and sending the chosen on their way."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from mgmt import access, services
from mgmt.console.causes import BY_CODE
from mgmt.console.pages import as_curl, for_members, once, show, viewer_of
from mgmt.console.views.moves import RateForm
from mgmt.console.views.pipe import shared
from mgmt.models import Destination, OffsetSet, Pipe
from mgmt.queries.places import Chosen, listed, preview
from mgmt.services.moves import RATE_PER_S

WITHINS: Final = {"15 min": 900, "1 h": 3_600, "24 h": 86_400, "7 d": 604_800}
MOST_LISTED: Final = 50
_FILTERS: Final = ("destination", "cause", "within", "key", "messages")
_TABS: Final = {OffsetSet.Kind.DEAD: "dead", OffsetSet.Kind.HELD: "held"}
_TEMPLATES: Final = {OffsetSet.Kind.DEAD: "redrive.html", OffsetSet.Kind.HELD: "release.html"}


@for_members
@require_http_methods(["GET", "POST"])
def redrive(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """How many dead letters a filter finds at one destination, and at what rate they go; POST sends them."""
    return _choose(request, pipe_id, OffsetSet.Kind.DEAD)


@for_members
@require_http_methods(["GET", "POST"])
def release(request: HttpRequest, pipe_id: str) -> HttpResponse:
    """The same for what a destination holds: the chosen ones go out, the others stay held."""
    return _choose(request, pipe_id, OffsetSet.Kind.HELD)


def filters_of(query: Mapping[str, str]) -> dict[str, str]:
    """The filters that are set; what cannot be one is dropped."""
    found = {name: str(query.get(name, "")).strip().replace("\x00", "")[:2_000] for name in _FILTERS}
    known = {"cause": found["cause"] in BY_CODE, "within": found["within"] in WITHINS}
    return {name: value for name, value in found.items() if value and known.get(name, True)}


def ids_of(filters: Mapping[str, str]) -> tuple[str, ...]:
    """The message ids that were typed."""
    return tuple(filters.get("messages", "").replace(",", " ").split())


def since_of(filters: Mapping[str, str], now: datetime) -> datetime | None:
    """From when on."""
    return now - timedelta(seconds=WITHINS[filters["within"]]) if "within" in filters else None


def _choose(request: HttpRequest, pipe_id: str, kind: OffsetSet.Kind) -> HttpResponse:
    pipe = access.get_pipe(viewer_of(request), pipe_id, access.MOVE_MESSAGES)
    filters = filters_of(request.POST if request.method == "POST" else request.GET)
    destination = access.get_destination(viewer_of(request), pipe_id, filters.get("destination", ""))
    chosen = _chosen(destination.name, kind, filters, timezone.now())
    form = RateForm(request.POST or None)
    refused = ""
    if request.method == "POST" and form.is_valid():
        refused = _start(request, pipe, chosen, form.cleaned_data["rate_per_s"])
        if not refused:
            return redirect(f"console:{_TABS[kind]}", pipe.id)
    context = shared(pipe, _TABS[kind]) | _shown(request, pipe, destination, chosen)
    context |= {"filters": filters, "form": form, "refused": refused}
    status = 422 if refused or form.errors else 200
    return show(request, _TEMPLATES[kind], context, tenant=pipe.tenant, status=status)


def _start(request: HttpRequest, pipe: Pipe, chosen: Chosen, rate_per_s: float) -> str:
    """Send them on their way; why not, if they cannot go."""
    try:
        move = services.start_move(pipe=pipe, chosen=chosen, rate_per_s=rate_per_s, by=viewer_of(request), through=True)
    except (services.NothingToMove, services.InvalidValue) as exc:
        return str(exc)
    messages.success(request, f"{move.total} to {chosen.destination} are on their way again.", "fine")
    return ""


def _shown(request: HttpRequest, pipe: Pipe, destination: Destination, chosen: Chosen) -> dict[str, Any]:
    return {
        "destination": destination,
        "now": timezone.now(),
        "withins": list(WITHINS),
        "found": preview(pipe_id=pipe.id, chosen=chosen),
        "get_listed": once(lambda: list(listed(pipe.id, chosen)[:MOST_LISTED])),
        "curl": as_curl(request, f"pipes/{pipe.id}/moves/", {**chosen.to_builtins(), "rate_per_s": RATE_PER_S}),
    }


def _chosen(destination: str, kind: OffsetSet.Kind, filters: Mapping[str, str], now: datetime) -> Chosen:
    return Chosen(
        destination=destination,
        kind=kind,
        cause=filters.get("cause", "") if kind == OffsetSet.Kind.DEAD else "",
        key=filters.get("key", ""),
        ids=ids_of(filters),
        since=since_of(filters, now),
    )
