"""The pipe list: one line per pipe with its rate, lag, deliveries, losses and state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum

from dataplane.ledger.bins import Bin
from dataplane.ledger.facts import ACKED, INGEST, Fact
from dataplane.spec import Destination as DestinationSpec
from dataplane.spec import PipeSpec, destination_of, keeps_order, parse_pipe_spec
from mgmt.models import Destination, FactRow, Pipe, PipeRevision
from mgmt.queries.minutes import MinuteLine, minute_lines
from mgmt.queries.span import MINUTE_S, Span, bucket_at, rate_per_s
from mgmt.queries.timing import end_to_end_p95
from mgmt.queries.undelivered import Trouble

_REQUESTED, _RAMPING = PipeRevision.State.REQUESTED, PipeRevision.State.RAMPING
_LIVE, _FAILED = PipeRevision.State.LIVE, PipeRevision.State.FAILED


@dataclass(frozen=True)
class Standing:
    """A pipe's state in words: `kind` is live, coming, failed, paused or closed; `reason` says what it waits for.

    share: percent of the keys that the next revision takes, while it ramps beside the live one
    """

    kind: str
    revision: int
    next_revision: int | None = None
    reason: str = ""
    share: int | None = None

    @property
    def under_way(self) -> bool:
        """Whether a revision waits for the control plane."""
        return self.kind == "coming" or (self.kind == "live" and self.next_revision is not None)


@dataclass(frozen=True)
class PipeLine:
    """A row of the pipe list."""

    pipe: Pipe
    standing: Standing
    per_s: float
    lag_p95_us: int | None
    delivered: int
    lost_sealed: int
    causes: int
    needs_you: int


def pipe_lines(*, pipes: Sequence[Pipe], troubles: Sequence[Trouble], span: Span, now: datetime) -> list[PipeLine]:
    """One line for each pipe, in the given order."""
    ids = [pipe.id for pipe in pipes]
    standings, rates = standings_of(pipes), rates_of(ids, now)
    lags, minutes = end_to_end_p95(ids, span), minute_lines(ids, span)
    return [
        PipeLine(
            pipe=pipe,
            standing=standings[pipe.id],
            per_s=rates.get(pipe.id, 0.0),
            lag_p95_us=lags.get(pipe.id),
            delivered=sum(line.bins.get(Bin.DELIVERED, 0) for line in minutes.get(pipe.id, [])),
            lost_sealed=_lost_sealed(minutes.get(pipe.id, [])),
            causes=sum(1 for trouble in troubles if trouble.pipe_id == pipe.id),
            needs_you=sum(1 for trouble in troubles if trouble.pipe_id == pipe.id and trouble.needs_you),
        )
        for pipe in pipes
    ]


def standings_of(pipes: Sequence[Pipe]) -> dict[str, Standing]:
    """What each pipe does, from its newest and its live revision."""
    revisions = PipeRevision.objects.filter(pipe__in=pipes).select_related("ramp").defer("spec")
    newest = {row.pipe_id: row for row in revisions.order_by("pipe", "-number").distinct("pipe")}
    live = {row.pipe_id: row for row in revisions.filter(state=_LIVE)}
    return {pipe.id: standing(pipe, newest.get(pipe.id), live.get(pipe.id)) for pipe in pipes}


def standing(pipe: Pipe, newest: PipeRevision | None, live: PipeRevision | None) -> Standing:
    """The state of one pipe. Pure."""
    number = live.number if live else newest.number if newest else 0
    if pipe.state == Pipe.State.CLOSED:
        return Standing("closed", number)
    if pipe.state == Pipe.State.PAUSED:
        return Standing("paused", number)
    if newest is None:
        return Standing("failed", 0, reason="It has no revision")
    if newest.state == _FAILED:
        return Standing("failed", number, newest.number if live else None, newest.state_reason)
    if newest.state in (_REQUESTED, _RAMPING):
        share = newest.ramp.share if hasattr(newest, "ramp") else None
        kind, coming = ("live", newest.number) if live else ("coming", None)
        return Standing(kind, number, coming, newest.state_reason, share)
    return Standing("live", number)


def rates_of(pipe_ids: Sequence[str], now: datetime) -> Mapping[str, float]:
    """Events ACKed per second over the last minute."""
    bucket = bucket_at(now)
    rows = FactRow.objects.filter(
        pipe_id__in=pipe_ids, bucket__in=(bucket - 1, bucket), node=INGEST, fact=Fact.SENT, detail=ACKED
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


def _lost_sealed(lines: Sequence[MinuteLine]) -> int:
    return sum(line.bins.get(Bin.LOST, 0) for line in lines if line.sealed_at)


def specs_in_use(pipe: Pipe) -> dict[int, PipeSpec]:
    """The specs that its messages may run by, by number."""
    used = pipe.revisions.filter(state__in=["requested", "ramping", "live"])
    return {number: parse_pipe_spec(spec) for number, spec in used.values_list("number", "spec")}


def destinations_in_use(pipe: Pipe) -> dict[str, DestinationSpec]:
    """Its destinations as they are now, by name."""
    rows = pipe.destinations.exclude(state=Destination.State.REMOVED)
    return {name: destination_of(config) for name, config in rows.values_list("name", "config")}


def must_keep_order(pipe: Pipe) -> bool:
    """Whether nothing of a key may overtake on the way to one of its destinations."""
    return any(keeps_order(to) for to in destinations_in_use(pipe).values())
