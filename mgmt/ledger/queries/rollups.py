"""Sums of ranges from the rollup: blocks of minutes that the Observer has added up, and minutes where it has not.

A block is used while it is final: no fact about its minutes has arrived since it was added up
(controlplane.observer.rollups). So the sums are exactly those of the minutes.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from django.db import connection

from dataplane.ledger.sketch import PackedSketch
from mgmt.ledger.queries.minute_sums import (
    GroupSums,
    MinuteGroup,
    Stretch,
    TrendSums,
    arguments_of,
    minute_lags,
    minute_sums,
)
from mgmt.models import RollupMark

LENGTHS: Final = (720, 60, 5)  # of blocks in minutes, longest first; each is a multiple of the next
# Final blocks are added up by group; a block that is not final is a row of its own, without sums. OFFSET 0 keeps the
# join an index scan for each stretch: the planner expects few rows, and would compare each block with every stretch.
_BLOCKS: Final = """
SELECT w.series, r.bucket / %(step)s,
    CASE WHEN r.is_final THEN NULL ELSE r.pipe_id END AS open_pipe,
    CASE WHEN r.is_final THEN NULL ELSE r.bucket END AS open_bucket,
    sum(r.accepted), sum(r.delivered), sum(r.undelivered), sum(r.lost),
    string_agg(r.lag_keys, ''), string_agg(r.lag_counts, ''), min(r.lag_min), max(r.lag_max)
FROM unnest(%(pipes)s::varchar[], %(series)s::varchar[], %(firsts)s::int[], %(ends)s::int[])
    AS w(pipe_id, series, first, past)
CROSS JOIN LATERAL (
    SELECT * FROM mgmt_piperollup b
    WHERE b.pipe_id = w.pipe_id AND b.length = %(length)s AND b.bucket >= w.first AND b.bucket < w.past
        AND b.bucket >= %(least)s AND b.bucket < %(most)s
    OFFSET 0
) r
GROUP BY 1, 2, 3, 4
"""


class BlockRange(NamedTuple):
    """Consecutive blocks of one length in minutes, from bucket `first` (included) to `end` (excluded)."""

    length: int
    first: int
    end: int


@dataclass
class RangeSums:
    """Sums and end-to-end lags of groups of minutes; the lags of a group may be in several sketches."""

    groups: GroupSums = field(default_factory=GroupSums)
    sketches: list[tuple[MinuteGroup, bytes]] = field(default_factory=list)
    packed: list[tuple[MinuteGroup, PackedSketch]] = field(default_factory=list)


def covering(first: int, end: int, lengths: Sequence[int]) -> Iterator[BlockRange]:
    """Divide minutes into the longest blocks that fit; what is left at the ends has length 1. Pure."""
    if first >= end:
        return
    if not lengths:
        yield BlockRange(1, first, end)
        return
    length, shorter = lengths[0], lengths[1:]
    inner_first, inner_end = -(-first // length) * length, end // length * length
    if inner_first >= inner_end:
        yield from covering(first, end, shorter)
        return
    yield from covering(first, inner_first, shorter)
    yield BlockRange(length, inner_first, inner_end)
    yield from covering(inner_end, end, shorter)


def range_sums(series_of: Mapping[str, str], first: int, end: int, step: int) -> RangeSums:
    """Return the sums of the minutes from `first` (included) to `end` (excluded), in groups of `step` minutes.

    series_of: by pipe, the series that its minutes are added to
    """
    lengths = [length for length in LENGTHS if step % length == 0]
    wanted: dict[int, list[Stretch]] = defaultdict(list)
    for length, its_first, its_end in _ranges(first, end, lengths):
        wanted[length] += [Stretch(pipe_id, its_first, its_end, series) for pipe_id, series in series_of.items()]
    found = RangeSums()
    for length, shorter in zip(lengths, (*lengths[1:], 1), strict=True):
        for key, block, sums, packed in block_rows(wanted[length], length, step):
            if block:  # not final: its minutes have to be added up from shorter blocks
                wanted[shorter].append(block)
                continue
            found.groups.add(key, sums)
            if packed:
                found.packed.append((key, packed))
    minutes = minute_sums(wanted[1], step)
    for key, sums in minutes.sums.items():
        found.groups.add(key, sums)
    found.sketches += minute_lags(wanted[1], step)
    return found


def _ranges(first: int, end: int, lengths: Sequence[int]) -> Iterator[BlockRange]:
    mark = RollupMark.objects.first()
    since, until = (max(first, mark.since), min(end, mark.until)) if mark else (end, end)
    if since >= until:
        yield from covering(first, end, ())
        return
    yield from covering(first, since, ())
    yield from covering(since, until, lengths)
    yield from covering(until, end, ())


def block_rows(
    wanted: Sequence[Stretch], length: int, step: int
) -> Iterator[tuple[MinuteGroup, Stretch | None, TrendSums, PackedSketch | None]]:
    """Yield final blocks added up in groups of `step` minutes, and each other block with its own minutes."""
    if not wanted:
        return
    with connection.cursor() as cursor:
        cursor.execute(_BLOCKS, arguments_of(wanted, step) | {"length": length})
        for series, number, pipe_id, bucket, *counts, keys, sketched, least, most in cursor.fetchall():
            packed = PackedSketch(bytes(keys), bytes(sketched), least, most) if keys else None
            block = None if bucket is None else Stretch(pipe_id, bucket, bucket + length, series)
            yield MinuteGroup(series, number), block, TrendSums(*map(int, counts)), packed
