"""Journey page of a message."""

from datetime import timedelta
from typing import Final

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dataplane.ledger.units import format_position, parse_position
from mgmt.deliveries.cause_wording import BINS
from mgmt.deliveries.presenters import MessageContent, readable_body
from mgmt.ledger.last_seen import last_seen
from mgmt.ledger.queries.bucket_range import start_of
from mgmt.messages.presenters import arrival_of, in_order_of_need, leg_line, stage_line, summary
from mgmt.messages.queries.journey import Journey, MessageNotFoundError, message_journey
from mgmt.messages.queries.records import SHOWN_BYTES
from mgmt.pipes.page_context import pipe_context
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, show, viewer_of

SETTLED: Final = {"delivered", "filtered", "duplicate", "dead", "cancelled", "lost"}
MOST_CHILDREN: Final = 20
_LIVE: Final = {"head": "pipes/base.html", "journey": "messages/message.html"}


@for_members
@require_safe
def message(request: HttpRequest, pipe_id: str, position: str) -> HttpResponse:
    """Show the journey of a message: stages with changes, attempts, destinations; `child` of an exploded one."""
    pipe = access.get_pipe(viewer_of(request), pipe_id)
    child, bucket = _number(request.GET.get("child", "0")), _number(request.GET.get("minute", ""))
    try:
        found = message_journey(pipe, parse_position(position), child=child or 0, bucket=bucket)
    except (ValueError, MessageNotFoundError) as exc:
        raise Http404 from exc
    colour, words = summary(found)
    arrival = arrival_of(found.record) if found.record else None
    legs = [leg_line(leg, arrival.came_at if arrival else None) for leg in in_order_of_need(found.legs)]
    is_open = not _is_settled(found)
    context = pipe_context(pipe, "attempts") | {
        "journey": found,
        "position": format_position(found.position),
        "colour": colour,
        "words": words,
        "arrival": arrival,
        "arrived_before": arrival.came_at + timedelta(minutes=1) if arrival else None,
        "starts": start_of(found.bucket),
        "stages": [stage_line(stage) for stage in found.stages],
        "legs": legs,
        "whole_us": max((line.whole_us for line in legs if line.whole_us is not None), default=None),
        "meaning": BINS.get(found.bin, ""),
        "last_seen": last_seen(found.facts) if found.bin == "lost" else None,
        "content": _content(found),
        "children": range(min(found.children, MOST_CHILDREN)),
        "is_open": is_open,
        "curl": as_curl(f"pipes/{pipe.id}/messages/{format_position(found.position)}/"),
    }
    return show(request, "messages/message.html", context, tenant=pipe.tenant, live=_LIVE if is_open else None)


def _content(found: Journey) -> MessageContent:
    record = found.record
    if record is None:
        return MessageContent(reason=f"The message cannot be shown: {found.unavailable}.")
    body = record.body[:SHOWN_BYTES]
    return MessageContent(record.headers, readable_body(body), len(body), record.body_bytes)


def _is_settled(found: Journey) -> bool:
    return {found.bin, *(leg.bin for leg in found.legs)} - {""} <= SETTLED


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
