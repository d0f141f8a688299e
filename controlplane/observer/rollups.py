"""Rollup of the ledger: sums of pipes over blocks of 5 minutes, an hour and half a day, for pages of many pipes.

A block is entered as open when its minutes may be sealed, and made final when it is added up: each of its minutes is
sealed, and no unit of it can change its bin without a new fact. A transaction that stores facts of an entered block
opens it again, so a final block is always the sum of its minutes. Readers add up the minutes of an open block
(mgmt.ledger.queries.rollups).
"""

import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from django.db import connection, transaction
from django.db.models import F, Min, Q

from controlplane.observer.columns import execute_in_columns
from controlplane.observer.merge import PipeBucket
from controlplane.observer.seal import first_open_bucket
from dataplane.ledger.sketch import PackedSketch, SketchGrid
from dataplane.names import REPLAY_ID_PREFIX, is_replay
from mgmt.ledger.queries.minute_sums import GroupSums, MinuteGroup, Stretch, minute_lags, minute_sums
from mgmt.ledger.queries.rollups import LENGTHS, block_rows
from mgmt.models import FactRow, PipeRollup, RollupMark, Seal

SHORTEST: Final = LENGTHS[-1]
KEPT_D: Final = 8  # the longest range of a page is 7 days: minutes that are older when the rollup begins are left out
BUDGET_S: Final = 3.0
AT_ONCE: Final = 500  # blocks that are added up together
RECHECK: Final = timedelta(minutes=1)  # for blocks with messages that wait

_ENTER: Final = """
INSERT INTO mgmt_piperollup (pipe_id, length, bucket, is_final, version, accepted, delivered, undelivered, lost)
SELECT DISTINCT found.pipe_id, %(length)s, found.bucket - found.bucket %% %(length)s, false, 0, 0, 0, 0, 0
FROM ({found}) AS found
ON CONFLICT DO NOTHING
"""
# The facts of an old minute may be past their retention.
_ENTER_SHORTEST: Final = _ENTER.replace(
    "{found}",
    "SELECT pipe_id, bucket FROM mgmt_factrow WHERE bucket >= %(first)s AND bucket < %(past)s"
    " AND NOT starts_with(pipe_id, %(replays)s)"
    " UNION SELECT pipe_id, bucket FROM mgmt_seal WHERE bucket >= %(first)s AND bucket < %(past)s",
)
_ENTER_LONGER: Final = _ENTER.replace(
    "{found}",
    "SELECT pipe_id, bucket FROM mgmt_piperollup"
    " WHERE length = %(shorter)s AND bucket >= %(first)s AND bucket < %(past)s",
)
_REOPEN: Final = """
INSERT INTO mgmt_piperollup AS known
    (pipe_id, length, bucket, is_final, version, accepted, delivered, undelivered, lost)
SELECT pipe_id, length, bucket, false, 0, 0, 0, 0, 0
FROM unnest(%s::varchar[], %s::int[], %s::int[]) AS late(pipe_id, length, bucket)
ON CONFLICT (pipe_id, length, bucket) DO UPDATE SET is_final = false, version = known.version + 1, checked_at = NULL
"""
_FINISH: Final = """
UPDATE mgmt_piperollup AS known SET is_final = true, checked_at = NULL,
    accepted = done.accepted, delivered = done.delivered, undelivered = done.undelivered, lost = done.lost,
    lag_keys = done.lag_keys, lag_counts = done.lag_counts, lag_min = done.lag_min, lag_max = done.lag_max
FROM unnest(%s::varchar[], %s::int[], %s::int[], %s::int[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
        %s::bytea[], %s::bytea[], %s::bigint[], %s::bigint[])
    AS done(pipe_id, length, bucket, version, accepted, delivered, undelivered, lost, lag_keys, lag_counts, lag_min,
        lag_max)
WHERE known.pipe_id = done.pipe_id AND known.length = done.length AND known.bucket = done.bucket
    AND known.version = done.version AND NOT known.is_final
"""
_WAIT: Final = """
UPDATE mgmt_piperollup AS known SET checked_at = late.checked_at
FROM unnest(%s::varchar[], %s::int[], %s::int[], %s::timestamptz[]) AS late(pipe_id, length, bucket, checked_at)
WHERE known.pipe_id = late.pipe_id AND known.length = late.length AND known.bucket = late.bucket
"""


