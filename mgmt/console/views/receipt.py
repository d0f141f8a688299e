"""A message's receipt: public, for the sender who was given its id. As a page, or as JSON for who asks for that."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dataplane.ledger.units import format_position
from mgmt import access
from mgmt.console.pages import theme_of
from mgmt.console.throttle import too_many_receipts
from mgmt.console.wording import BINS, CAUSES
from mgmt.models import User
from mgmt.queries.receipt import Receipt, receipt_of
from mgmt.queries.records import RecordsAway

_COLOURS = {"delivered": "fine", "under way": "wait", "held": "wait", "final": "bad"}


@require_safe
def receipt(request: HttpRequest, message_id: str) -> HttpResponse:
    """Where the message stands. 404 for an id that no message has, or has any more."""
    if too_many_receipts(address=request.META.get("REMOTE_ADDR", "")):
        return HttpResponse("too many receipts asked for; try again in five minutes\n", "text/plain", 429)
    try:
        found = receipt_of(message_id)
    except RecordsAway:
        return HttpResponse("receipts cannot be shown at this moment\n", "text/plain", 503)
    if found is None:
        raise Http404
    if request.accepts("text/html"):
        return _page(request, found)
    return _private(JsonResponse(_facts(found)))


def _facts(found: Receipt) -> dict[str, Any]:
    return {
        "id": found.message_id,
        "standing": found.standing,
        "received_at": found.received_at.isoformat(timespec="milliseconds"),
        "destinations": dict(found.bins),
        "causes": {cause: CAUSES.get(cause, cause) for cause in found.causes},
    }


def _page(request: HttpRequest, found: Receipt) -> HttpResponse:
    context = {
        "receipt": found,
        "colour": _COLOURS[found.standing],
        "lines": [(bin_, count, BINS[bin_]) for bin_, count in sorted(found.bins.items())],
        "causes": [CAUSES.get(cause, cause) for cause in found.causes],
        "passport": _passport(request, found),
        "theme": theme_of(request),
    }
    return _private(render(request, "receipt.html", context))


def _passport(request: HttpRequest, found: Receipt) -> str:
    """The whole story, for members of the pipe's tenant."""
    user, place = request.user, found.found
    if not isinstance(user, User) or not access.pipes_of(user).filter(id=place.pipe_id).exists():
        return ""
    path = reverse("console:message", args=[place.pipe_id, format_position(place.position)])
    return f"{path}?child={place.child}" if place.child else path


def _private(answer: HttpResponse) -> HttpResponse:
    answer["Cache-Control"] = "no-store"
    answer["X-Robots-Tag"] = "noindex"
    return answer
