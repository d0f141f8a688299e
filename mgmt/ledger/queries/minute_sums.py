"""Sums of minutes in groups of equal length: events accepted, deliveries by outcome, and end-to-end lags.

The sums are those of the pipe's own page (mgmt.ledger.queries.minutes). A sealed minute whose units all had a final
outcome is added up by the database; only the other minutes are derived here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from django.db import connection

from dataplane.ledger.bins import OPEN, Bin, all_are_delivered, derive, healthy_counts
from dataplane.names import transmit_node
from mgmt.ledger.queries.ledger import MinuteKey, books_of, facts_of
from mgmt.ledger.queries.minutes import Counts, judged_counts

_WANTED: Final = """
WITH wanted AS (
    SELECT * FROM unnest(%(pipes)s::varchar[], %(series)s::varchar[], %(firsts)s::int[], %(ends)s::int[])
        AS w(pipe_id, series, first, past)
)
"""
# One row for each group of final minutes, one for each sealed minute that may have changed since its seal, and one
# without sums for each open minute; only the last two have a pipe and a bucket. The limits of all stretches let the
# planner leave out partitions. OFFSET 0 keeps the joins index scans for each stretch: the planner expects few rows, and
# would compare each with every stretch.
_SUMS: Final = f"""{_WANTED}, sealed AS (
    SELECT w.series, s.pipe_id, s.bucket, s.accepted, b.delivered, b.undelivered, b.lost,
        b.open > 0 OR EXISTS (
            SELECT FROM mgmt_latecount l WHERE l.pipe_id = s.pipe_id AND l.bucket = s.bucket
        ) AS may_differ
    FROM wanted w
    CROSS JOIN LATERAL (
        SELECT * FROM mgmt_seal its
        WHERE its.pipe_id = w.pipe_id AND its.bucket >= w.first AND its.bucket < w.past
            AND its.bucket >= %(least)s AND its.bucket < %(most)s
        OFFSET 0
    ) s
    CROSS JOIN LATERAL (
        SELECT coalesce(sum((d.bins ->> 'delivered')::int), 0) AS delivered,
            coalesce(sum((d.bins ->> 'lost')::int), 0) AS lost,
            coalesce(sum(coalesce((d.bins ->> 'dead')::int, 0) + coalesce((d.bins ->> 'held')::int, 0)
                + coalesce((d.bins ->> 'retrying')::int, 0) + coalesce((d.bins ->> 'lost')::int, 0)), 0) AS undelivered,
            coalesce(sum(coalesce((d.bins ->> 'retrying')::int, 0) + coalesce((d.bins ->> 'queued')::int, 0)
                + coalesce((d.bins ->> 'held')::int, 0)), 0) AS open
        FROM jsonb_each(s.bins) AS d(name, bins)
    ) b
)
SELECT series, bucket / %(step)s, CASE WHEN may_differ THEN pipe_id END, CASE WHEN may_differ THEN bucket END,
    sum(accepted), sum(delivered), sum(undelivered), sum(lost)
