"""Public receipt of a message for its sender, as a page or as JSON (by the Accept header)."""

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
from mgmt.deliveries.cause_wording import BINS, CAUSES
from mgmt.messages.queries.receipt import Receipt, receipt_of
from mgmt.messages.queries.records import RecordUnavailableError
from mgmt.models import User
from mgmt.tenancy.services.rate_limits import TryLimit, hit, network_of
from mgmt.web import access
from mgmt.web.rendering import theme_of, unlisted

# Each request reads topics, for up to 1.5 s if the id does not exist.
RECEIPTS: Final = TryLimit("receipts: address", 60, timedelta(minutes=5))
_COLOURS: Final = {"delivered": "fine", "under way": "wait", "held": "wait", "final": "bad"}
_NEXT: Final = {
    "delivered": "No action is needed.",
    "under way": "Delivery is in progress. No action is needed.",
    "held": "The event is kept until the receiver releases it. Do not send it again: it would be delivered twice.",
    "final": "No further attempts are made. The receiver of your events can see the full reason.",
}


@dataclass(frozen=True)
class _ReceiptUnavailable:
    """Reason why no receipt can be shown, with the next step; `retry_after_s` is the Retry-After in seconds."""

    status: int
    title: str
    todo: str
    retry_after_s: int = 0


_UNKNOWN: Final = _ReceiptUnavailable(
    404,
    "Message not found",
    "The id is wrong, or the message was deleted after its retention period. Compare the id with the one in the 202 "
    "response; ask the receiver of your events about older messages.",
)
_UNAVAILABLE: Final = _ReceiptUnavailable(
    503,
    "Receipts are temporarily unavailable",
    "Messages are not affected. Try again in a minute.",
    retry_after_s=60,
)


def _too_many(wait_s: int) -> _ReceiptUnavailable:
    minutes = ceil(wait_s / 60)
    todo = f"Wait {minutes} minute{'' if minutes == 1 else 's'}, then try again."
    return _ReceiptUnavailable(429, "Too many receipts requested", todo, retry_after_s=wait_s)


@require_safe
def receipt(request: HttpRequest, message_id: str) -> HttpResponse:
    """Show the state of a message; 404 for an id that does not exist or is no longer kept."""
    if wait_s := hit(RECEIPTS, network_of(request.META.get("REMOTE_ADDR", "")), timezone.now()):
        return _refused(request, _too_many(wait_s))
    try:
        found = receipt_of(message_id)
    except RecordUnavailableError:
        return _refused(request, _UNAVAILABLE)
    if found is None:
        return _refused(request, _UNKNOWN)
    if request.accepts("text/html"):
        return _page(request, found)
    return unlisted(JsonResponse(_facts(found)))


def _refused(request: HttpRequest, why: _ReceiptUnavailable) -> HttpResponse:
    if request.accepts("text/html"):
        context = {"why": why, "theme": theme_of(request)}
        answer = render(request, "messages/no_receipt.html", context, status=why.status)
    else:
        answer = JsonResponse({"title": why.title, "detail": why.todo}, status=why.status)
    if why.retry_after_s:
        answer["Retry-After"] = str(why.retry_after_s)
    return unlisted(answer)


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
        "journey": _journey_url(request, found),
        "theme": theme_of(request),
    }
    return unlisted(render(request, "messages/receipt.html", context))


def _journey_url(request: HttpRequest, found: Receipt) -> str:
    """Return the path of the journey page for members of the pipe's tenant, "" for others."""
    user, place = request.user, found.found
    if not isinstance(user, User) or not access.pipes_of(user).filter(id=place.pipe_id).exists():
        return ""
    path = reverse("console:message", args=[place.pipe_id, format_position(place.position)])
    return f"{path}?child={place.child}" if place.child else path
