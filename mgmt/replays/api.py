"""Replays of a pipe: events of the past are delivered once more, from the log."""

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.ledger.bins import Bin
from mgmt.ledger.queries.minutes import Counts
from mgmt.ledger.serializers import LatencyOut, LossesOut
from mgmt.models import Replay
from mgmt.replays.queries import backfills_of, replay_account, replay_losses, replay_timing, replay_units, replays_of
from mgmt.replays.serializers import (
    BACKFILL_EXAMPLE,
    BACKFILLS_EXAMPLE,
    REPLAY_DETAIL_EXAMPLE,
    REPLAY_LOSSES_EXAMPLE,
    REPLAY_TIMING_EXAMPLE,
    REPLAY_UNITS_EXAMPLE,
    REPLAYS_EXAMPLE,
    BackfillOut,
    BackfillPageOut,
    ReplayAccountOut,
    ReplayDetailOut,
    ReplayIn,
    ReplayOut,
    ReplayPageOut,
    ReplayUnitsOut,
)
from mgmt.services import (
    ReplayRequest,
    abort_replay,
    cancel_backfill,
    pause_replay,
    repeat_failed,
    resume_replay,
    retry_backfill,
    start_replay,
)
from mgmt.web import access
from mgmt.web.api_view import View, body_of
from mgmt.web.openapi import LIMIT, LOCATION, OFFSET, PAGE_PARAMETERS, answers, example, operation
from mgmt.web.pagination import MAX_LIMIT, KeysetPage, choice_of, limit_of, offset_of, page_of
from mgmt.web.throttling import ApiThrottle, SearchThrottle

BIN = OpenApiParameter("bin", str, enum=[str(name) for name in Bin], description="Default: `dead`.")
START_ERRORS = (
    "invalid",
    "role-too-low",
    "not-found",
    "pipe-closed",
    "pipe-paused",
    "relocation-under-way",
    "replay-under-way",
    "nothing-to-replay",
)
RETRY_ERRORS = (
    "role-too-low",
    "not-found",
    "backfill-started",
    "pipe-closed",
    "relocation-under-way",
    "nothing-to-replay",
)


