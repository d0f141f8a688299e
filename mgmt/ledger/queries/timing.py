"""Latency of a pipe: lags and process durations by node, and the breakdown of the time of delivered messages.

Every figure is read from sketches over one population, so no duration is a difference between different messages:

- for a node: the messages that left it, with their lag on arrival, their lag on departure and the time between;
- for the breakdown: the messages that were delivered, with the time of each slice since ingest.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from django.db.models import QuerySet

from dataplane.ledger.breakdown import Slice
from dataplane.ledger.breakdown_grid import BreakdownGrid, GroupTimes
from dataplane.ledger.facts import INGEST
from dataplane.ledger.sketch import P95, LagSketch, SketchGrid
from dataplane.names import PROCESS_NODES, RAMP_PREFIX, transmit_node
from mgmt.ledger.queries.bucket_range import BucketRange, start_of
from mgmt.models import DestinationHealth, LagRow

_TRANSMIT: Final = transmit_node("")
_COMMON: Final = (INGEST, *PROCESS_NODES[:3])
SLICE_NAMES: Final[Mapping[Slice, str]] = {
    Slice.WINDOW: "window",
    Slice.INGEST: "ingest",
    Slice.PROCESS_QUEUE: "process queue",
    Slice.DEDUP: "deduplication",
    Slice.NORMALIZE: "normalize",
    Slice.ENRICH: "enrich",
    Slice.ROUTE: "route",
    Slice.TRANSFORM: "transform",
    Slice.TRANSMIT_QUEUE: "transmit queue",
    Slice.DESTINATION_QUEUE: "destination queue",
    Slice.HELD: "held",
    Slice.RETRY: "retry wait",
    Slice.DEAD_LETTER: "dead-lettered",
    Slice.TRANSMIT: "transmit",
    Slice.LAKE: "lake",
}


@dataclass(frozen=True)
class Percentiles:
    """Lags or durations in microseconds; `count` is the number of measured passages of messages."""

    p50: int
    p95: int
    p99: int
    max: int
    count: int


@dataclass(frozen=True)
class NodeTiming:
    """Row of the lag table. `own`: process duration; None for rows written by lanes of an earlier release."""

    node: str
    lag_in: Percentiles | None
    lag_out: Percentiles | None
    own: Percentiles | None


@dataclass(frozen=True)
class TimingPortion:
    """Slice of the breakdown.

    took_us: cumulative time after the slice minus that before it, both at the 95th percentile
    share:   of the whole at the 95th percentile (0..1)
    mean_us: of the slice's durations; the means add up to the mean of the whole
    """

    name: str
    took_us: int
    share: float
    mean_us: int


@dataclass(frozen=True)
class ShareSeries:
    """Shares over time: for each slice one value (0..1) per group of minutes, None where nothing was delivered."""

    buckets: tuple[int, ...]
    names: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]  # values[i] belongs to buckets[i], in the order of names


@dataclass(frozen=True)
class LagPoint:
    """End-to-end lag of the messages of one group of minutes that were delivered; `bucket` is its first minute."""

    bucket: int
    p50_us: int
    p95_us: int


@dataclass(frozen=True)
class Timing:
    """Latency of a pipe within a bucket range.

    whole:         from ingest to the destination's answer; None if nothing was delivered
    mean_us:       mean of the whole
    source:        from the event's time to ingest: the source's clock and its path to Penstock, not part of the whole
    end_to_end_us: 95th percentile from the event's time to the destination's answer, or to now for messages that wait
    skewed:        some lag is negative: a source's clock runs ahead of Penstock's
    lags:          end-to-end lag over time; groups of minutes of which no message was delivered are omitted
    """

    nodes: tuple[NodeTiming, ...]
    pie: tuple[TimingPortion, ...]
    series: ShareSeries
    whole: Percentiles | None
    mean_us: int | None
    source: Percentiles | None
    end_to_end_us: int | None
    skewed: bool
    lags: tuple[LagPoint, ...] = ()


class TimingRow(NamedTuple):
    """Encoded sketches and breakdown of one node in one minute and audit partition."""

    bucket: int
    node: str
    lag_in: bytes | memoryview | None
    lag_out: bytes | memoryview | None
    own: bytes | memoryview | None
    breakdown: bytes | memoryview | None = None


def timing(*, pipe_id: str, span: BucketRange) -> Timing:
    """Return the latency of one pipe within a span."""
    return timing_of(timing_rows(pipe_id=pipe_id, span=span), span, health_of([pipe_id]))


def timing_rows(*, pipe_id: str, span: BucketRange) -> list[TimingRow]:
    """Return the rows of one pipe within a span, for `timing_of` it or of any part of it."""
    return [TimingRow(*row) for row in _rows(pipe_id, span).values_list(*TimingRow._fields)]


def timing_of(rows: Iterable[TimingRow], span: BucketRange, health: Iterable[DestinationHealth]) -> Timing:
    """Return the latency of one pipe within a span, from rows of a range that contains it.

    health: of the pipe's destinations
    """
    within = [row for row in rows if span.first <= row.bucket <= span.last]
    groups = span.groups()
    step = len(groups[0])
    found = (((row.bucket - span.first) // step, row.breakdown) for row in within if row.breakdown is not None)
    breakdowns = BreakdownGrid(len(groups), found)
    end_to_end_us, lags = _lags(within, waiting_lags(health, span).values(), groups)
    return Timing(
        nodes=_node_timings(within),
        pie=portions(breakdowns.of_all(P95)),
        series=_series(breakdowns.of_groups(P95), groups),
        whole=_grid_percentiles(breakdowns.whole)[0],
        mean_us=round(breakdowns.sum_us / breakdowns.count) if breakdowns.count else None,
        source=_grid_percentiles(breakdowns.source)[0],
        end_to_end_us=end_to_end_us,
        skewed=any(_least_us(row.lag_in) < 0 or _least_us(row.lag_out) < 0 for row in within),
        lags=lags,
    )


def measured_buckets(*, pipe_id: str, span: BucketRange) -> list[int]:
    """Return the buckets of a span in which messages left a node, in no particular order."""
    return list(_rows(pipe_id, span).order_by().values_list("bucket", flat=True).distinct())


def timing_by_bucket(*, pipe_id: str, buckets: Collection[int]) -> dict[int, tuple[NodeTiming, ...]]:
    """Return the lags and process durations of each node in each of these buckets; one query."""
    found: dict[int, list[TimingRow]] = {bucket: [] for bucket in buckets}
    if not found:
        return {}
    rows = _rows(pipe_id, BucketRange("", min(found), max(found))).filter(bucket__in=list(found))
    for row in rows.values_list("bucket", "node", "lag_in", "lag_out", "own"):
        found[row[0]].append(TimingRow(*row))
    return {bucket: _node_timings(nodes) for bucket, nodes in found.items()}


def end_to_end(pipe_ids: Sequence[str], span: BucketRange) -> dict[str, LagSketch]:
    """Return the end-to-end lags of each pipe that delivered something in the span."""
    rows = LagRow.objects.filter(
        pipe_id__in=pipe_ids,
        bucket__range=(span.first, span.last),
        node__startswith=_TRANSMIT,
    )
    found: defaultdict[str, LagSketch] = defaultdict(LagSketch)
    for pipe_id, encoded in rows.values_list("pipe_id", "lag_out").iterator():
        if encoded is not None:
            found[pipe_id].merge(LagSketch.decode(bytes(encoded)))
    return {pipe_id: sketch for pipe_id, sketch in found.items() if sketch.count}


def health_of(pipe_ids: Sequence[str]) -> list[DestinationHealth]:
    """Return the health of the destinations at which messages wait."""
    rows = DestinationHealth.objects.filter(destination__pipe_id__in=pipe_ids, waiting__gt=0)
    return list(rows.select_related("destination"))


def waiting_lags(health: Iterable[DestinationHealth], span: BucketRange) -> dict[str, LagSketch]:
    """Return by pipe the lags of the messages that wait for their delivery, at the last check of their destination.

    A range that ends now includes messages that are older than the range: they wait now.
    """
    found: defaultdict[str, LagSketch] = defaultdict(LagSketch)
    for row in health:
        for bucket, count in row.waiting_minutes if row.waiting else ():
            if bucket <= span.last and (span.name or bucket >= span.first):
                lag_us = int((row.checked_at - start_of(bucket)).total_seconds()) * 1_000_000
                found[row.destination.pipe_id].add([lag_us], [count])
    return dict(found)


def portions(times: GroupTimes) -> tuple[TimingPortion, ...]:
    """Return the slices at the 95th percentile in the order of travel; empty if nothing took time. Pure."""
    whole_us = sum(one.took_us for one in times.slices)
    return tuple(
        TimingPortion(
            name=SLICE_NAMES[one.slice],
            took_us=one.took_us,
            share=one.took_us / whole_us if whole_us else 0.0,
            mean_us=round(one.sum_us / times.deliveries),
        )
        for one in times.slices
    )


def in_travel_order(nodes: Iterable[str]) -> list[str]:
    """Sort nodes: common ones first, then each destination's transform and transmit."""

    def place(node: str) -> tuple[int, str, str]:
        if node in _COMMON:
            return (_COMMON.index(node), "", "")
        kind, _, destination = node.partition(":")
        return (len(_COMMON), destination, kind)

    return sorted(nodes, key=place)


