"""How a cell's messages did over some minutes, by the Observer's rows: one measure before a release and after."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Sum

from controlplane.deployer.snapshot import Health
from dataplane.ledger.facts import ACKED, INGEST, Fact
from dataplane.ledger.sketch import P95, Sketch
from dataplane.names import transmit_node
from mgmt.models import FactRow, LagRow, Pipe
from mgmt.queries.span import bucket_at

BEFORE: Final = 10  # minutes that a release is compared with
ENDED: Final = (Fact.DELIVERED, Fact.FILTERED, Fact.DUPLICATE, Fact.DEAD, Fact.PARKED, Fact.HELD, Fact.CANCELLED)
FAILED: Final = (Fact.DEAD, Fact.PARKED, Fact.HELD)
ON_THE_WAY: Final = timedelta(seconds=20)


def health_before(cell: str, now: datetime) -> Health:
    """Of the whole minutes before now."""
    minute = bucket_at(now)
    return _health(cell, range(minute - BEFORE, minute))


def health_since(cell: str, up_at: datetime, now: datetime) -> Health:
    """Of the minutes that began since: what waited while the application was exchanged is in none of them.

    A minute counts from its 20th second on: before that, more of it is on the way than has come to an end.
    """
    return _health(cell, range(bucket_at(up_at) + 1, bucket_at(now - ON_THE_WAY) + 1))


def _health(cell: str, minutes: range) -> Health:
    if not minutes:
        return Health()
    pipes = list(Pipe.objects.filter(cell=cell).values_list("id", flat=True))
    span = {"pipe_id__in": pipes, "bucket__gte": minutes.start, "bucket__lt": minutes.stop}
    rows = FactRow.objects.filter(**span)
    acked = rows.filter(node=INGEST, fact=Fact.SENT, detail=ACKED).aggregate(units=Sum("count"))["units"]
    ended: Counter[str] = Counter()
    for fact, count in rows.filter(fact__in=ENDED).order_by().values_list("fact").annotate(units=Sum("count")):
        ended[fact] += count
    lags = LagRow.objects.filter(**span, node__startswith=transmit_node(""))
    return Health(
        accepted=acked or 0,
        ended=ended.total(),
        failed=sum(ended[fact] for fact in FAILED),
        p95_us=_p95(sketch for sketch in lags.values_list("lag_out", flat=True).iterator() if sketch is not None),
    )


def _p95(sketches: Iterable[bytes | memoryview]) -> int | None:
    together = Sketch()
    for encoded in sketches:
        together.merge(Sketch.decode(bytes(encoded)))
    return together.quantile(P95) if together.count else None
