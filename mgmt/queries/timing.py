"""Lag per node and where the time goes: sketches of a span, merged, and read by the rules of mgmt.queries.lag."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dataplane.ledger.facts import INGEST
from dataplane.ledger.sketch import P95, Sketch
from dataplane.names import PROCESS_NODES, RAMP_PREFIX, transform_node, transmit_node
from mgmt.models import LagRow
from mgmt.queries.lag import Hop, Passage, end_to_end_us, hops, process_duration_us, shares, side_by_side
from mgmt.queries.span import Span

_K = TypeVar("_K")
Point = tuple[str, str]  # (node, way)
_TRANSFORM, _TRANSMIT = transform_node(""), transmit_node("")
_COMMON = (INGEST, *PROCESS_NODES[:3])


@dataclass(frozen=True)
class Percentiles:
    """Lags in microseconds, and how many passes they were read from."""

    p50: int
    p95: int
    p99: int
    max: int
    count: int


@dataclass(frozen=True)
class NodeLag:
    """A row of the lag table: cumulative lags and what the node itself took, at the same percentiles."""

    node: str
    lag_in: Percentiles | None
    lag_out: Percentiles | None
    took: Percentiles | None


@dataclass(frozen=True)
class HopShare:
    """A slice of the pie."""

    hop: Hop
    share: float


@dataclass(frozen=True)
class ShareSeries:
    """Shares over time: for each hop one value (0..1) per group of minutes, None where nothing was measured."""

    buckets: tuple[int, ...]
    names: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]  # values[i] belongs to buckets[i], in the order of names


@dataclass(frozen=True)
class Timing:
    """Everything the pipe page says about time."""

    nodes: tuple[NodeLag, ...]
    pie: tuple[HopShare, ...]
    series: ShareSeries
    end_to_end_us: int | None  # None as long as nothing was delivered
    skewed: bool  # some lag is negative: a source's clock runs ahead of ours


def timing(*, pipe_id: str, span: Span) -> Timing:
    """Lags of one pipe within a span."""
    minutes: dict[int, dict[Point, Sketch]] = {}
    rows = LagRow.objects.filter(pipe_id=pipe_id, bucket__range=(span.first, span.last))
    rows = rows.exclude(node__startswith=RAMP_PREFIX)  # the same passes once more, told apart by revision
    for bucket, node, way, encoded in rows.values_list("bucket", "node", "way", "sketch").iterator():
        _merge_into(minutes.setdefault(bucket, {}), (node, way), Sketch.decode(bytes(encoded)))
    whole = _merged(minutes.values())
    travelled = passages(whole, P95)
    return Timing(
        nodes=tuple(_node_lag(node, whole) for node in in_travel_order({node for node, _ in whole})),
        pie=tuple(HopShare(hop, share) for hop, share in shares(hops(side_by_side(travelled)))),
        series=_series(minutes, span),
        end_to_end_us=end_to_end_us(travelled) if travelled[-1].out_us is not None else None,
        skewed=any(sketch.min_us < 0 for sketch in whole.values()),
    )


def end_to_end(pipe_ids: Sequence[str], span: Span) -> dict[str, Sketch]:
    """For each pipe that delivered something in the span: its end-to-end lags."""
    rows = LagRow.objects.filter(
        pipe_id__in=pipe_ids, bucket__range=(span.first, span.last), node__startswith=_TRANSMIT, way="out"
    )
    found: dict[str, Sketch] = {}
    for pipe_id, encoded in rows.values_list("pipe_id", "sketch").iterator():
        _merge_into(found, pipe_id, Sketch.decode(bytes(encoded)))
    return {pipe_id: sketch for pipe_id, sketch in found.items() if sketch.count}


def end_to_end_p95(pipe_ids: Sequence[str], span: Span) -> dict[str, int]:
    """For each pipe that delivered something in the span: the 95th percentile of its end-to-end lag."""
    return {pipe_id: sketch.quantile(P95) for pipe_id, sketch in end_to_end(pipe_ids, span).items()}


def passages(sketches: Mapping[Point, Sketch], quantile: float) -> list[Passage]:
    """The way of a pipe's messages at one percentile; several destinations are taken together."""
    way = [_passage(node, sketches, (node,), quantile) for node in _COMMON]
    for name, prefix in (("transform", _TRANSFORM), ("transmit", _TRANSMIT)):
        nodes = tuple({node for node, _ in sketches if node.startswith(prefix)})
        way.append(_passage(name, sketches, nodes, quantile))
    return way


def in_travel_order(nodes: Iterable[str]) -> list[str]:
    """Common nodes first, then each destination's transform and transmit."""

    def place(node: str) -> tuple[int, str, str]:
        if node in _COMMON:
            return (_COMMON.index(node), "", "")
        kind, _, destination = node.partition(":")
        return (len(_COMMON), destination, kind)

    return sorted(nodes, key=place)


def _passage(name: str, sketches: Mapping[Point, Sketch], nodes: Iterable[str], quantile: float) -> Passage:
    known = list(nodes)
    arrivals = _quantile([sketches[node, "in"] for node in known if (node, "in") in sketches], quantile)
    departures = _quantile([sketches[node, "out"] for node in known if (node, "out") in sketches], quantile)
    return Passage(name, arrivals, departures)


def _quantile(sketches: Sequence[Sketch], quantile: float) -> int | None:
    together = Sketch()
    for sketch in sketches:
        together.merge(sketch)
    return together.quantile(quantile) if together.count else None


def _node_lag(node: str, sketches: Mapping[Point, Sketch]) -> NodeLag:
    lag_in, lag_out = _percentiles(sketches.get((node, "in"))), _percentiles(sketches.get((node, "out")))
    return NodeLag(node, lag_in, lag_out, _difference(node, lag_in, lag_out))


def _percentiles(sketch: Sketch | None) -> Percentiles | None:
    if sketch is None or not sketch.count:
        return None
    return Percentiles(sketch.quantile(0.5), sketch.quantile(P95), sketch.quantile(0.99), sketch.max_us, sketch.count)


def _difference(node: str, lag_in: Percentiles | None, lag_out: Percentiles | None) -> Percentiles | None:
    if lag_in is None or lag_out is None:
        return None

    def took(in_us: int, out_us: int) -> int:
        return process_duration_us(Passage(node, in_us, out_us)) or 0

    return Percentiles(
        took(lag_in.p50, lag_out.p50),
        took(lag_in.p95, lag_out.p95),
        took(lag_in.p99, lag_out.p99),
        took(lag_in.max, lag_out.max),
        lag_out.count,
    )


def _series(minutes: Mapping[int, Mapping[Point, Sketch]], span: Span) -> ShareSeries:
    groups = span.groups()
    found: list[dict[str, float]] = []
    names: dict[str, None] = {}
    for group in groups:
        merged = _merged(minutes[bucket] for bucket in group if bucket in minutes)
        parts = {hop.name: share for hop, share in shares(hops(side_by_side(passages(merged, P95))))}
        names |= dict.fromkeys(parts)
        found.append(parts)
    values = tuple(tuple(parts.get(name, 0.0) if parts else None for name in names) for parts in found)
    return ShareSeries(tuple(group.start for group in groups), tuple(names), values)


def _merged(many: Iterable[Mapping[Point, Sketch]]) -> dict[Point, Sketch]:
    merged: dict[Point, Sketch] = {}
    for sketches in many:
        for point, sketch in sketches.items():
            _merge_into(merged, point, sketch)
    return merged


def _merge_into(merged: dict[_K, Sketch], key: _K, sketch: Sketch) -> None:
    if key not in merged:
        merged[key] = Sketch()
    merged[key].merge(sketch)
