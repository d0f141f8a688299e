"""Pipe list: one line per pipe with its rate, lag, deliveries, losses and state."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Sum

from dataplane.ledger.facts import ACKED, INGEST, Fact
from dataplane.spec import DestinationSpec, PipeSpec, destination_of, keeps_order, parse_pipe_spec
from mgmt.alerts.queries.alerts import open_loss_alerts
from mgmt.deliveries.queries.health import oldest_waiting
from mgmt.deliveries.queries.undelivered import UndeliveredCause
from mgmt.ledger.queries.bucket_range import MINUTE_S, bucket_at, rate_per_s
from mgmt.ledger.queries.trends import Trend
from mgmt.models import Alert, Destination, DestinationHealth, FactRow, Pipe, PipeRevision

_REQUESTED, _RAMPING = PipeRevision.State.REQUESTED, PipeRevision.State.RAMPING
_LIVE, _FAILED = PipeRevision.State.LIVE, PipeRevision.State.FAILED


@dataclass(frozen=True)
class PipeStatus:
    """A pipe's state: `kind` is live, coming, failed, paused or closed; `reason` is why it waits or failed.

    share: percent of the keys that the next revision takes while it ramps next to the live one
    """

    kind: str
    revision: int
    next_revision: int | None = None
    reason: str = ""
    share: int | None = None

    @property
    def under_way(self) -> bool:
        """True if a revision waits for the control plane."""
        return self.kind == "coming" or (self.kind == "live" and self.next_revision is not None)


@dataclass(frozen=True)
class PipeSummary:
    """Row of the pipe list.

    delivered_share: share (0 to 1) of the range's deliveries that succeeded
    undelivered:     messages of its causes, as they are listed under "Not delivered"
    """

    pipe: Pipe
    standing: PipeStatus
    per_s: float
    lag_p95_us: int | None
    delivered: int
    delivered_share: float | None
    lost_sealed: int
    undelivered: int
    causes: int
    needs_you: int
    trend: Trend
    health: Sequence[DestinationHealth] = ()
    loss_alert: Alert | None = None

    @property
    def failing(self) -> list[str]:
        """Names of the failing destinations."""
        return [row.destination.name for row in self.health if row.failing_since]

    @property
    def delayed(self) -> list[str]:
        """Names of the destinations whose messages are delayed."""
        return [row.destination.name for row in self.health if row.delayed_since]

    @property
    def oldest_at(self) -> datetime | None:
        """Minute of the oldest message that waits for its delivery."""
        return oldest_waiting(self.health)


def pipe_lines(
    *,
    pipes: Sequence[Pipe],
    troubles: Sequence[UndeliveredCause],
    trends: Mapping[str, Trend],
    health: Mapping[str, Sequence[DestinationHealth]],
    rates: Mapping[str, float],
) -> list[PipeSummary]:
    """Return one line for each pipe, in the given order; the figures are of at least these pipes."""
    if not pipes:
        return []
    standings, loss_alerts = pipe_statuses(pipes), open_loss_alerts([pipe.id for pipe in pipes])
    causes_of: defaultdict[str, list[UndeliveredCause]] = defaultdict(list)
    for trouble in troubles:
        causes_of[trouble.pipe_id].append(trouble)
    return [
        _summary(
            pipe,
            causes=causes_of[pipe.id],
            trend=trends[pipe.id],
            standing=standings[pipe.id],
            per_s=rates.get(pipe.id, 0.0),
            health=health.get(pipe.id, ()),
            loss_alert=loss_alerts.get(pipe.id),
        )
        for pipe in pipes
    ]


def _summary(pipe: Pipe, *, causes: Sequence[UndeliveredCause], trend: Trend, **found: Any) -> PipeSummary:
    whole = trend.whole
    return PipeSummary(
        pipe=pipe,
        trend=trend,
        lag_p95_us=trend.lag_p95_us,
        delivered=whole.delivered,
        delivered_share=whole.share,
        lost_sealed=whole.lost,
        undelivered=sum(cause.count for cause in causes),
        causes=len(causes),
        needs_you=sum(1 for cause in causes if cause.needs_you),
        **found,
    )


def pipe_statuses(pipes: Sequence[Pipe]) -> dict[str, PipeStatus]:
    """Return the state of each pipe, from its newest and its live revision."""
    revisions = PipeRevision.objects.filter(pipe__id__any_of=[pipe.id for pipe in pipes]).select_related("ramp")
    revisions = revisions.only("pipe", "number", "state", "state_reason", "ramp__share")
    newest = {row.pipe_id: row for row in revisions.order_by("pipe", "-number").distinct("pipe")}
    live = {row.pipe_id: row for row in revisions.filter(state=_LIVE)}
    return {pipe.id: pipe_status(pipe, newest.get(pipe.id), live.get(pipe.id)) for pipe in pipes}


def pipe_status(pipe: Pipe, newest: PipeRevision | None, live: PipeRevision | None) -> PipeStatus:
    """Return the state of one pipe. Pure."""
    number = live.number if live else newest.number if newest else 0
    if pipe.state == Pipe.State.CLOSED:
        return PipeStatus("closed", number)
    if pipe.state == Pipe.State.PAUSED:
        return PipeStatus("paused", number)
    if newest is None:
        return PipeStatus("failed", 0, reason="It has no revision")
    if newest.state == _FAILED:
        return PipeStatus("failed", number, newest.number if live else None, newest.state_reason)
    if newest.state in (_REQUESTED, _RAMPING):
        share = newest.ramp.share if hasattr(newest, "ramp") else None
        kind, coming = ("live", newest.number) if live else ("coming", None)
        return PipeStatus(kind, number, coming, newest.state_reason, share)
    return PipeStatus("live", number)


def rates_of(pipe_ids: Sequence[str], now: datetime) -> Mapping[str, float]:
    """Return the events ACKed per second over the last minute, by pipe."""
    bucket = bucket_at(now)
    rows = FactRow.objects.filter(
        pipe_id__any_of=pipe_ids, bucket__in=(bucket - 1, bucket), node=INGEST, fact=Fact.SENT, detail=ACKED
    )
    counts = {
        (pipe_id, minute): count
        for pipe_id, minute, count in rows.values_list("pipe_id", "bucket").annotate(units=Sum("count"))
    }
    elapsed_s = now.timestamp() % MINUTE_S
    return {
        pipe_id: rate_per_s(counts.get((pipe_id, bucket - 1), 0), counts.get((pipe_id, bucket), 0), elapsed_s)
        for pipe_id in pipe_ids
    }


def specs_in_use(pipe: Pipe) -> dict[int, PipeSpec]:
    """Return by number the specs of the revisions that may process a pipe's messages."""
    used = pipe.revisions.filter(state__in=["requested", "ramping", "live"])
    return {number: parse_pipe_spec(spec) for number, spec in used.values_list("number", "spec")}


def destinations_in_use(pipe: Pipe) -> dict[str, DestinationSpec]:
    """Return the configurations of a pipe's current destinations, by name."""
    rows = pipe.destinations.exclude(state=Destination.State.REMOVED)
    return {name: destination_of(config) for name, config in rows.values_list("name", "config")}


def must_keep_order(pipe: Pipe) -> bool:
    """Return True if one of the pipe's destinations needs the messages of a key in order."""
    return any(keeps_order(to) for to in destinations_in_use(pipe).values())