class OpenBlock(NamedTuple):
    """Block that is not final, as it was before its minutes were read."""

    pipe_id: str
    length: int
    bucket: int
    version: int

    @property
    def key(self) -> MinuteGroup:
        """Key of the block among groups of its length."""
        return MinuteGroup(self.pipe_id, self.bucket // self.length)


def reopen_blocks(stored: Iterable[PipeBucket]) -> None:
    """Open the blocks of minutes that get facts or lags in this transaction; to call before these are read or written.

    Replays have no blocks.
    The lock on the mark lasts until the end of the transaction, so no block is entered meanwhile.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT since, until FROM mgmt_rollupmark FOR KEY SHARE")
        mark = cursor.fetchone()
    if not mark:
        return
    since, until = mark
    late = {
        (pipe, length, bucket - bucket % length)
        for pipe, bucket in stored
        if since <= bucket < until and not is_replay(pipe)
        for length in LENGTHS
        if bucket < until - until % length
    }
    execute_in_columns(_REOPEN, sorted(late))


def keep_rollups(now: datetime, grace_s: int, budget_s: float = BUDGET_S) -> int:
    """Enter the blocks whose minutes have ended and add up open ones, for about `budget_s`; return how many are final.

    Newer blocks wait until the older ones of the same run are added up, so that a page never reads many open ones.
    """
    stop, ended = time.monotonic() + budget_s, first_open_bucket(now, grace_s)
    finished = 0
    while True:
        for length in reversed(LENGTHS):
            while (more := _finish(length, now)) is not None and time.monotonic() < stop:
                finished += more
        if time.monotonic() >= stop or not _advance(ended):
            return finished


def _advance(ended: int) -> bool:
    """Enter the next blocks if their minutes have ended; return True if they have."""
    with transaction.atomic():
        mark = RollupMark.objects.select_for_update().first() or _begin(ended)
        first, past = mark.until, mark.until + SHORTEST
        if past > ended:
            return False
        with connection.cursor() as cursor:
            cursor.execute(
                _ENTER_SHORTEST, {"length": SHORTEST, "first": first, "past": past, "replays": REPLAY_ID_PREFIX}
            )
            for length, shorter in reversed([*pairwise(LENGTHS)]):
                if past % length == 0:
                    about = {"length": length, "shorter": shorter, "first": past - length, "past": past}
                    cursor.execute(_ENTER_LONGER, about)
        RollupMark.objects.filter(pk=mark.pk).update(until=past)
    return True


def _begin(ended: int) -> RollupMark:
    """Create the mark at the oldest minute that pages may show; blocks before the oldest facts are empty."""
    oldest = [ended, *(model.objects.aggregate(at=Min("bucket"))["at"] for model in (FactRow, Seal))]
    first = min(bucket for bucket in oldest if bucket is not None)
    since = max(first, ended - KEPT_D * 24 * 60) // LENGTHS[0] * LENGTHS[0]
    until = max(since, first // SHORTEST * SHORTEST)
    return RollupMark.objects.get_or_create(defaults={"since": since, "until": until})[0]


def _finish(length: int, now: datetime) -> int | None:
    """Add up open blocks of one length; return how many became final, or None if none is due."""
    due = Q(checked_at=None) | Q(checked_at__lt=now - RECHECK)
    rows = PipeRollup.objects.filter(due, length=length, is_final=False).order_by(F("checked_at").asc(nulls_first=True))
    blocks = [OpenBlock(*row) for row in rows.values_list("pipe_id", "length", "bucket", "version")[:AT_ONCE]]
    if not blocks:
        return None
    wanted = [Stretch(block.pipe_id, block.bucket, block.bucket + length) for block in blocks]
    found, lags = _of_minutes(wanted, length) if length == SHORTEST else _of_blocks(wanted, length)
    done = [
        (*block, *found.sums.get(block.key, (0, 0, 0, 0)), *_lag_columns(lags.get(block.key)))
        for block in blocks
        if block.key not in found.open
    ]
    waiting = [(*block[:3], now) for block in blocks if block.key in found.open]
    with transaction.atomic():
        RollupMark.objects.select_for_update().first()  # so that no transaction that opens blocks waits for another row
        execute_in_columns(_FINISH, done)
        execute_in_columns(_WAIT, waiting)
    return len(done)


def _of_minutes(wanted: Sequence[Stretch], length: int) -> tuple[GroupSums, dict[MinuteGroup, PackedSketch]]:
    found = minute_sums(wanted, length)
    rows = {stretch: row for row, stretch in enumerate(MinuteGroup(one.pipe_id, one.first // length) for one in wanted)}
    grid = SketchGrid(len(rows), [(rows[key], encoded) for key, encoded in minute_lags(wanted, length)])
    return found, _by_key(grid, list(rows))


def _of_blocks(wanted: Sequence[Stretch], length: int) -> tuple[GroupSums, dict[MinuteGroup, PackedSketch]]:
    found, packed = GroupSums(), []
    rows = {stretch: row for row, stretch in enumerate(MinuteGroup(one.pipe_id, one.first // length) for one in wanted)}
    for key, open_block, sums, sketch in block_rows(wanted, LENGTHS[LENGTHS.index(length) + 1], length):
        if open_block:
            found.open.add(key)
        found.add(key, sums)
        if sketch:
            packed.append((rows[key], sketch))
    return found, _by_key(SketchGrid(len(rows), (), packed), list(rows))


def _by_key(grid: SketchGrid, keys: Sequence[MinuteGroup]) -> dict[MinuteGroup, PackedSketch]:
    return {keys[row]: sketch for row, sketch in grid.rows()}


def _lag_columns(sketch: PackedSketch | None) -> tuple[object, ...]:
    return (sketch.keys, sketch.counts, sketch.minimum, sketch.maximum) if sketch else (None, None, None, None)
