"""Seal buckets: track the open ones, store the ingest offsets at which each ended, and store the final accounts."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

import structlog
from django.db import transaction
from msgspec import Struct, field

from controlplane.observer.days import open_days, unsealed
from controlplane.observer.merge import PipeBucket
from controlplane.observer.seal import SealProgress, closing_s, first_open_bucket, seal_row, why_open
from dataplane.ledger.bins import BucketFacts, derive
from dataplane.ledger.facts import DEDUP, DIVERTED_TO, Fact
from dataplane.names import ENTRANCE, PartitionKey, Purpose, is_replay
from mgmt.alerts.services.losses import note_losses
from mgmt.cells.queries.cells import cells_left, places_of
from mgmt.ledger.queries.ledger import MinuteKey, books_of
from mgmt.models import Cell, CloseMark, Pipe, Seal

AT_ONCE: Final = 200  # buckets that are loaded together
STEP_S: Final = 0.5  # longest step: sealing must not delay reading
OPEN_TOO_LONG_S: Final = 15 * 60
Bounds = Callable[[PartitionKey], tuple[int, int]]
log = structlog.get_logger(__name__)


class SealTotals(Struct):
    """Totals since the Sealer started: buckets of pipes sealed, messages ACKed in them, and units lost by cell.

    A cell is counted from the start, or from its first bucket, with 0: Prometheus sees no increase in a new series.
    """

    minutes: int = 0
    accepted: int = 0
    lost: Counter[str] = field(default_factory=Counter)


class Sealer:
    """Open buckets of an Observer's audit partitions, and the code that seals them."""

    def __init__(self, grace_s: int) -> None:
        self._grace_s = grace_s
        self._open: dict[PipeBucket, str] = {}
        self._alarmed: set[PipeBucket] = set()
        self.sums = SealTotals()

    @property
    def open_minutes(self) -> int:
        """Return the number of open buckets."""
        return len(self._open)

    def remember(self, cells: dict[PipeBucket, str]) -> None:
        """Add buckets of pipes that received facts, each with the cell that reported it last."""
        self._open |= {key: cell for key, cell in cells.items() if not is_replay(key[0])}
        self.sums.lost.update(dict.fromkeys(cells.values(), 0))

    def load(self, partition: int) -> None:
        """Add the open buckets of an audit partition that this Observer has just taken."""
        self.sums.lost.update(dict.fromkeys(Cell.objects.values_list("id", flat=True), 0))
        of_days = [unsealed(day).filter(audit_partition=partition) for day in open_days()]
        buckets = [key for rows in of_days for key in rows.values_list("pipe_id", "bucket").distinct()]
        cells = dict(Pipe.objects.filter(id__in={pipe for pipe, _ in buckets}).values_list("id", "cell_id"))
        self.remember({(pipe, bucket): cells[pipe] or "" for pipe, bucket in buckets if pipe in cells})

    def step(self, now: datetime, bounds: Bounds) -> int:
        """Seal buckets for at most about STEP_S; return how many were sealed.

        bounds: returns the low and the high watermark of a topic partition
        """
        ended = first_open_bucket(now, self._grace_s)
        due = [key for key in self._open if key[1] < ended]
        sealed, until = 0, time.monotonic() + STEP_S
        for first in range(0, len(due), AT_ONCE):
            sealed += self._seal(self._without_sealed(due[first : first + AT_ONCE]), now, bounds)
            if time.monotonic() > until:
                break
        return sealed

    def _seal(self, due: list[PipeBucket], now: datetime, bounds: Bounds) -> int:
        cells = self._cells(due)
        ends = {pair: _ends(*pair, now, bounds) for pair in {(cell, key[1]) for key in due for cell in cells[key]}}
        seals = []
        for minute, books in books_of(MinuteKey(*key) for key in due).items():
            key = (minute.pipe_id, minute.bucket)
            its_ends = {mark: end for cell in cells[key] for mark, end in ends[cell, minute.bucket].items()}
            if why := why_open(_progress(books, its_ends)):
                self._defer(key, why, now)
            else:
                seals.append(seal_row(minute.pipe_id, minute.bucket, derive(books), now))
        with transaction.atomic():
            Seal.objects.bulk_create(seals, ignore_conflicts=True)
            note_losses(seals=seals, now=now)
        self._count(seals)
        self._forget((seal.pipe_id, seal.bucket) for seal in seals)
        return len(seals)

    def _cells(self, due: list[PipeBucket]) -> dict[PipeBucket, set[str]]:
        """Return the cells that may have a bucket's messages: the last to report, the pipe's own, and those it left."""
        pipes = {pipe for pipe, _ in due}
        now_on, left = dict(Pipe.objects.filter(id__in=pipes).values_list("id", "cell_id")), cells_left(pipes)
        return {
            (pipe, bucket): {self._open[pipe, bucket], now_on.get(pipe) or self._open[pipe, bucket]}
            | {cell for cell, until in left.get(pipe, ()) if bucket <= until}
            for pipe, bucket in due
        }

    def _count(self, seals: list[Seal]) -> None:
        self.sums.minutes += len(seals)
        self.sums.accepted += sum(seal.accepted for seal in seals)
        for seal in seals:
            self.sums.lost[self._open[seal.pipe_id, seal.bucket]] += seal.lost

    def _without_sealed(self, due: list[PipeBucket]) -> list[PipeBucket]:
        """Return the buckets that are not sealed, and forget the others: late facts do not change a seal."""
        rows = Seal.objects.filter(pipe_id__in={pipe for pipe, _ in due}, bucket__in={bucket for _, bucket in due})
        sealed = set(rows.values_list("pipe_id", "bucket"))
        self._forget(key for key in due if key in sealed)
        return [key for key in due if key not in sealed]

    def _forget(self, keys: Iterable[PipeBucket]) -> None:
        for key in keys:
            self._open.pop(key, None)
            self._alarmed.discard(key)

    def _defer(self, key: PipeBucket, why: str, now: datetime) -> None:
        """Move a bucket to the end, so that stuck ones do not block others; log an error once if it is overdue."""
        self._open[key] = self._open.pop(key)
        open_s = now.timestamp() - (key[1] + 1) * 60 - closing_s(self._grace_s)
        if open_s > OPEN_TOO_LONG_S and key not in self._alarmed:
            self._alarmed.add(key)
            log.error("bucket not sealed in time", pipe=key[0], bucket=key[1], why=why, open_s=round(open_s))