def _rows(pipe_id: str, span: BucketRange) -> QuerySet[LagRow]:
    rows = LagRow.objects.filter(pipe_id=pipe_id, bucket__range=(span.first, span.last))
    return rows.exclude(node__startswith=RAMP_PREFIX)  # the same passages again, by revision


def _node_timings(rows: Sequence[TimingRow]) -> tuple[NodeTiming, ...]:
    """Return the figures of each node, from its sketches merged over minutes and audit partitions."""
    nodes = in_travel_order({row.node for row in rows})
    place = {node: 3 * number for number, node in enumerate(nodes)}
    sketches = [
        (place[row.node] + column, encoded)
        for row in rows
        for column, encoded in enumerate((row.lag_in, row.lag_out, row.own))
        if encoded is not None
    ]
    grid = SketchGrid(3 * len(nodes), sketches)
    found = _grid_percentiles(grid)
    return tuple(NodeTiming(node, *found[place[node] : place[node] + 3]) for node in nodes)


def _grid_percentiles(grid: SketchGrid) -> list[Percentiles | None]:
    quantiles = zip(*(grid.quantiles(q) for q in (0.5, P95, 0.99)), strict=True)
    rows = zip(quantiles, grid.maxima(), grid.counts(), strict=True)
    return [
        None if p50 is None or p95 is None or p99 is None else Percentiles(p50, p95, p99, most, count)
        for (p50, p95, p99), most, count in rows
    ]


