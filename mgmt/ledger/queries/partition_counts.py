"""Events of the last minutes by partition of the ingest topic, and the lag of these partitions, from the ledger.

Counts come from the sets of ACKed positions that ingest reports anyway; lags from the offsets that lanes report as
settled. Neither costs a lane anything.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from django.db.models import Sum
from msgspec import Struct
from pyroaring import BitMap64

from dataplane.ledger.facts import ACKED, INGEST, Fact
from dataplane.ledger.units import partition_base
from mgmt.models import FactRow, Topic


class PartitionCounts(Struct, frozen=True):
    """Events of one pipe.

    counts: bucket -> events on each partition
    ends:   partition -> offset after the newest one
    parts:  partition -> share of its newest records that are of the pipe, 0 to 1
    """

    counts: Mapping[int, Sequence[int]]
    ends: Mapping[int, int]
    parts: Mapping[int, float]


def busiest_pipes(first: int, *, least: int, most: int) -> list[str]:
    """Return the ids of the pipes with at least `least` ACKed events in buckets from `first`, busiest first."""
    events = FactRow.objects.filter(FactRow.OF_PIPES, node=INGEST, fact=Fact.SENT, detail=ACKED)
    rows = events.filter(bucket__gte=first).order_by()
    sums = rows.values_list("pipe_id").annotate(events=Sum("count")).filter(events__gte=least)
    return [pipe_id for pipe_id, _ in sums.order_by("-events", "pipe_id")[:most]]


def partition_counts(pipe_id: str, first: int, topic: Topic) -> PartitionCounts:
    """Return the events of a pipe in buckets from `first` by partition of one generation of its ingest topic."""
    rows = FactRow.objects.filter(pipe_id=pipe_id, bucket__gte=first, node=INGEST, fact=Fact.SENT, detail=ACKED)
    sets: defaultdict[int, BitMap64] = defaultdict(BitMap64)
    for bucket, serialized in rows.values_list("bucket", "positions"):
        sets[bucket] |= BitMap64.deserialize(bytes(serialized))
    bases = [partition_base(topic.generation, partition) for partition in range(topic.partitions + 1)]
    counts = {}
    spans: dict[int, tuple[int, int, int]] = {}  # partition -> first and last position, number of them
    for bucket, positions in sets.items():
        ranks = [positions.rank(base - 1) for base in bases]  # generations begin at 1, so no base is 0
        counts[bucket] = [after - before for before, after in pairwise(ranks)]
        for partition, count in enumerate(counts[bucket]):
            if count:
                low, high = positions[ranks[partition]], positions[ranks[partition + 1] - 1]
                known = spans.get(partition, (low, high, 0))
                spans[partition] = (min(known[0], low), max(known[1], high), known[2] + count)
    return PartitionCounts(
        counts,
        {partition: high - bases[partition] + 1 for partition, (_, high, _) in spans.items()},
        {partition: count / (high - low + 1) for partition, (low, high, count) in spans.items()},
    )


def lags_of(settled: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, int]:
    """Return the records before `ends` that no lane has settled, by partition; 0 where no lane has reported yet."""
    return {partition: max(0, end - settled.get(partition, end)) for partition, end in ends.items()}
