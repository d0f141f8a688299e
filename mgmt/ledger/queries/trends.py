"""Trends: what many pipes accepted and delivered over a range, and their lags, in parts of equal length.

The sums are those of the pipe's own page (mgmt.ledger.queries.minutes). A sealed minute whose units all had a final
outcome is added up by the database; only the other minutes are derived here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, NamedTuple

from django.db import connection

from dataplane.ledger.bins import Bin, derive, healthy_counts
from dataplane.ledger.sketch import P95, SketchGrid
from dataplane.names import transmit_node
from mgmt.ledger.queries.bucket_range import MINUTE_S, BucketRange
from mgmt.ledger.queries.ledger import MinuteKey, books_of
from mgmt.ledger.queries.minutes import Counts, from_account, judged_counts
from mgmt.ledger.queries.timing import waiting_lags
from mgmt.models import LagRow

PARTS: Final = 12
# One row for each part of a pipe's range, and one for each sealed minute that may have changed since its seal.
_SEALED: Final = """
WITH sealed AS (
    SELECT s.pipe_id, s.bucket, s.accepted, b.delivered, b.undelivered, b.lost,
        b.open > 0 OR EXISTS (
            SELECT FROM mgmt_latecount l WHERE l.pipe_id = s.pipe_id AND l.bucket = s.bucket
        ) AS may_differ
    FROM mgmt_seal s CROSS JOIN LATERAL (
        SELECT coalesce(sum((d.bins ->> 'delivered')::int), 0) AS delivered,
            coalesce(sum((d.bins ->> 'lost')::int), 0) AS lost,
            coalesce(sum(coalesce((d.bins ->> 'dead')::int, 0) + coalesce((d.bins ->> 'held')::int, 0)
                + coalesce((d.bins ->> 'retrying')::int, 0) + coalesce((d.bins ->> 'lost')::int, 0)), 0) AS undelivered,
            coalesce(sum(coalesce((d.bins ->> 'retrying')::int, 0) + coalesce((d.bins ->> 'queued')::int, 0)
                + coalesce((d.bins ->> 'held')::int, 0)), 0) AS open
        FROM jsonb_each(s.bins) AS d(name, bins)
    ) b
    WHERE s.pipe_id = ANY(%(pipes)s) AND s.bucket BETWEEN %(first)s AND %(last)s
)
SELECT pipe_id, (bucket - %(first)s) / %(step)s, CASE WHEN may_differ THEN bucket END,
    sum(accepted), sum(delivered), sum(undelivered), sum(lost)
FROM sealed GROUP BY 1, 2, 3
"""
_UNSEALED: Final = """
SELECT DISTINCT f.pipe_id, f.bucket FROM mgmt_factrow f
WHERE f.pipe_id = ANY(%(pipes)s) AND f.bucket BETWEEN %(first)s AND %(last)s AND NOT EXISTS (
    SELECT FROM mgmt_seal s WHERE s.pipe_id = f.pipe_id AND s.bucket = f.bucket
)
"""


class TrendSums(NamedTuple):
    """Events accepted, and deliveries by outcome. Queued, filtered and cancelled deliveries are in none.

    undelivered: dead, held and retrying ones, and `lost`; lost: of sealed minutes, for in an open one loss is not final
    """

    accepted: int = 0
    delivered: int = 0
    undelivered: int = 0
    lost: int = 0

    @property
    def share(self) -> float | None:
        """Share (0 to 1) of the deliveries that succeeded; None if there is none."""
        of = self.delivered + self.undelivered
        return self.delivered / of if of else None


def _add(one: TrendSums, other: TrendSums) -> TrendSums:
    return TrendSums(*map(sum, zip(one, other, strict=True)))


@dataclass(frozen=True)
class Trend:
    """Figures of a range by part, oldest first.

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
        part_s = self.span.minutes * MINUTE_S / PARTS
        return [sums.accepted / part_s for sums in self.sums]

    @property
    def shares(self) -> list[float | None]:
        """Share of successful deliveries of each part."""
        return [sums.share for sums in self.sums]