def _least_us(encoded: bytes | memoryview | None) -> int:
    return 0 if encoded is None else LagSketch.least_us(bytes(encoded))


def _lags(
    rows: Sequence[TimingRow], waiting: Iterable[LagSketch], groups: Sequence[range]
) -> tuple[int | None, tuple[LagPoint, ...]]:
    """Return the end-to-end lag of the whole range with what waits, and that of each group without."""
    first, step = groups[0].start, len(groups[0])
    sketches: list[tuple[int, bytes | memoryview]] = [
        ((row.bucket - first) // step, row.lag_out)
        for row in rows
        if row.node.startswith(_TRANSMIT) and row.lag_out is not None
    ]
    sketches += [(len(groups), one.encode()) for one in waiting]
    grid = SketchGrid(len(groups) + 1, sketches)
    points = zip(groups, grid.quantiles(0.5), grid.quantiles(P95), strict=False)
    return grid.merged(len(groups) + 1).quantiles(P95)[0], tuple(
        LagPoint(group.start, p50, p95) for group, p50, p95 in points if p50 is not None and p95 is not None
    )


def _series(times: Iterable[GroupTimes], groups: Sequence[range]) -> ShareSeries:
    """Return the shares of each group of minutes."""
    found = [{portion.name: portion.share for portion in portions(one)} for one in times]
    names = tuple(name for name in SLICE_NAMES.values() if any(name in shares for shares in found))
    values = tuple(tuple(shares.get(name, 0.0) if shares else None for name in names) for shares in found)
    return ShareSeries(tuple(group.start for group in groups), names, values)
