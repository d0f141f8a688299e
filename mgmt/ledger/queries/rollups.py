"""Sums of ranges from the rollup: blocks of minutes that the Observer has added up, and minutes where it has not.

A block is used while it is final: no fact about its minutes has arrived since it was added up
(controlplane.observer.rollups). So the sums are exactly those of the minutes.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
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
SELECT r.pipe_id, r.bucket / %(step)s, CASE WHEN r.is_final THEN NULL ELSE r.bucket END AS open_bucket,
    sum(r.accepted), sum(r.delivered), sum(r.undelivered), sum(r.lost),
    string_agg(r.lag_keys, ''), string_agg(r.lag_counts, ''), min(r.lag_min), max(r.lag_max)
FROM unnest(%(pipes)s::varchar[], %(firsts)s::int[], %(ends)s::int[]) AS w(pipe_id, first, past)
CROSS JOIN LATERAL (
    SELECT * FROM mgmt_piperollup b
    WHERE b.pipe_id = w.pipe_id AND b.length = %(length)s AND b.bucket >= w.first AND b.bucket < w.past
        AND b.bucket >= %(least)s AND b.bucket < %(most)s
    OFFSET 0
) r
GROUP BY 1, 2, 3
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


def range_sums(pipe_ids: Sequence[str], first: int, end: int, step: int) -> RangeSums:
    """Return the sums of the minutes from `first` (included) to `end` (excluded), in groups of `step` minutes."""
    lengths = [length for length in LENGTHS if step % length == 0]
    wanted: dict[int, list[Stretch]] = defaultdict(list)
    for length, its_first, its_end in _ranges(first, end, lengths):
        wanted[length] += [Stretch(pipe_id, its_first, its_end) for pipe_id in pipe_ids]
    found = RangeSums()
    for length, shorter in zip(lengths, (*lengths[1:], 1), strict=True):
        wanted[shorter] += _add_blocks(found, wanted[length], length, step)
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


def _add_blocks(found: RangeSums, wanted: Sequence[Stretch], length: int, step: int) -> list[Stretch]:
    """Add the final blocks; return the others, whose minutes have to be added up from shorter ones."""
    if not wanted:
        return []
    others = []
    for key, bucket, sums, packed in block_rows(wanted, length, step):
        if bucket is not None:
            others.append(Stretch(key.pipe_id, bucket, bucket + length))
            continue
        found.groups.add(key, sums)
        if packed:
            found.packed.append((key, packed))
    return others


def block_rows(
    wanted: Sequence[Stretch], length: int, step: int
) -> Iterator[tuple[MinuteGroup, int | None, TrendSums, PackedSketch | None]]:
    """Yield final blocks added up in groups of `step` minutes, and each other block with its first bucket."""
    with connection.cursor() as cursor:
        cursor.execute(_BLOCKS, arguments_of(wanted, step) | {"length": length})
        for pipe_id, group, bucket, accepted, delivered, undelivered, lost, keys, counts, least, most in cursor:
            sums = TrendSums(int(accepted), int(delivered), int(undelivered), int(lost))
            packed = PackedSketch(bytes(keys), bytes(counts), least, most) if keys else None
            yield MinuteGroup(pipe_id, group), bucket, sums, packed