class Trends(NamedTuple):
    """Trend of each pipe by id, and of all of them together."""

    by_pipe: Mapping[str, Trend]
    total: Trend


def trends_of(pipe_ids: Sequence[str], span: BucketRange) -> Trends:
    """Return the trends of pipes; `span` divides into PARTS."""
    step = span.minutes // PARTS
    sums = {pipe_id: [TrendSums()] * PARTS for pipe_id in pipe_ids}
    for (pipe_id, part), more in _sums(pipe_ids, span, step):
        sums[pipe_id][part] = _add(sums[pipe_id][part], more)
    parts = _lags(pipe_ids, span, step)
    by_part, by_pipe = parts.quantiles(P95), parts.merged(PARTS).quantiles(P95)
    everything = [reduce(_add, same, TrendSums()) for same in zip(*sums.values(), strict=True)]
    total = parts.of_all(PARTS)
    return Trends(
        by_pipe={
            pipe_id: Trend(span, sums[pipe_id], by_part[row * PARTS : (row + 1) * PARTS], by_pipe[row])
            for row, pipe_id in enumerate(pipe_ids)
        },
        total=Trend(
            span,
            everything or [TrendSums()] * PARTS,
            total.quantiles(P95),
            total.merged(PARTS).quantiles(P95)[0],
        ),
    )


def _lags(pipe_ids: Sequence[str], span: BucketRange, step: int) -> SketchGrid:
    """Return the end-to-end lags of each part of each pipe: a group is a pipe's row times PARTS plus the part."""
    row_of = {pipe_id: row for row, pipe_id in enumerate(pipe_ids)}
    rows = LagRow.objects.filter(
        pipe_id__in=pipe_ids, bucket__range=(span.first, span.last), node__startswith=transmit_node("")
    )
    sketches = [
        (row_of[pipe_id] * PARTS + (bucket - span.first) // step, encoded)
        for pipe_id, bucket, encoded in rows.values_list("pipe_id", "bucket", "lag_out")
        if encoded is not None
    ]
    for pipe_id, waiting in waiting_lags(pipe_ids, span).items():
        sketches.append((row_of[pipe_id] * PARTS + PARTS - 1, waiting.encode()))
    return SketchGrid(len(pipe_ids) * PARTS, sketches)


def _sums(pipe_ids: Sequence[str], span: BucketRange, step: int) -> Iterable[tuple[tuple[str, int], TrendSums]]:
    about: dict[str, Any] = {"pipes": list(pipe_ids), "first": span.first, "last": span.last, "step": step}
    may_differ: dict[MinuteKey, TrendSums] = {}
    with connection.cursor() as cursor:
        cursor.execute(_SEALED, about)
        for pipe_id, part, bucket, *counts in cursor.fetchall():
            if bucket is None:
                yield (pipe_id, part), TrendSums(*map(int, counts))
            else:
                may_differ[MinuteKey(pipe_id, bucket)] = TrendSums(*map(int, counts))
        cursor.execute(_UNSEALED, about)
        unsealed = {MinuteKey(*row) for row in cursor.fetchall()}
    for minute, books in books_of(unsealed | may_differ.keys()).items():
        part = (minute.bucket - span.first) // step
        if minute in unsealed and (healthy := healthy_counts(books)):  # loss in an open minute is not final
            yield (minute.pipe_id, part), TrendSums(*healthy)
            continue
        account = from_account(minute.bucket, derive(books))
        sums = _counted(account.accepted, account.bins, is_sealed=minute in may_differ)
        # the facts of an old minute may be past their retention
        yield (minute.pipe_id, part), sums if books.facts else may_differ[minute]


def _counted(accepted: int, bins: Counts, *, is_sealed: bool) -> TrendSums:
    counts = judged_counts(bins, is_sealed=is_sealed)
    delivered = counts[Bin.DELIVERED]
    return TrendSums(accepted, delivered, sum(counts.values()) - delivered, counts[Bin.LOST])
