"""Messages: search by id, and the journey of one message."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.ledger.units import format_position, parse_position
from mgmt.ledger.last_seen import LastSeen, last_seen
from mgmt.ledger.queries.bucket_range import start_of
from mgmt.messages.presenters import JourneyLegLine, arrival_of, found_lines, in_order_of_need, leg_line, summary
from mgmt.messages.queries.body_search import parse_search_cursor, search_bodies
from mgmt.messages.queries.journey import Journey, MessageNotFoundError, message_journey
from mgmt.messages.queries.message_search import NEWEST, FoundMessage, find_messages
from mgmt.messages.queries.records import SHOWN_BYTES, RecordUnavailableError
from mgmt.messages.serializers import (
    FOUND_EXAMPLE,
    JOURNEY_EXAMPLE,
    SEARCH_EXAMPLE,
    BodySearchOut,
    FoundMessagesOut,
    JourneyOut,
)
from mgmt.models import Pipe
from mgmt.sandbox import FilterRefusedError
from mgmt.web import access
from mgmt.web.api_view import View
from mgmt.web.openapi import LIMIT, answers, example, operation
from mgmt.web.pagination import MAX_LIMIT, limit_of, number_in, refused, text_of
from mgmt.web.problems import ProblemError
from mgmt.web.throttling import ApiThrottle, BrokerReadThrottle, SearchThrottle
from mgmt.web.time_ranges import RANGE_PARAMETERS, range_of

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
WHERE = OpenApiParameter(
    "where",
    str,
    required=True,
    description='Condition over `body` and `meta`, such as `body.order.status == "paid" && body.order.total > 100`.',
)
SEARCH_CURSOR = OpenApiParameter("cursor", str, description="The `cursor` of a response, to continue its search.")
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

        To search by status, destination, cause or time, list the pipe's attempts, dead letters or held messages; by a
        field of the body, use `messages/search/`.
        """
        return _search(request, [access.get_pipe(self.user, pipe)])


class MessageSearchView(View):
    """Events of one pipe by their body."""

    throttle_classes = [ApiThrottle, SearchThrottle]

    @operation(
        "search_message_bodies",
        parameters=[WHERE, *RANGE_PARAMETERS, LIMIT, SEARCH_CURSOR],
        responses=answers(200, BodySearchOut, "not-found", "unavailable", "too-many-at-once", "too-expensive"),
        examples=[example(SEARCH_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str) -> Response:
        """Search a pipe's events of a time range by a condition over their bodies, newest minute first.

        There is no index: the events are read from Kafka, at most 20,000 of them in one request and for about three
        seconds. `left` is the number of events of the range that are not searched yet; send `cursor` to continue.
        Fields that the pipe masks are compared as masked. A user may run one search at a time, and 20 per minute.
        """
        row, span = access.get_pipe(self.user, pipe), range_of(request)
        where, limit = text_of(request, "where").strip(), limit_of(request, MAX_LIMIT)
        cursor = text_of(request, "cursor")
        after = parse_search_cursor(cursor)
        if cursor and after is None:
            raise refused("cursor", "needs the `cursor` of a response of this search")
        if not where:
            raise refused("where", 'needs a condition such as `body.order.status == "paid"`')
        try:
            found = search_bodies(row, where, span=span, after=after, most=limit, owner=f"user {self.user.pk}")
        except FilterRefusedError as exc:
            raise refused("where", str(exc).removesuffix(".")) from exc
        except RecordUnavailableError as exc:
            raise ProblemError("unavailable", f"The events cannot be searched: {exc}.") from exc
        body = {name: getattr(found, name) for name in ("searched", "skipped", "total", "left", "stopped")}
        body |= {"results": _lines(found.found), "cursor": str(found.cursor) if found.cursor else None}
        return Response(BodySearchOut(body).data)


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
    body = {"results": _lines(found[:limit]), "more": len(found) > limit}
    return Response(FoundMessagesOut(body).data)


def _lines(found: Sequence[FoundMessage]) -> list[dict[str, Any]]:
    """Return the rows of a search."""
    names = ("position", "child", "message_id", "accepted_at", "source", "revision", "state")
    rows = []
    for line in found_lines(found):
        url = reverse("api:message", args=[line.pipe_id, line.position])
        if line.child:
            url += f"?{urlencode({'child': line.child})}"
        own = {name: getattr(line, name) for name in names}
        rows.append(own | {"pipe": line.pipe_id, "url": url, "minute": line.bucket, **_last_seen(line.last_seen)})
    return rows


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
        **_last_seen(last_seen(found.facts) if found.bin == "lost" else None),
        "arrival": arrival,
        "headers": dict(record.headers) if record else {},
        "body": record.body[:SHOWN_BYTES].decode("utf-8", "replace") if record else None,
        "body_bytes": record.body_bytes if record else 0,
        "unavailable": found.unavailable,
        "destinations": [_leg(line) for line in legs],
        "not_sent_to": found.not_sent_to,
    }


def _last_seen(found: LastSeen | None) -> dict[str, str]:
    node, words = found or ("", "")
    return {"last_seen": node, "last_seen_words": words}


def _leg(line: JourneyLegLine) -> dict[str, Any]:
    leg = line.leg
    facts = [{"node": k.node, "fact": k.fact, "detail": k.detail, "at": leg.reported_at.get(k)} for k in leg.facts]
    return {
        "destination": line.destination,
        "bin": line.bin,
        **_last_seen(line.last_seen),
        "facts": facts,
        "attempts": leg.attempts,
        "transform": leg.transform,
        "request": leg.request,
        "dead_letter": line.letter.id if line.letter else None,
        "to_egress_us": line.left_us,
        "to_answer_us": line.took_us,
        "whole_us": line.whole_us,
    }