FROM sealed GROUP BY 1, 2, 3, 4
UNION ALL
SELECT w.series, f.bucket / %(step)s, f.pipe_id, f.bucket, NULL::bigint, NULL::numeric, NULL::numeric, NULL::numeric
FROM wanted w
CROSS JOIN LATERAL (
    SELECT DISTINCT its.pipe_id, its.bucket FROM mgmt_factrow its
    WHERE its.pipe_id = w.pipe_id AND its.bucket >= w.first AND its.bucket < w.past
        AND its.bucket >= %(least)s AND its.bucket < %(most)s
    OFFSET 0
) f
LEFT JOIN LATERAL (
    SELECT true AS found FROM mgmt_seal its WHERE its.pipe_id = f.pipe_id AND its.bucket = f.bucket OFFSET 0
) s ON true
WHERE s.found IS NULL
"""  # noqa: S608  # no value is part of the text
_LAGS: Final = f"""{_WANTED}
SELECT w.series, l.bucket / %(step)s, l.lag_out
FROM wanted w
CROSS JOIN LATERAL (
    SELECT * FROM mgmt_lagrow its
    WHERE its.pipe_id = w.pipe_id AND its.bucket >= w.first AND its.bucket < w.past
        AND its.bucket >= %(least)s AND its.bucket < %(most)s
        AND starts_with(its.node, %(node)s) AND its.lag_out IS NOT NULL
    OFFSET 0
) l
"""  # noqa: S608  # no value is part of the text


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

    def plus(self, other: "TrendSums") -> "TrendSums":
        """Return the sums of both."""
        return TrendSums(*map(sum, zip(self, other, strict=True)))


class Stretch(NamedTuple):
    """Consecutive minutes of one pipe: from `first` (included) to `end` (excluded).

    series: name of the series that the minutes are added to, where several pipes share one; "" for the pipe's own
    """

    pipe_id: str
    first: int
    end: int
    series: str = ""


class MinuteGroup(NamedTuple):
    """Group of minutes: those whose bucket, divided by the length of the groups, is `number`.

    series: id of a pipe, or name of a series of several pipes (Stretch)
    """

    series: str
    number: int


@dataclass
class GroupSums:
    """Sums of groups of minutes. `open`: groups with a minute whose sums may change without a new fact."""

    sums: dict[MinuteGroup, TrendSums] = field(default_factory=dict)
    open: set[MinuteGroup] = field(default_factory=set)

    def add(self, key: MinuteGroup, sums: TrendSums) -> None:
        """Add sums to a group."""
        known = self.sums.get(key)
        self.sums[key] = known.plus(sums) if known else sums


def minute_sums(wanted: Sequence[Stretch], step: int) -> GroupSums:
    """Return the sums of the wanted minutes, in groups of `step` minutes. The stretches must not overlap."""
    found = GroupSums()
    if not wanted:
        return found
    at_seal: dict[MinuteKey, TrendSums] = {}
    group_of: dict[MinuteKey, MinuteGroup] = {}
    with connection.cursor() as cursor:
        cursor.execute(_SUMS, arguments_of(wanted, step))
        for series, number, pipe_id, bucket, accepted, *counts in cursor.fetchall():
            key, minute = MinuteGroup(series, number), MinuteKey(pipe_id, bucket)
            sums = None if accepted is None else TrendSums(int(accepted), *map(int, counts))
            if sums is not None and bucket is None:
                found.add(key, sums)
                continue
            group_of[minute] = key
            if sums is not None:
                at_seal[minute] = sums
    _add_derived(found, group_of, at_seal)
    return found


def minute_lags(wanted: Sequence[Stretch], step: int) -> Iterator[tuple[MinuteGroup, bytes]]:
    """Yield the encoded sketches of end-to-end lags of the wanted minutes, each with its group of `step` minutes."""
    if not wanted:
        return
    with connection.cursor() as cursor:
        cursor.execute(_LAGS, arguments_of(wanted, step) | {"node": transmit_node("")})
        for series, number, encoded in cursor.fetchall():
            yield MinuteGroup(series, number), encoded


def arguments_of(wanted: Sequence[Stretch], step: int) -> dict[str, Any]:
    """Return the arguments of a query over stretches that groups minutes by `step`."""
    pipes, firsts, ends, names = zip(*wanted, strict=True)
    series = [name or pipe_id for name, pipe_id in zip(names, pipes, strict=True)]
    columns = {"pipes": list(pipes), "series": series, "firsts": list(firsts), "ends": list(ends)}
    return {**columns, "least": min(firsts), "most": max(ends), "step": step}


def _add_derived(
    found: GroupSums, group_of: Mapping[MinuteKey, MinuteGroup], at_seal: Mapping[MinuteKey, TrendSums]
) -> None:
    """Add open minutes, and sealed ones that may have changed since; most need no more than their facts.

    at_seal: sums of the sealed ones at their seal
    """
    found.open.update(key for minute, key in group_of.items() if minute not in at_seal)
    added = set()
    for minute, facts in facts_of(group_of).items():
        healthy = healthy_counts(facts)
        if healthy and (minute not in at_seal or all_are_delivered(facts)):  # loss in an open minute is not final
            found.add(group_of[minute], TrendSums(*healthy))
            added.add(minute)
    for minute, books in books_of(group_of.keys() - added).items():
        key = group_of[minute]
        if not books.facts and minute in at_seal:  # the facts of an old minute may be past their retention
            found.add(key, at_seal[minute])
            continue
        account = derive(books)
        bins: Counts = {name: account.count(name) for name in Bin}
        found.add(key, _counted(len(account.acked), bins, is_sealed=minute in at_seal))
        if any(bins[name] for name in (*OPEN, Bin.HELD)):
            found.open.add(key)


def _counted(accepted: int, bins: Counts, *, is_sealed: bool) -> TrendSums:
    counts = judged_counts(bins, is_sealed=is_sealed)
    delivered = counts[Bin.DELIVERED]
    return TrendSums(accepted, delivered, sum(counts.values()) - delivered, counts[Bin.LOST])
