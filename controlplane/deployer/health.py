"""Computes a cell's error rate over some minutes from the Observer's rows, alike before and after a release.

That of ingest is of the messages of all stable cells, with the responses that heartbeats of replicas report. It has no
lag: sketches of all pipes are too many to merge at each tick.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q, Sum
from msgspec.structs import replace

from controlplane.deployer.snapshot import CellErrorRate
from dataplane.ledger.facts import ACKED, INGEST, Fact
from dataplane.ledger.sketch import P95, LagSketch
from dataplane.names import INGEST_GROUP, transmit_node
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import CellVerdict, FactRow, Heartbeat, LagRow, Pipe

BEFORE: Final = 10  # minutes before a release, with which it is compared
ENDED: Final = (Fact.DELIVERED, Fact.FILTERED, Fact.DUPLICATE, Fact.DEAD, Fact.PARKED, Fact.HELD, Fact.CANCELLED)
FAILED: Final = (Fact.DEAD, Fact.PARKED, Fact.HELD)
INTERNAL_ERROR: Final = "500"
# Not those that scanners, slow senders and quotas cause, nor 503: that depends on Kafka.
REFUSED: Final = ("400", "401", "403", "413", "415", "422")
ON_THE_WAY: Final = timedelta(seconds=20)


def health_before(cell: str, now: datetime) -> CellErrorRate:
    """Return the error rate of the ten whole minutes before `now`."""
    minute = bucket_at(now)
    return _health(cell, range(minute - BEFORE, minute))


def health_since(cell: str, up_at: datetime, now: datetime) -> CellErrorRate:
    """Return the error rate of the minutes begun since `up_at`.

    None of them has messages that waited while the application was exchanged. A minute counts from its 20th second on:
    before that, more of its messages are in progress than have ended.
    """
    return _health(cell, range(bucket_at(up_at) + 1, bucket_at(now - ON_THE_WAY) + 1))


def with_responses(rate: CellErrorRate, beats: Iterable[Heartbeat], others: Iterable[Heartbeat]) -> CellErrorRate:
    """Return the rate with the responses of these replicas of ingest, by the status that their heartbeats report."""
    by_status = _responses_of(beats)
    return replace(
        rate,
        responses=by_status.total(),
        refused=sum(by_status[status] for status in REFUSED),
        errors=by_status[INTERNAL_ERROR],
        of_others=_responses_of(others).total(),
    )


def _responses_of(beats: Iterable[Heartbeat]) -> Counter[str]:
    by_status: Counter[str] = Counter()
    for beat in beats:
        by_status.update(beat.body.get("responses", {}))
    return by_status


def _health(cell: str, minutes: range) -> CellErrorRate:
    if not minutes:
        return CellErrorRate()
    pipes = Q(pipe_id__in=list(Pipe.objects.filter(cell=cell).values_list("id", flat=True)))
    if cell == INGEST_GROUP:
        unstable = CellVerdict.objects.exclude(state=CellVerdict.State.STABLE).values("cell")
        others = list(Pipe.objects.filter(cell__in=unstable).values_list("id", flat=True))
        pipes = FactRow.OF_PIPES & ~Q(pipe_id__in=others)
    span = Q(bucket__gte=minutes.start, bucket__lt=minutes.stop)
    rows = FactRow.objects.filter(pipes, span)
    acked = rows.filter(node=INGEST, fact=Fact.SENT, detail=ACKED).aggregate(units=Sum("count"))["units"]
    ended: Counter[str] = Counter()
    for fact, count in rows.filter(fact__in=ENDED).order_by().values_list("fact").annotate(units=Sum("count")):
        ended[fact] += count
    lags = LagRow.objects.filter(pipes, span, node__startswith=transmit_node(""))
    sketches = [] if cell == INGEST_GROUP else lags.values_list("lag_out", flat=True).iterator()
    return CellErrorRate(
        accepted=acked or 0,
        ended=ended.total(),
        failed=sum(ended[fact] for fact in FAILED),
        p95_us=_p95(sketch for sketch in sketches if sketch is not None),
    )


def _p95(sketches: Iterable[bytes | memoryview]) -> int | None:
    merged = LagSketch()
    for encoded in sketches:
        merged.merge(LagSketch.decode(bytes(encoded)))
    return merged.quantile(P95) if merged.count else None
