"""Attempts, dead letters, held messages, and the redrives and releases ("moves") that return them to delivery."""

from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.deliveries.attempt_serializers import (
    ATTEMPTS_EXAMPLE,
    SLOWEST_EXAMPLE,
    STATE_EXAMPLE,
    UNDELIVERED_EXAMPLE,
    WAITING_EXAMPLE,
    AttemptOut,
    AttemptPageOut,
    DestinationStateOut,
    RecentStateOut,
    SlowestOut,
    UndeliveredOut,
    WaitingGroupsOut,
)
from mgmt.deliveries.causes import BY_CODE
from mgmt.deliveries.queries.attempts import OUTCOMES, AttemptFilter, attempt_line, attempt_rows
from mgmt.deliveries.queries.breakers import breaker_of
from mgmt.deliveries.queries.delivery import dead_letters, delivery_state, held_messages, redrives_of
from mgmt.deliveries.queries.message_selection import MessageSelection, preview, waiting_by_cause
from mgmt.deliveries.queries.slowest import MOST_READ, measure_for, slowest_messages
from mgmt.deliveries.serializers import (
    ChosenIn,
    HeldOut,
    HeldPageOut,
    LetterPageOut,
    MoveIn,
    MoveOut,
    MovePageOut,
    OneLetterOut,
    PreviewOut,
    StandingOut,
)
from mgmt.deliveries.serializers import LetterOut as Letter
from mgmt.deliveries.undelivered_views import problem_line, problems_of
from mgmt.ledger.queries.bucket_range import DEFAULT_SPAN, SPANS, span_until
from mgmt.ledger.queries.minutes import bins_at
from mgmt.ledger.queries.timing import SLICE_NAMES
from mgmt.messages.queries.records import RecordUnavailableError, StoredRecord, read_record
from mgmt.models import DeadLetter, OffsetSet, Pipe
from mgmt.services import cancel_redrive, start_redrive
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import LIMIT, LOCATION, PAGE_PARAMETERS, RANGE, answers, example, operation
from mgmt.web.pagination import (
    MAX_LIMIT,
    KeysetPage,
    NumberPage,
    TimePage,
    choice_of,
    limit_of,
    number_in,
    page_of,
    text_of,
    time_of,
)
from mgmt.web.time_ranges import RANGE_PARAMETERS, range_of

EXACT = ("destination", "cause", "message_id", "key")
FILTERS = [
    *(OpenApiParameter(name, str, description="Exact match.") for name in EXACT),
    *(
        OpenApiParameter(name, datetime, description="Limit of the time at which the message became dead or held.")
        for name in ("since", "until")
    ),
]

ATTEMPT_FILTERS = [
    OpenApiParameter("outcome", str, enum=list(OUTCOMES), description="Only attempts with this outcome."),
    OpenApiParameter("destination", str, description="Exact match."),
    OpenApiParameter("cause", str, enum=sorted(BY_CODE), description="Only attempts that failed for this cause."),
    OpenApiParameter("message_id", str, description="Exact match."),
    OpenApiParameter("status", int, description="HTTP status; 0 finds attempts without a response."),
    *(
        OpenApiParameter(name, datetime, description="Limit of the start of the attempt.")
        for name in ("since", "until")
    ),
]

STAGE = OpenApiParameter(
    "stage",
    str,
    enum=list(SLICE_NAMES.values()),
    description="Stage of the delivery time, as in the `parts` of `timing/`. Default: the whole delivery. "
    f"The newest {MOST_READ:,} attempts of the range are searched.",
)


