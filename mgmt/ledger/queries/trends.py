"""Trends: what many pipes accepted and delivered over a range, and their lags, in parts of equal length.

The sums are those of the pipe's own page (mgmt.ledger.queries.minutes).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dataplane.ledger.sketch import P95, SketchGrid
from mgmt.ledger.queries.bucket_range import MINUTE_S, BucketRange
from mgmt.ledger.queries.minute_sums import MinuteGroup, TrendSums
from mgmt.ledger.queries.rollups import RangeSums, range_sums
from mgmt.ledger.queries.timing import health_of, waiting_lags
from mgmt.models import DestinationHealth

_OTHERS: Final = "others"  # series of the pipes that only count in the total


@dataclass(frozen=True)
class Trend:
    """Figures of a range by part (BucketRange.parts), oldest first.

    lag_p95s_us: 95th percentile of the end-to-end lags of each part; the last one includes messages that wait now
    lag_p95_us:  of the whole range
    """

    span: BucketRange
    sums: Sequence[TrendSums]
    lag_p95s_us: Sequence[int | None]
    lag_p95_us: int | None

    @property
    def whole(self) -> TrendSums:
        """Sums of the whole range."""
        return TrendSums(*map(sum, zip(*self.sums, strict=True)))

    @property
    def rates(self) -> list[float]:
        """Accepted events per second of each part; the last one is not over, so its rate still grows."""
        parts = zip(self.span.parts(), self.sums, strict=True)
        return [sums.accepted / (len(minutes) * MINUTE_S) for minutes, sums in parts]

    @property
    def shares(self) -> list[float | None]:
        """Share of successful deliveries of each part."""
        return [sums.share for sums in self.sums]


class Trends(NamedTuple):
    """Trend of each pipe by id, and of all of them together."""

    by_pipe: Mapping[str, Trend]
    total: Trend


def trends_of(
    pipe_ids: Sequence[str],
    span: BucketRange,
    health: Iterable[DestinationHealth] | None = None,
    others: Sequence[str] = (),
) -> Trends:
    """Return the trends of pipes.

    health: of the destinations of all these pipes; read here if it is None
    others: pipes that only count in the total
    """
    step, parts = span.part_minutes, len(span.parts())
    series_of = {pipe_id: pipe_id for pipe_id in pipe_ids} | dict.fromkeys(others, _OTHERS)
    names = [*pipe_ids, _OTHERS] if others else list(pipe_ids)
    found = range_sums(series_of, span.first, span.last + 1, step)
    first = span.first // step
    nothing = TrendSums()
    sums = {name: [nothing] * parts for name in names}
    for key, of_part in found.groups.sums.items():
        sums[key.series][key.number - first] = of_part
    lags = _lags(names, series_of, span, found, health_of(list(series_of)) if health is None else health)
    by_part, by_series = lags.quantiles(P95), lags.merged(parts).quantiles(P95)
    everything = [TrendSums(*map(sum, zip(*same, strict=True))) for same in zip(*sums.values(), strict=True)]
    total = lags.of_all(parts)
    return Trends(
        by_pipe={
            pipe_id: Trend(span, sums[pipe_id], by_part[row * parts : (row + 1) * parts], by_series[row])
            for row, pipe_id in enumerate(pipe_ids)
        },
        total=Trend(span, everything or [nothing] * parts, total.quantiles(P95), total.merged(parts).quantiles(P95)[0]),
    )


def _lags(
    names: Sequence[str],
    series_of: Mapping[str, str],
    span: BucketRange,
    found: RangeSums,
    health: Iterable[DestinationHealth],
) -> SketchGrid:
    """Return the end-to-end lags of each part of each series: a group is its row times the parts plus the part."""
    parts, first = len(span.parts()), span.first // span.part_minutes
    row_of = {name: row for row, name in enumerate(names)}

    def group_of(key: MinuteGroup) -> int:
        return row_of[key.series] * parts + key.number - first

    sketches = [(group_of(key), encoded) for key, encoded in found.sketches]
    for pipe_id, waiting in waiting_lags(health, span).items():
        sketches.append((row_of[series_of[pipe_id]] * parts + parts - 1, waiting.encode()))
    packed = [(group_of(key), one) for key, one in found.packed]
    return SketchGrid(len(names) * parts, sketches, packed)
