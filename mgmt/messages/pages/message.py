"""Journey page of a message, and search for messages by id or position."""

from typing import Final
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from dataplane.ledger.units import format_position, parse_position
from mgmt.deliveries.cause_wording import BINS
from mgmt.deliveries.presenters import MessageContent, readable_body
from mgmt.ledger.queries.bucket_range import start_of
from mgmt.messages.presenters import arrival_of, in_order_of_need, last_seen, leg_line, stage_line, summary
from mgmt.messages.queries.journey import Journey, MessageNotFoundError, message_journey
from mgmt.messages.queries.message_search import NEWEST, FoundMessage, find_messages
from mgmt.messages.queries.records import SHOWN_BYTES, RecordUnavailableError
from mgmt.models import Pipe
from mgmt.pipes.page_context import pipe_context
from mgmt.web import access
from mgmt.web.rendering import as_curl, for_members, part_of, show, tenant_of, viewer_of

SETTLED: Final = {"delivered", "filtered", "duplicate", "dead", "cancelled", "lost"}
MOST_CHILDREN: Final = 20


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
    context = pipe_context(pipe, "attempts") | {
        "journey": found,
        "position": format_position(found.position),
        "colour": colour,
        "words": words,
        "arrival": arrival,
        "starts": start_of(found.bucket),
        "stages": [stage_line(stage) for stage in found.stages],
        "legs": legs,
        "whole_us": max((line.whole_us for line in legs if line.whole_us is not None), default=None),
        "meaning": BINS.get(found.bin, ""),
        "last_seen": last_seen(found.facts) if found.bin == "lost" else "",
        "content": _content(found),
        "children": range(min(found.children, MOST_CHILDREN)),
        "is_open": not _is_settled(found),
        "curl": as_curl(request, f"pipes/{pipe.id}/messages/{format_position(found.position)}/"),
    }
    template, part = part_of(request, {"journey": "messages/message.html"}) or ("messages/message.html", "")
    return show(request, template, context, tenant=pipe.tenant, part=part)


@for_members
@require_safe
def find(request: HttpRequest) -> HttpResponse:
    """Search messages of the selected tenant by `q`; redirect to the message if there is only one."""
    tenant, text = tenant_of(request), request.GET.get("q", "").strip()[:200]
    pipes = list(access.pipes_of(viewer_of(request)).filter(tenant=tenant)) if tenant else []
    found, trouble = _find(pipes, text)
    if len(found) == 1:
        return redirect(_address(found[0]))
    names = {pipe.id: pipe.name for pipe in pipes}
    lines = [(names[one.pipe_id], format_position(one.position), _address(one)) for one in reversed(found)]
    context = {"q": text, "lines": lines, "trouble": trouble, "newest": NEWEST}
    return show(request, "messages/find.html", context, tenant=tenant)


def _find(pipes: list[Pipe], text: str) -> tuple[list[FoundMessage], str]:
    if not text or "\x00" in text:
        return [], ""
    try:
        return find_messages(pipes, text), ""
    except RecordUnavailableError as exc:
        return [], str(exc)


def _address(found: FoundMessage) -> str:
    path = reverse("console:message", args=[found.pipe_id, format_position(found.position)])
    return f"{path}?{urlencode({'child': found.child})}" if found.child else path


def _content(found: Journey) -> MessageContent:
    record = found.record
    if record is None:
        return MessageContent(reason=f"The message cannot be shown: {found.away}.")
    body = record.body[:SHOWN_BYTES]
    return MessageContent(record.headers, readable_body(body), len(body), record.body_bytes)


def _is_settled(found: Journey) -> bool:
    return {found.bin, *(leg.bin for leg in found.legs)} - {""} <= SETTLED


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
