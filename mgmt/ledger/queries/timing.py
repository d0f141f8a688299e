"""Latency of a pipe: lags and process durations by node, and the breakdown of the time of delivered messages.

Every figure is read from sketches over one population, so no duration is a difference between different messages:

- for a node: the messages that left it, with their lag on arrival, their lag on departure and the time between;
- for the breakdown: the messages that were delivered, with the time of each slice since ingest.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db.models import QuerySet

from dataplane.ledger.breakdown import Breakdown, Slice
from dataplane.ledger.facts import INGEST
from dataplane.ledger.sketch import P95, LagSketch
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


@dataclass
class _Node:
    """Sketches of one node, merged over minutes and audit partitions."""

    lag_in: LagSketch = field(default_factory=LagSketch)
    lag_out: LagSketch = field(default_factory=LagSketch)
    own: LagSketch = field(default_factory=LagSketch)

    def add(self, encoded: Sequence[bytes | memoryview | None]) -> None:
        for sketch, value in zip((self.lag_in, self.lag_out, self.own), encoded, strict=True):
            if value is not None:
                sketch.merge(LagSketch.decode(bytes(value)))


def timing(*, pipe_id: str, span: BucketRange) -> Timing:
    """Return the latency of one pipe within a span."""
    nodes: defaultdict[str, _Node] = defaultdict(_Node)
    minutes: defaultdict[int, Breakdown] = defaultdict(Breakdown)
    ends: defaultdict[int, LagSketch] = defaultdict(LagSketch)
    for bucket, node, breakdown, *sketches in (
        _rows(pipe_id, span).values_list("bucket", "node", "breakdown", "lag_in", "lag_out", "own").iterator()
    ):
        nodes[node].add(sketches)
        if node.startswith(_TRANSMIT) and sketches[1] is not None:
            ends[bucket].merge(LagSketch.decode(bytes(sketches[1])))
        if breakdown is not None:
            minutes[bucket].merge(Breakdown.decode(bytes(breakdown)))
    whole = _merged(minutes.values())
    lags = [sketches.lag_out for node, sketches in nodes.items() if node.startswith(_TRANSMIT)]
    lags += waiting_lags([pipe_id], span).values()
    return Timing(
        nodes=_node_timings(nodes),
        pie=portions(whole),
        series=_series(minutes, span),
        whole=_percentiles(whole.whole),
        mean_us=round(whole.sum_us / whole.count) if whole.count else None,
        source=_percentiles(whole.source),
        end_to_end_us=_quantile(lags, P95),
        skewed=any(sketch.min_us < 0 for node in nodes.values() for sketch in (node.lag_in, node.lag_out)),
        lags=_lag_points(ends, span),
    )


def measured_buckets(*, pipe_id: str, span: BucketRange) -> list[int]:
    """Return the buckets of a span in which messages left a node, in no particular order."""
    return list(_rows(pipe_id, span).order_by().values_list("bucket", flat=True).distinct())


def timing_by_bucket(*, pipe_id: str, buckets: Collection[int]) -> dict[int, tuple[NodeTiming, ...]]:
    """Return the lags and process durations of each node in each of these buckets; one query."""
    found: dict[int, defaultdict[str, _Node]] = {bucket: defaultdict(_Node) for bucket in buckets}
    if not found:
        return {}
    rows = _rows(pipe_id, BucketRange("", min(found), max(found))).filter(bucket__in=list(found))
    for bucket, node, *sketches in rows.values_list("bucket", "node", "lag_in", "lag_out", "own").iterator():
        found[bucket][node].add(sketches)
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


def waiting_lags(pipe_ids: Sequence[str], span: BucketRange) -> dict[str, LagSketch]:
    """Return the lags of the messages that wait for their delivery, at the last check of their destination.

    A range that ends now includes messages that are older than the range: they wait now.
    """
    rows = DestinationHealth.objects.filter(destination__pipe_id__in=pipe_ids, waiting__gt=0)
    found: defaultdict[str, LagSketch] = defaultdict(LagSketch)
    for pipe_id, at, minutes in rows.values_list("destination__pipe_id", "checked_at", "waiting_minutes"):
        for bucket, count in minutes:
            if bucket <= span.last and (span.name or bucket >= span.first):
                found[pipe_id].add([int((at - start_of(bucket)).total_seconds()) * 1_000_000], [count])
    return dict(found)


def portions(breakdown: Breakdown) -> tuple[TimingPortion, ...]:
    """Return the slices of a breakdown in the order of travel; empty if nothing took time. Pure."""
    found = list(breakdown.portions(P95))
    whole_us = sum(portion.took_us for portion in found)
    return tuple(
        TimingPortion(
            name=SLICE_NAMES[portion.slice],
            took_us=portion.took_us,
            share=portion.took_us / whole_us if whole_us else 0.0,
            mean_us=round(portion.sum_us / breakdown.count),
        )
        for portion in found
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


def _node_timings(nodes: Mapping[str, _Node]) -> tuple[NodeTiming, ...]:
    return tuple(_node_timing(node, nodes[node]) for node in in_travel_order(nodes))


def _node_timing(node: str, found: _Node) -> NodeTiming:
    return NodeTiming(node, _percentiles(found.lag_in), _percentiles(found.lag_out), _percentiles(found.own))


def _percentiles(sketch: LagSketch) -> Percentiles | None:
    if not sketch.count:
        return None
    return Percentiles(sketch.quantile(0.5), sketch.quantile(P95), sketch.quantile(0.99), sketch.max_us, sketch.count)


def _quantile(sketches: Iterable[LagSketch], quantile: float) -> int | None:
    together = LagSketch()
    for sketch in sketches:
        together.merge(sketch)
    return together.quantile(quantile) if together.count else None


def _merged(many: Iterable[Breakdown]) -> Breakdown:
    merged = Breakdown()
    for breakdown in many:
        merged.merge(breakdown)
    return merged


def _lag_points(ends: Mapping[int, LagSketch], span: BucketRange) -> tuple[LagPoint, ...]:
    points: list[LagPoint] = []
    for group in span.groups():
        together = LagSketch()
        for bucket in group:
            if bucket in ends:
                together.merge(ends[bucket])
        if together.count:
            points.append(LagPoint(group.start, together.quantile(0.5), together.quantile(P95)))
    return tuple(points)


def _series(minutes: Mapping[int, Breakdown], span: BucketRange) -> ShareSeries:
    groups = span.groups()
    found = [
        {portion.name: portion.share for portion in portions(_merged(minutes[b] for b in group if b in minutes))}
        for group in groups
    ]
    names = tuple(name for name in SLICE_NAMES.values() if any(name in shares for shares in found))
    values = tuple(tuple(shares.get(name, 0.0) if shares else None for name in names) for shares in found)
    return ShareSeries(tuple(group.start for group in groups), names, values)
