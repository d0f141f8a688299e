"""Pattern blocks of many pipes with few queries: one block from the ledger, and the stored hours before it."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import msgspec
from django.db.models import Q, Sum

from dataplane.ledger.facts import ACKED, INGEST, Fact
from dataplane.ledger.sketch import P95
from dataplane.names import RAMP_PREFIX
from mgmt.ledger.queries.bucket_range import BucketRange
from mgmt.ledger.queries.timing import end_to_end
from mgmt.models import FactRow, PatternHour
from mgmt.patterns.blocks import IN_HOUR, Hour, Known, PatternBlock, minutes_of

_ACCEPTED = Q(node=INGEST, fact=Fact.SENT, detail=ACKED)
_DELIVERED = Q(fact=Fact.DELIVERED)
_FAILED = Q(fact=Fact.DEAD) | Q(fact=Fact.PARKED, detail="1")


def blocks_of(pipe_ids: Sequence[str], number: int) -> dict[str, PatternBlock]:
    """Return block `number` of each pipe for which the ledger has facts in it; two queries."""
    minutes = minutes_of(number)
    rows = FactRow.objects.filter(_ACCEPTED | _DELIVERED | _FAILED, pipe_id__in=pipe_ids, bucket__in=list(minutes))
    counts = (
        rows.exclude(node__startswith=RAMP_PREFIX)
        .values_list("pipe_id")
        .annotate(
            accepted=Sum("count", filter=_ACCEPTED, default=0),
            delivered=Sum("count", filter=_DELIVERED, default=0),
            failed=Sum("count", filter=_FAILED, default=0),
        )
    )
    lags = end_to_end(pipe_ids, BucketRange("", minutes[0], minutes[-1]))
    return {
        pipe: PatternBlock(accepted, delivered, failed, lags[pipe].count, lags[pipe].quantile(P95))
        if pipe in lags
        else PatternBlock(accepted, delivered, failed)
        for pipe, accepted, delivered, failed in counts
    }


def hours_of(pipe_ids: Collection[str], hours: Collection[int]) -> Mapping[str, Known]:
    """Return the stored blocks of these hours, by pipe and hour; one query."""
    found: dict[str, dict[int, Hour]] = defaultdict(dict)
    rows = PatternHour.objects.filter(pipe_id__in=pipe_ids, hour__in=hours)
    for pipe, hour, blocks in rows.values_list("pipe_id", "hour", "blocks").iterator():
        found[pipe][hour] = msgspec.convert(blocks, list[PatternBlock | None])
    return found


def with_block(hour: Hour | None, place: int, block: PatternBlock) -> list[PatternBlock | None]:
    """Return the hour's blocks with one more at index `place`."""
    blocks: list[PatternBlock | None] = list(hour) if hour is not None else [None] * IN_HOUR
    blocks[place] = block
    return blocks
