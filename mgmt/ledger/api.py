"""A pipe's latency, and the bins and losses of its minutes."""

from dataclasses import asdict

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from dataplane.ledger.bins import Bin
from mgmt.ledger.queries.bucket_range import SPANS, start_of
from mgmt.ledger.queries.ledger import MinuteKey
from mgmt.ledger.queries.losses import minute_losses
from mgmt.ledger.queries.minutes import MinuteLoss, loss_table, minute_line
from mgmt.ledger.queries.timing import measured_buckets, timing, timing_by_bucket
from mgmt.ledger.serializers import (
    LAG_EXAMPLE,
    LOSSES_EXAMPLE,
    MINUTE_EXAMPLE,
    MINUTES_EXAMPLE,
    TIMING_EXAMPLE,
    UNITS_EXAMPLE,
    LagPageOut,
    MinuteDetailOut,
    MinuteLossesOut,
    MinutePageOut,
    MinuteUnitsOut,
    TimingOut,
)
from mgmt.messages.units import units_in
from mgmt.web import access
from mgmt.web.api_view import View
from mgmt.web.openapi import LIMIT, OFFSET, PAGE_PARAMETERS, answers, example, operation
from mgmt.web.pagination import MAX_LIMIT, BucketPage, choice_of, limit_of, offset_of
from mgmt.web.time_ranges import RANGE_PARAMETERS, range_of

BIN = OpenApiParameter("bin", str, enum=[str(name) for name in Bin], description="Default: `lost`.")
MOST_MINUTES = max(SPANS.values())


class TimingView(View):
    """Lags and process durations by node, and the breakdown of the delivery time."""

    @operation(
        "get_timing",
        parameters=RANGE_PARAMETERS,
        responses=answers(200, TimingOut, "not-found"),
        examples=[example(TIMING_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str) -> Response:
        """Return the lags and process durations of each node, and the breakdown of the time of delivered messages.

        `series` is the breakdown over time: the shares of each slice in each group of minutes.
        """
        row, span = access.get_pipe(self.user, pipe), range_of(request)
        found = timing(pipe_id=row.id, span=span)
        series = zip(found.series.buckets, found.series.values, strict=True)
        shares = [_shares(bucket, found.series.names, values) for bucket, values in series]
        return Response(TimingOut(asdict(found) | {"range": span.name, "series": shares}).data)


class LagView(View):
    """Lags and process durations by minute and node."""

    @operation(
        "list_lag",
        parameters=[*RANGE_PARAMETERS, *PAGE_PARAMETERS],
        responses=answers(200, LagPageOut, "not-found"),
        examples=[example(LAG_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List the lags and process durations of each node, minute by minute, newest first.

        A message counts in the minute of its event. Minutes in which no message left a node are omitted.
        """
        row, span, page = access.get_pipe(self.user, pipe), range_of(request), BucketPage()
        buckets = page.take(measured_buckets(pipe_id=row.id, span=span), request)
        nodes = timing_by_bucket(pipe_id=row.id, buckets=buckets)
        lines = [{"minute": bucket, "starts": start_of(bucket), "nodes": nodes[bucket]} for bucket in buckets]
        return Response(LagPageOut({**page.links(), "results": lines}).data)


class MinutesView(View):
    """Bins of a pipe's minutes."""

    @operation(
        "list_minutes",
        parameters=[*RANGE_PARAMETERS, *PAGE_PARAMETERS],
        responses=answers(200, MinutePageOut, "not-found"),
        examples=[example(MINUTES_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str) -> Response:
        """List where the messages of each minute are now and their loss, newest minute first.

        `total` covers the whole range.
        """
        row, span, page = access.get_pipe(self.user, pipe), range_of(request), BucketPage()
        table = loss_table(pipe_id=row.id, span=span, most=MOST_MINUTES)
        lines = {line.bucket: line for line in table.lines}
        shown = [_line(lines[bucket]) for bucket in page.take(lines, request)]
        total = _line(table.total) if table.total else None
        body = {**page.links(), "range": span.name, "minutes": table.minutes, "total": total, "results": shown}
        return Response(MinutePageOut(body).data)


class MinuteView(View):
    """One minute of a pipe."""

    @operation("get_minute", responses=answers(200, MinuteDetailOut, "not-found"), examples=[example(MINUTE_EXAMPLE)])
    def get(self, _request: Request, pipe: str, bucket: int) -> Response:
        """Return the bins, the loss and the lags of one minute. A minute without messages has zeros.

        `minute` is the number of minutes since 1970-01-01T00:00Z.
        """
        row = access.get_pipe(self.user, pipe)
        nodes = timing_by_bucket(pipe_id=row.id, buckets=[bucket])[bucket]
        return Response(MinuteDetailOut({**_line(minute_line(row.id, bucket)), "nodes": nodes}).data)


class MinuteLossesView(View):
    """Loss table of one minute."""

    @operation(
        "list_minute_losses",
        parameters=[LIMIT, OFFSET],
        responses=answers(200, MinuteLossesOut, "not-found"),
        examples=[example(LOSSES_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str, bucket: int) -> Response:
        """Return the loss of a minute by node and end to end, and the lost messages with the nodes that saw them.

        The losses of a minute are final when it is sealed.
        """
        minute = MinuteKey(access.get_pipe(self.user, pipe).id, bucket)
        first = offset_of(request)
        found = minute_losses([minute], first=first, most=limit_of(request, MAX_LIMIT))[minute]
        body = {"minute": bucket, "loss": found.loss, "results": found.messages, "next_offset": found.next_offset}
        return Response(MinuteLossesOut(body).data)


class UnitsView(View):
    """Messages of one minute in one bin."""

    @operation(
        "list_units",
        parameters=[BIN, LIMIT],
        responses=answers(200, MinuteUnitsOut, "not-found"),
        examples=[example(UNITS_EXAMPLE)],
    )
    def get(self, request: Request, pipe: str, bucket: int) -> Response:
        """List the messages of one minute that are in one bin, by position; lost ones with their last node.

        At most 200 are listed; `more` is the number of further ones.
        """
        row = access.get_pipe(self.user, pipe)
        name = Bin(choice_of(request, "bin", [str(one) for one in Bin], Bin.LOST))
        found, more = units_in(row.id, bucket, name, limit_of(request, MAX_LIMIT))
        return Response(MinuteUnitsOut({"minute": bucket, "bin": name, "results": found, "more": more}).data)


def _line(line: MinuteLoss) -> dict[str, object]:
    parts = [{"name": part.name, "bins": part.bins} for part in line.destinations]
    own = {name: getattr(line, name) for name in ("starts", "sealed_at", "accepted", "unacked", "late", "bins", "loss")}
    return {"minute": line.bucket, **own, "bins_at_seal": line.at_seal, "destinations": parts}


def _shares(bucket: int, names: tuple[str, ...], values: tuple[float | None, ...]) -> dict[str, object]:
    shares = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    return {"minute": bucket, "starts": start_of(bucket), "shares": shares}