def _progress(books: BucketFacts, ends: dict[PartitionKey, int]) -> SealProgress:
    read = _names(books, "egress") | _names(books, "slow")
    if any(key.node == DEDUP for key in books.facts):  # dedup returns messages on the ingest topic
        read |= _names(books, "dedup") | _names(books, "ingest")
    for detail, purpose in DIVERTED_TO.items():  # only for pipes that used it, because it may be far behind
        if any(key.node == ENTRANCE and key.detail == detail for key in books.facts):
            read |= _names(books, purpose)
    if any(key.fact == Fact.STORED for key in books.facts):
        read |= _names(books, "lake")
    reach = {key: offset for key, offset in books.reach.items() if key[0] in read}
    return SealProgress(ends, reach, books.passed)


def _names(books: BucketFacts, purpose: Purpose) -> set[str]:
    return {name for name, _ in books.topics.get(purpose, ())}


def _ends(cell: str, bucket: int, now: datetime, bounds: Bounds) -> dict[PartitionKey, int]:
    """Return the ends of the cell's ingest topics at the end of the bucket; the first call stores them."""
    mark = CloseMark.objects.filter(cell=cell, bucket=bucket).first()
    if mark is None:
        ends = [[*key, bounds(key)[1]] for key in places_of(cell, "ingest")]
        mark, _ = CloseMark.objects.get_or_create(cell=cell, bucket=bucket, defaults={"ends": ends, "noted_at": now})
    return {(topic, partition): offset for topic, partition, offset in mark.ends}
