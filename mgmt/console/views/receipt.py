"""A message's receipt: public, for the sender who was given its id. As a page, or as JSON for who asks for that."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dataplane.ledger.units import format_position
from mgmt import access
from mgmt.console.pages import theme_of
from mgmt.console.wording import BINS, CAUSES
from mgmt.models import User
from mgmt.queries.receipt import Receipt, receipt_of
from mgmt.queries.records import RecordsAway
from mgmt.services.limits import Limit, hit, network_of

# Each looks into topics, for a second and a half if the id is made up.
RECEIPTS: Final = Limit("receipts: address", 60, timedelta(minutes=5))
_COLOURS: Final = {"delivered": "fine", "under way": "wait", "held": "wait", "final": "bad"}
_NEXT: Final = {
    "delivered": "Nothing is left to do.",
    "under way": "Nothing is left for you to do. Look again later.",
    "held": "It is kept until whoever receives your events lets it go on. Do not send it again: it would arrive twice.",
    "final": "Nothing more happens by itself. Whoever receives your events sees the whole reason.",
}


@dataclass(frozen=True)
class _Refusal:
    """Why there is no receipt to show, and what to do; `again_s` seconds from now it is worth asking again."""

    status: int
    title: str
    todo: str
    again_s: int = 0


_UNKNOWN: Final = _Refusal(
    404,
    "No message has this id",
    "Or it is kept no longer. Compare the id with the one that you were given with the 202; of older messages whoever "
    "receives your events can tell.",
)
_AWAY: Final = _Refusal(
    503,
    "Receipts cannot be shown at this moment",
    "Messages are not touched by this. Ask again in a minute.",
    again_s=60,
)


def _too_many(wait_s: int) -> _Refusal:
    minutes = ceil(wait_s / 60)
    todo = f"Wait {minutes} minute{'' if minutes == 1 else 's'}, then try again."
    return _Refusal(429, "Too many receipts requested", todo, again_s=wait_s)


@require_safe
def receipt(request: HttpRequest, message_id: str) -> HttpResponse:
    """Where the message stands. 404 for an id that no message has, or has any more."""
    if wait_s := hit(RECEIPTS, network_of(request.META.get("REMOTE_ADDR", "")), timezone.now()):
        return _refused(request, _too_many(wait_s))
    try:
        found = receipt_of(message_id)
    except RecordsAway:
        return _refused(request, _AWAY)
    if found is None:
        return _refused(request, _UNKNOWN)
    if request.accepts("text/html"):
        return _page(request, found)
    return _private(JsonResponse(_facts(found)))


def _refused(request: HttpRequest, why: _Refusal) -> HttpResponse:
    if request.accepts("text/html"):
        context = {"why": why, "theme": theme_of(request)}
        answer = render(request, "no_receipt.html", context, status=why.status)
    else:
        answer = JsonResponse({"title": why.title, "detail": why.todo}, status=why.status)
    if why.again_s:
        answer["Retry-After"] = str(why.again_s)
    return _private(answer)


def _facts(found: Receipt) -> dict[str, Any]:
    return {
        "id": found.message_id,
        "standing": found.standing,
        "next": _NEXT[found.standing],
        "received_at": _iso(found.received_at),
        "destinations": dict(found.bins),
        "causes": {cause: CAUSES.get(cause, cause) for cause in found.causes},
        "failed_tries": found.failures.count,
        "last_failed_at": _iso(found.failures.last_at),
        "next_try_at": _iso(found.failures.next_at),
    }


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="milliseconds") if moment else None


def _page(request: HttpRequest, found: Receipt) -> HttpResponse:
    context = {
        "receipt": found,
        "next": _NEXT[found.standing],
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