class AttemptsView(View):
    """Delivery attempts of a pipe."""

    @operation(
        "list_attempts",
        parameters=[*ATTEMPT_FILTERS, *PAGE_PARAMETERS],
        responses=answers(200, AttemptPageOut, "not-found"),
        examples=[example(ATTEMPTS_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List a pipe's delivery attempts, newest first: every failed one, and a sample of the successful ones."""
        row = access.get_pipe(self.user, pipe)
        status = number_in(request, "status", -1, least=0, most=599)
        wanted = AttemptFilter(
            outcome=choice_of(request, "outcome", OUTCOMES),
            destination=text_of(request, "destination"),
            cause=choice_of(request, "cause", sorted(BY_CODE)),
            message=text_of(request, "message_id"),
            status=None if status < 0 else status,
            since=time_of(request, "since"),
            until=time_of(request, "until"),
        )
        found, paginator = page_of(attempt_rows(pipe_id=row.id, wanted=wanted), request, TimePage())
        return paginator.get_paginated_response(AttemptOut([attempt_line(one) for one in found], many=True).data)


class SlowestView(View):
    """Slowest messages of a pipe."""

    @operation(
        "list_slowest_messages",
        parameters=[*RANGE_PARAMETERS, STAGE],
        responses=answers(200, SlowestOut, "not-found"),
        examples=[example(SLOWEST_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List the slowest messages of a time range, the slowest first, from their recorded attempts.

        Every failed attempt is recorded, and a sample of the successful ones. For the stage `transmit` the duration is
        the time of the requests, for `retry wait` the time between the attempts. For any other stage it is that of the
        whole delivery, because the time in the stage is kept as a distribution and not for each message.
        """
        row, span = access.get_pipe(self.user, pipe), range_of(request)
        stage = choice_of(request, "stage", list(SLICE_NAMES.values()))
        found = slowest_messages(pipe_id=row.id, span=span, measure=measure_for(stage))
        body = {"range": span.name, "stage": stage, "measure": found.measure, "is_cut": found.is_cut}
        return Response(SlowestOut(body | {"results": found.messages}).data)


class UndeliveredView(View):
    """Undelivered messages of one pipe."""

    @operation(
        "get_undelivered",
        parameters=[LIMIT],
        responses=answers(200, UndeliveredOut, "not-found"),
        examples=[example(UNDELIVERED_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str) -> Response:
        """Return a pipe's undelivered messages of the last 24 hours by destination and cause."""
        return _undelivered(request, [access.get_pipe(self.user, pipe)])


class TenantUndeliveredView(View):
    """Undelivered messages of all pipes of a tenant."""

    @operation(
        "get_tenant_undelivered",
        parameters=[LIMIT],
        responses=answers(200, UndeliveredOut, "not-found"),
        examples=[example(UNDELIVERED_EXAMPLE)],
    )
    def get(self, request: Request, tenant: str) -> Response:
        """Return the undelivered messages of the last 24 hours of all pipes by destination and cause."""
        row = access.get_tenant(self.user, tenant)
        return _undelivered(request, list(access.pipes_of(self.user).filter(tenant=row)))


class DestinationStateView(View):
    """Delivery state of one destination."""

    @operation(
        "get_destination_state",
        parameters=[RANGE],
        responses=answers(200, DestinationStateOut, "not-found"),
        examples=[example(STATE_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str, name: str) -> Response:
        """Return whether a destination receives its messages: state, breaker, waiting messages, and recent bins."""
        row, now = access.get_destination(self.user, pipe, name), timezone.now()
        span = span_until(choice_of(request, "range", list(SPANS), DEFAULT_SPAN), now)
        standing = StandingOut(delivery_state(destination=row)).data
        more = {
            "breaker": breaker_of(pipe_id=row.pipe_id, destination=row.name, now=now),
            "range": span.name,
            "bins": bins_at(pipe_id=row.pipe_id, destination=row.name, span=span),
        }
        return Response({**standing, **RecentStateOut(more).data})


class WaitingView(View):
    """Counts of dead letters and held messages."""

    @operation(
        "get_waiting", responses=answers(200, WaitingGroupsOut, "not-found"), examples=[example(WAITING_EXAMPLE)]
    )
    def get(self, _request: Request, pipe: str) -> Response:
        """Count a pipe's dead letters and held messages by destination and cause, oldest first.

        Unlike the lists of dead letters and held messages, these counts are complete.
        """
        groups = waiting_by_cause(pipe_id=access.get_pipe(self.user, pipe).id)
        sums = {kind: sum(one.count for one in groups if one.kind == kind) for kind in OffsetSet.Kind.values}
        return Response(WaitingGroupsOut({**sums, "results": groups}).data)


class LettersView(View):
    """Dead letters of a pipe."""

    @operation(
        "list_dead_letters",
        parameters=[*FILTERS, *PAGE_PARAMETERS],
        responses=answers(200, LetterPageOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List a pipe's dead letters, newest first. At most the first thousand of each hour are listed."""
        row = access.get_pipe(self.user, pipe)
        rows = dead_letters(pipe=row, **_filters(request))
        found, paginator = page_of(rows, request, NumberPage())
        return paginator.get_paginated_response(Letter(found, many=True).data)


class LetterView(View):
    """One dead letter."""

    @operation("get_dead_letter", responses=answers(200, OneLetterOut, "not-found"))
    def get(self, _request: Request, pipe: str, number: int) -> Response:
        """Return a dead letter with its message."""
        letter = access.get_dead_letter(self.user, pipe, number)
        return Response({**Letter(letter).data, **_message(letter)})


class HeldMessagesView(View):
    """Held messages of a pipe."""

    @operation(
        "list_held_messages",
        parameters=[one for one in FILTERS if one.name != "cause"] + PAGE_PARAMETERS,
        responses=answers(200, HeldPageOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List a pipe's held messages, newest first, up to the first thousand of each hour and destination."""
        row = access.get_pipe(self.user, pipe)
        found, paginator = page_of(held_messages(pipe=row, **_filters(request)), request, NumberPage())
        return paginator.get_paginated_response(HeldOut(found, many=True).data)


class RedrivesView(View):
    """Moves of a pipe."""

    @operation(
        "list_moves",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, MovePageOut, "parameter-invalid", "not-found"),
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List a pipe's moves, newest first."""
        rows, paginator = page_of(redrives_of(pipe=access.get_pipe(self.user, pipe)), request, KeysetPage())
        return paginator.get_paginated_response(MoveOut(rows, many=True).data)

    @operation(
        "start_move",
        parameters=[LOCATION],
        request=MoveIn,
        responses=answers(
            201,
            MoveOut,
            "invalid",
            "role-too-low",
            "not-found",
            "nothing-to-move",
            "pipe-paused",
            "body-too-large",
            "media-type",
        ),
    )
    def post(self, request: Request, pipe: str) -> Response:
        """Redrive dead letters or release held messages of one destination. No message is moved twice.

        With an empty `destination`, dead letters that failed in the pipe's steps run again through the live revision.
        Released messages are sent even if the destination is paused or suspended; later messages stay held.
        """
        row = access.get_pipe(self.user, pipe, access.MOVE_MESSAGES)
        body = body_of(request, MoveIn)
        rate_per_s = body.pop("rate_per_s")
        move = start_redrive(pipe=row, chosen=_chosen(body), rate_per_s=rate_per_s, by=self.user, through=True)
        location = reverse("api:move", args=[row.id, move.id])
        return Response(MoveOut(move).data, status=201, headers={"Location": location})


class PreviewView(View):
    """Preview of a move."""

    @operation(
        "preview_move",
        idempotency_key=False,
        request=ChosenIn,
        responses=answers(200, PreviewOut, "invalid", "not-found", "body-too-large", "media-type"),
    )
    def post(self, request: Request, pipe: str) -> Response:
        """Count the messages that match a selection now. Changes nothing."""
        row = access.get_pipe(self.user, pipe)
        return Response(PreviewOut(preview(pipe_id=row.id, chosen=_chosen(body_of(request, ChosenIn)))).data)


class RedriveView(View):
    """One move."""

    @operation("get_move", responses=answers(200, MoveOut, "not-found"))
    def get(self, _request: Request, pipe: str, move: str) -> Response:
        """Return a move with its progress."""
        return Response(MoveOut(access.get_redrive(self.user, pipe, move)).data)


class AbortRedriveView(View):
    """Abort of a move."""

    @operation("abort_move", request=None, responses=answers(200, MoveOut, "role-too-low", "not-found"))
    def post(self, _request: Request, pipe: str, move: str) -> Response:
        """Abort a move. Messages already moved stay moved; the rest is dead or held again."""
        row = access.get_redrive(self.user, pipe, move, access.MOVE_MESSAGES)
        cancel_redrive(move=row, by=self.user)
        return Response(MoveOut(row).data)


def _undelivered(request: Request, pipes: list[Pipe]) -> Response:
    """Return the causes of these pipes' undelivered messages, up to the requested `limit`."""
    limit = limit_of(request, MAX_LIMIT)
    found = problems_of(pipes, timezone.now())
    body = {
        "messages": sum(one.count for one in found),
        "causes": len(found),
        "needs_you": sum(one.needs_you for one in found),
        "since": min((one.since for one in found), default=None),
        "results": [problem_line(one) for one in found[:limit]],
    }
    return Response(UndeliveredOut(body).data)


def _chosen(body: dict[str, Any]) -> MessageSelection:
    return MessageSelection(**{**body, "ids": tuple(body["ids"])})


def _filters(request: Request) -> dict[str, Any]:
    asked = request.query_params
    found: dict[str, Any] = {name: text_of(request, name) for name in EXACT if name in asked}
    return found | {name: time_of(request, name) for name in ("since", "until")}


def _message(letter: DeadLetter) -> dict[str, Any]:
    try:
        stored: StoredRecord = read_record(letter.topic, letter.partition, letter.offset, pipes=(letter.pipe_id,))
    except RecordUnavailableError as exc:
        return {"message": None, "message_missing": str(exc)}
    body = stored.body.decode("utf-8", "replace")
    shown = {"headers": dict(stored.headers), "body": body, "body_bytes": stored.body_bytes}
    return {"message": shown, "message_missing": ""}
