"""Dead letters, held messages, and the redrives and releases ("moves") that return them to delivery."""

from datetime import datetime
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from mgmt.deliveries.queries.delivery import dead_letters, held_messages, redrives_of
from mgmt.deliveries.queries.message_selection import MessageSelection, preview
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
)
from mgmt.deliveries.serializers import LetterOut as Letter
from mgmt.messages.queries.records import RecordUnavailableError, StoredRecord, read_record
from mgmt.models import DeadLetter
from mgmt.services import cancel_redrive, start_redrive
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import PAGE_PARAMETERS, answers, operation
from mgmt.web.pagination import KeysetPage, NumberPage, page_of, refused

EXACT = ("destination", "cause", "message_id", "key")
FILTERS = [
    *(OpenApiParameter(name, str, description="Exact match.") for name in EXACT),
    *(
        OpenApiParameter(name, datetime, description="Limit of the time at which the message became dead or held.")
        for name in ("since", "until")
    ),
]


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
        filters = {name: value for name, value in _filters(request).items() if name != "cause"}
        found, paginator = page_of(held_messages(pipe=row, **filters), request, NumberPage())
        return paginator.get_paginated_response(HeldOut(found, many=True).data)


class MovesView(View):
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
        request=ChosenIn,
        responses=answers(200, PreviewOut, "invalid", "not-found", "body-too-large", "media-type"),
    )
    def post(self, request: Request, pipe: str) -> Response:
        """Count the messages that match a selection now. Changes nothing."""
        row = access.get_pipe(self.user, pipe)
        return Response(PreviewOut(preview(pipe_id=row.id, chosen=_chosen(body_of(request, ChosenIn)))).data)


class MoveView(View):
    """One move."""

    @operation("get_move", responses=answers(200, MoveOut, "not-found"))
    def get(self, _request: Request, pipe: str, move: str) -> Response:
        """Return a move with its progress."""
        return Response(MoveOut(access.get_redrive(self.user, pipe, move)).data)


class AbortMoveView(View):
    """Abort of a move."""

    @operation("abort_move", request=None, responses=answers(200, MoveOut, "role-too-low", "not-found"))
    def post(self, _request: Request, pipe: str, move: str) -> Response:
        """Abort a move. Messages already moved stay moved; the rest is dead or held again."""
        row = access.get_redrive(self.user, pipe, move, access.MOVE_MESSAGES)
        cancel_redrive(move=row)
        return Response(MoveOut(row).data)


def _chosen(body: dict[str, Any]) -> MessageSelection:
    return MessageSelection(**{**body, "ids": tuple(body["ids"])})


def _filters(request: Request) -> dict[str, Any]:
    asked = request.query_params
    found: dict[str, Any] = {name: asked[name].replace("\x00", "\ufffd") for name in EXACT if name in asked}
    for name in ("since", "until"):
        if name in asked:
            found[name] = _time(name, asked[name])
    return found


def _time(name: str, text: str) -> datetime:
    try:
        at = serializers.DateTimeField().to_internal_value(text)
    except ValidationError as exc:
        raise refused(name, "needs a time such as 2026-01-31T12:00:00Z") from exc
    return at


def _message(letter: DeadLetter) -> dict[str, Any]:
    try:
        stored: StoredRecord = read_record(letter.topic, letter.partition, letter.offset, pipes=(letter.pipe_id,))
    except RecordUnavailableError as exc:
        return {"message": None, "message_missing": str(exc)}
    body = stored.body.decode("utf-8", "replace")
    shown = {"headers": dict(stored.headers), "body": body, "body_bytes": stored.body_bytes}
    return {"message": shown, "message_missing": ""}