class ReplaysView(View):
    """Replays of a pipe."""

    @operation(
        "list_replays",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, ReplayPageOut, "not-found"),
        examples=[example(REPLAYS_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List a pipe's replays, newest first."""
        rows, paginator = page_of(replays_of(access.get_pipe(self.user, pipe)), request, KeysetPage())
        return paginator.get_paginated_response(ReplayOut(rows, many=True).data)

    @operation(
        "start_replay",
        parameters=[LOCATION],
        request=ReplayIn,
        responses=answers(201, ReplayOut, *START_ERRORS, "too-expensive", "body-too-large", "media-type"),
    )
    def post(self, request: Request, pipe: str) -> Response:
        """Deliver the events of a range of ingest times once more, as long as the log has them.

        The steps and routes of the revision run again. Copies have the ids of the originals (`webhook-id`) and the
        header `penstock-replay`; they do not wait for other messages of their key. A copy that fails is not a dead
        letter. A tenant has one replay at a time. With `rehearsal`, nothing is sent: only the counts are computed.
        """
        row = access.get_pipe(self.user, pipe, access.MOVE_MESSAGES)
        asked = ReplayRequest(**body_of(request, ReplayIn))
        replay = start_replay(pipe=row, request=asked, by=self.user, now=timezone.now())
        return _created(replay)


class BackfillsView(View):
    """Backfills of a pipe's destinations."""

    @operation(
        "list_backfills",
        parameters=PAGE_PARAMETERS,
        responses=answers(200, BackfillPageOut, "not-found"),
        examples=[example(BACKFILLS_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List the backfills of a pipe: earlier events for new destinations with `from`, newest first.

        Each is delivered by one replay, which is paused, resumed and aborted like any other. Until it has a replay, it
        can be cancelled.
        """
        rows, paginator = page_of(backfills_of(access.get_pipe(self.user, pipe)), request, KeysetPage())
        return paginator.get_paginated_response(BackfillOut(rows, many=True).data)


class BackfillView(View):
    """One backfill."""

    @operation("get_backfill", responses=answers(200, BackfillOut, "not-found"), examples=[example(BACKFILL_EXAMPLE)])
    def get(self, _request: Request, pipe: str, backfill: str) -> Response:
        """Return a backfill: what it waits for, why it was not started, or its replay."""
        return Response(BackfillOut(access.get_backfill(self.user, pipe, backfill)).data)


class CancelBackfillView(View):
    """Cancellation of a backfill."""

    @operation(
        "cancel_backfill",
        request=None,
        responses=answers(200, BackfillOut, "role-too-low", "not-found", "backfill-started"),
    )
    def post(self, _request: Request, pipe: str, backfill: str) -> Response:
        """Cancel a backfill that waits: no replay is started. One that has ended without a replay is returned as is.

        A backfill with a replay is refused: abort the replay instead. `retry/` takes the cancellation back.
        """
        row = access.get_backfill(self.user, pipe, backfill, access.MOVE_MESSAGES)
        cancel_backfill(backfill=row, by=self.user, now=timezone.now())
        return Response(BackfillOut(row).data)


class RetryBackfillView(View):
    """Retry of a backfill."""

    @operation("retry_backfill", request=None, responses=answers(200, BackfillOut, *RETRY_ERRORS))
    def post(self, _request: Request, pipe: str, backfill: str) -> Response:
        """Let a backfill that was cancelled or not started wait for its replay again. One that waits is returned as is.

        It is refused if it would end without a replay again; `detail` gives the reason.
        """
        row = access.get_backfill(self.user, pipe, backfill, access.MOVE_MESSAGES)
        retry_backfill(backfill=row, by=self.user, now=timezone.now())
        return Response(BackfillOut(row).data)


class ReplayView(View):
    """One replay."""

    @operation(
        "get_replay",
        responses=answers(200, ReplayDetailOut, "not-found"),
        examples=[example(REPLAY_DETAIL_EXAMPLE)],
    )
    def get(self, _request: Request, pipe: str, replay: str) -> Response:
        """Return a replay with its progress and its account: the selected events by destination and bin."""
        return _detail(access.get_replay(self.user, pipe, replay))


class PauseReplayView(View):
    """Pause of a replay."""

    @operation("pause_replay", request=None, responses=answers(200, ReplayOut, "role-too-low", "not-found"))
    def post(self, _request: Request, pipe: str, replay: str) -> Response:
        """Pause a replay. Messages that were already sent are still delivered. Of any other state, returns it as is."""
        row = access.get_replay(self.user, pipe, replay, access.MOVE_MESSAGES)
        pause_replay(replay=row, now=timezone.now(), by=self.user)
        return Response(ReplayOut(row).data)


class ResumeReplayView(View):
    """Resume of a replay."""

    @operation("resume_replay", request=None, responses=answers(200, ReplayOut, "role-too-low", "not-found"))
    def post(self, _request: Request, pipe: str, replay: str) -> Response:
        """Continue a paused replay where it stopped. Of any other state, returns it as is."""
        row = access.get_replay(self.user, pipe, replay, access.MOVE_MESSAGES)
        resume_replay(replay=row, now=timezone.now(), by=self.user)
        return Response(ReplayOut(row).data)


class AbortReplayView(View):
    """Abort of a replay."""

    @operation("abort_replay", request=None, responses=answers(200, ReplayOut, "role-too-low", "not-found"))
    def post(self, _request: Request, pipe: str, replay: str) -> Response:
        """Abort a replay. Messages that were already sent are still delivered; the rest is not sent."""
        row = access.get_replay(self.user, pipe, replay, access.MOVE_MESSAGES)
        abort_replay(replay=row, now=timezone.now(), by=self.user)
        return Response(ReplayOut(row).data)


class RepeatFailedReplayView(View):
    """Repeat of the failed events of a replay."""

    throttle_classes = [ApiThrottle, SearchThrottle]  # it reads up to 10,000 events from the log

    @operation(
        "repeat_failed_replay",
        parameters=[LOCATION],
        request=None,
        responses=answers(201, ReplayOut, *START_ERRORS),
    )
    def post(self, _request: Request, pipe: str, replay: str) -> Response:
        """Start a replay of the events that were dead, cancelled or lost in an ended one, at most 10,000.

        It sends to the destinations at which a message failed, with the revision and rate of the first replay.
        """
        row = access.get_replay(self.user, pipe, replay, access.MOVE_MESSAGES)
        return _created(repeat_failed(replay=row, by=self.user, now=timezone.now()))


class ReplayUnitsView(View):
    """Messages of a replay in one bin."""

    @operation(
        "list_replay_units",
        parameters=[BIN, LIMIT],
        responses=answers(200, ReplayUnitsOut, "not-found"),
        examples=[example(REPLAY_UNITS_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str, replay: str) -> Response:
        """List the messages of a replay that are in one bin, by position; lost ones with their last node.

        At most 200 are listed; `more` is the number of further ones. They are kept as long as those of minutes.
        """
        row = access.get_replay(self.user, pipe, replay)
        name = Bin(choice_of(request, "bin", [str(one) for one in Bin], Bin.DEAD))
        found, more = replay_units(row, name, limit_of(request, MAX_LIMIT))
        return Response(ReplayUnitsOut({"bin": name, "results": found, "more": more}).data)


class ReplayLossesView(View):
    """Loss table of a replay."""

    @operation(
        "list_replay_losses",
        parameters=[LIMIT, OFFSET],
        responses=answers(200, LossesOut, "not-found"),
        examples=[example(REPLAY_LOSSES_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str, replay: str) -> Response:
        """Return the loss of a replay by node and end to end, and the lost messages with the nodes that saw them.

        The losses are final when the result of the replay is.
        """
        row = access.get_replay(self.user, pipe, replay)
        first = offset_of(request)
        found = replay_losses(row, first=first, most=limit_of(request, MAX_LIMIT))
        body = {"loss": found.loss, "results": found.messages, "next_offset": found.next_offset}
        return Response(LossesOut(body).data)


class ReplayTimingView(View):
    """Lags and process durations of a replay by node, and the breakdown of the delivery time."""

    @operation(
        "get_replay_timing",
        responses=answers(200, LatencyOut, "not-found"),
        examples=[example(REPLAY_TIMING_EXAMPLE)],
    )
    def get(self, _request: Request, pipe: str, replay: str) -> Response:
        """Return the lags and process durations of each node, and the breakdown of the time of delivered messages.

        The time of a copy is measured from the ingest of the original: its time in queues includes the event's age.
        """
        return Response(LatencyOut(replay_timing(access.get_replay(self.user, pipe, replay))).data)


def _created(replay: Replay) -> Response:
    location = reverse("api:replay", args=[replay.pipe_id, replay.id])
    return Response(ReplayOut(replay).data, status=201, headers={"Location": location})


def _detail(replay: Replay) -> Response:
    line = replay_account(replay)
    parts = {part.name: _without_zeros(part.bins) for part in line.destinations}
    account = {
        "is_final": line.sealed_at is not None,
        "asked": line.accepted,
        "bins": _without_zeros(line.bins),
        "destinations": {name: bins for name, bins in parts.items() if bins},
    }
    return Response({**ReplayOut(replay).data, "account": ReplayAccountOut(account).data})


def _without_zeros(bins: Counts) -> Counts:
    return {name: count for name, count in bins.items() if count}
