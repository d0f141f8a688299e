"""Messages: search by id, and the journey of one message."""

from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.ledger.units import format_position, parse_position
from mgmt.ledger.queries.bucket_range import start_of
from mgmt.messages.presenters import JourneyLegLine, arrival_of, in_order_of_need, last_seen, leg_line, summary
from mgmt.messages.queries.journey import Journey, MessageNotFoundError, message_journey
from mgmt.messages.queries.message_search import NEWEST, FoundMessage, find_messages
from mgmt.messages.queries.records import SHOWN_BYTES, RecordUnavailableError
from mgmt.messages.serializers import FOUND_EXAMPLE, JOURNEY_EXAMPLE, FoundMessagesOut, JourneyOut
from mgmt.models import Pipe
from mgmt.web import access
from mgmt.web.api_view import View
from mgmt.web.openapi import LIMIT, answers, example, operation
from mgmt.web.pagination import MAX_LIMIT, limit_of, number_in, refused
from mgmt.web.problems import ProblemError
from mgmt.web.throttling import ApiThrottle, BrokerReadThrottle

MAX_QUERY = 200
QUERY = OpenApiParameter(
    "q",
    str,
    required=True,
    description="Id of a message (`webhook-id`), a position such as `1-0-7`, or your own id: the CloudEvents id, or "
    f"the value at the source's `id` path, among the newest {NEWEST:,} messages of each partition.",
)
CHILD = OpenApiParameter("child", int, description="Child of an exploded message. Default: 0.")
MINUTE = OpenApiParameter(
    "minute", int, description="Minute of the message, needed only if neither Kafka nor an attempt has the message."
)
FOUND = answers(200, FoundMessagesOut, "not-found", "unavailable")


class TenantMessagesView(View):
    """Messages of all pipes of a tenant."""

    throttle_classes = [ApiThrottle, BrokerReadThrottle]

    @operation("search_tenant_messages", parameters=[QUERY, LIMIT], responses=FOUND, examples=[example(FOUND_EXAMPLE)])
    def get(self, request: Request, tenant: str) -> Response:
        """Search the messages of all pipes of a tenant by id, position or your own id, newest first."""
        row = access.get_tenant(self.user, tenant)
        return _search(request, list(access.pipes_of(self.user).filter(tenant=row)))


class MessagesView(View):
    """Messages of one pipe."""

    throttle_classes = [ApiThrottle, BrokerReadThrottle]

    @operation("search_messages", parameters=[QUERY, LIMIT], responses=FOUND, examples=[example(FOUND_EXAMPLE)])
    def get(self, request: Request, pipe: str) -> Response:
        """Search a pipe's messages by id, position or your own id, newest first.

        To search by status, destination, cause or time, list the pipe's attempts, dead letters or held messages.
        """
        return _search(request, [access.get_pipe(self.user, pipe)])


class MessageView(View):
    """One message."""

    throttle_classes = [ApiThrottle, BrokerReadThrottle]

    @operation(
        "get_message",
        parameters=[CHILD, MINUTE],
        responses=answers(200, JourneyOut, "not-found"),
        examples=[example(JOURNEY_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str, position: str) -> Response:
        """Return the journey of a message: the event, each stage, each destination with its attempts, and all bins."""
        row = access.get_pipe(self.user, pipe)
        child = number_in(request, "child", 0, least=0, most=999_999)
        bucket = number_in(request, "minute", 0, least=0, most=999_999_999) or None
        try:
            found = message_journey(row, parse_position(position), child=child, bucket=bucket)
        except (ValueError, MessageNotFoundError) as exc:
            raise NotFound from exc
        return Response(JourneyOut(_journey(row, found)).data)


def _search(request: Request, pipes: list[Pipe]) -> Response:
    text, limit = request.query_params.get("q", "").strip(), limit_of(request, MAX_LIMIT)
    if not 1 <= len(text) <= MAX_QUERY or "\x00" in text:
        raise refused("q", f"needs 1 to {MAX_QUERY} characters")
    try:
        found = find_messages(pipes, text)[::-1]
    except RecordUnavailableError as exc:
        raise ProblemError("unavailable", f"The messages cannot be searched: {exc}.") from exc
    body = {"results": [_found(one) for one in found[:limit]], "more": len(found) > limit}
    return Response(FoundMessagesOut(body).data)


def _found(one: FoundMessage) -> dict[str, Any]:
    position = format_position(one.position)
    url = reverse("api:message", args=[one.pipe_id, position])
    if one.child:
        url += f"?{urlencode({'child': one.child})}"
    return {"pipe": one.pipe_id, "position": position, "child": one.child, "url": url}


def _journey(pipe: Pipe, found: Journey) -> dict[str, Any]:
    record = found.record
    arrival = arrival_of(record) if record else None
    legs = [leg_line(leg, arrival.came_at if arrival else None) for leg in in_order_of_need(found.legs)]
    names = ("child", "children", "message_id", "revision", "bin", "stages", "rules")
    return {name: getattr(found, name) for name in names} | {
        "pipe": pipe.id,
        "position": format_position(found.position),
        "minute": found.bucket,
        "starts": start_of(found.bucket),
        "state": summary(found)[1],
        "last_seen": last_seen(found.facts) if found.bin == "lost" else "",
        "arrival": arrival,
        "headers": dict(record.headers) if record else {},
        "body": record.body[:SHOWN_BYTES].decode("utf-8", "replace") if record else None,
        "body_bytes": record.body_bytes if record else 0,
        "unavailable": found.away,
        "destinations": [_leg(line) for line in legs],
        "not_sent_to": found.not_taken,
    }


def _leg(line: JourneyLegLine) -> dict[str, Any]:
    leg = line.leg
    facts = [{"node": k.node, "fact": k.fact, "detail": k.detail, "at": leg.reported_at.get(k)} for k in leg.facts]
    return {
        "destination": line.destination,
        "bin": line.bin,
        "last_seen": line.last_seen,
        "facts": facts,
        "attempts": leg.attempts,
        "transform": leg.transform,
        "request": leg.request,
        "dead_letter": line.letter.id if line.letter else None,
        "to_egress_us": line.left_us,
        "to_answer_us": line.took_us,
        "whole_us": line.whole_us,
    }
