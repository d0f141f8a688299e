"""Loss table: the bins of each bucket's units. A sealed bucket is read from its seal, an open one is derived."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Sum

from dataplane.ledger.bins import Bin, Bins, BucketAccount
from mgmt.ledger.queries.bucket_range import BucketRange, start_of
from mgmt.ledger.queries.ledger import MinuteKey, accounts_of
from mgmt.models import FactRow, LateCount, Seal

UPSTREAM: Final = ""  # the seal's name for units that ended before a destination was chosen
Counts = dict[str, int]


@dataclass(frozen=True)
class DestinationLoss:
    """One destination's part of a bucket; units that ended before a destination was chosen have the name ""."""

    name: str
    bins: Counts


@dataclass(frozen=True)
class MinuteLoss:
    """One bucket of one pipe. `bins` is the sum over all destinations; `late` units settled after the seal."""

    bucket: int
    sealed_at: datetime | None
    accepted: int
    unacked: int
    bins: Counts
    destinations: tuple[DestinationLoss, ...]
    late: int = 0

    @property
    def starts(self) -> datetime:
        """Time at which the bucket starts."""
        return start_of(self.bucket)


@dataclass(frozen=True)
class LossTable:
    """Buckets with traffic, newest first, up to the requested number; `total` covers the whole range.

    minutes: number of buckets with traffic in the whole range
    """

    lines: tuple[MinuteLoss, ...]
    minutes: int
    total: MinuteLoss | None

    @property
    def sums(self) -> Counts:
        """Units of the whole range by bin; an empty bin may be absent."""
        return self.total.bins if self.total else {}

    @property
    def bins(self) -> list[str]:
        """Bins to show as columns: the usual ones, and any other that contains a unit."""
        held = self.total.bins if self.total else {}
        return [name for name in _COLUMNS if name in _ALWAYS or held.get(name)]


_ALWAYS: Final = (Bin.DELIVERED, Bin.FILTERED, Bin.DEAD, Bin.RETRYING, Bin.QUEUED, Bin.LOST)
_COLUMNS: Final = (
    Bin.DELIVERED,
    Bin.FILTERED,
    Bin.DUPLICATE,
    Bin.CANCELLED,
    Bin.DEAD,
    Bin.HELD,
    Bin.RETRYING,
    Bin.QUEUED,
    Bin.LOST,
)


def loss_table(*, pipe_id: str, span: BucketRange, most: int) -> LossTable:
    """Return the pipe's loss table for a range, with the newest `most` buckets."""
    lines = sorted(minute_lines([pipe_id], span)[pipe_id], key=lambda line: -line.bucket)
    return LossTable(tuple(lines[:most]), len(lines), add_up(lines) if lines else None)


def minute_lines(pipe_ids: Sequence[str], span: BucketRange) -> Mapping[str, list[MinuteLoss]]:
    """Return by pipe every bucket with traffic, in no particular order."""
    lines: dict[str, list[MinuteLoss]] = defaultdict(list)
    late = _late(pipe_ids, span)
    sealed: set[MinuteKey] = set()
    for seal in Seal.objects.filter(pipe_id__in=pipe_ids, bucket__range=(span.first, span.last)):
        minute = MinuteKey(seal.pipe_id, seal.bucket)
        sealed.add(minute)
        lines[seal.pipe_id].append(_from_seal(seal, late.get(minute, 0)))
    for minute, account in accounts_of(_with_facts(pipe_ids, span) - sealed).items():
        lines[minute.pipe_id].append(from_account(minute.bucket, account))
    return lines


def bins_at(*, pipe_id: str, destination: str, span: BucketRange) -> Counts:
    """Return the number of units of a range in each bin of one destination."""
    lines = minute_lines([pipe_id], span).get(pipe_id, [])
    return _sum(part.bins for line in lines for part in line.destinations if part.name == destination)


def from_account(bucket: int, account: BucketAccount) -> MinuteLoss:
    """Return the line of an open bucket."""
    parts = [DestinationLoss(UPSTREAM, _counts(account.upstream))]
    parts += [DestinationLoss(name, _counts(bins)) for name, bins in account.destinations.items()]
    return MinuteLoss(
        bucket, None, len(account.acked), len(account.unacked), _sum(part.bins for part in parts), tuple(parts)
    )


def add_up(lines: Sequence[MinuteLoss]) -> MinuteLoss:
    """Return the sum of several buckets; it counts as sealed if all of them are."""
    parts: dict[str, list[Counts]] = defaultdict(list)
    for line in lines:
        for part in line.destinations:
            parts[part.name].append(part.bins)
    seals = [line.sealed_at for line in lines if line.sealed_at]
    return MinuteLoss(
        bucket=min(line.bucket for line in lines),
        sealed_at=max(seals) if len(seals) == len(lines) else None,
        accepted=sum(line.accepted for line in lines),
        unacked=sum(line.unacked for line in lines),
        bins=_sum(line.bins for line in lines),
        destinations=tuple(DestinationLoss(name, _sum(counts)) for name, counts in sorted(parts.items())),
        late=sum(line.late for line in lines),
    )


def _from_seal(seal: Seal, late: int) -> MinuteLoss:
    parts = tuple(DestinationLoss(name, dict(bins)) for name, bins in sorted(seal.bins.items()))
    bins = _sum(part.bins for part in parts)
    return MinuteLoss(seal.bucket, seal.sealed_at, seal.accepted, seal.unacked, bins, parts, late)


def _with_facts(pipe_ids: Sequence[str], span: BucketRange) -> set[MinuteKey]:
    rows = FactRow.objects.filter(pipe_id__in=pipe_ids, bucket__range=(span.first, span.last))
    return {MinuteKey(*row) for row in rows.values_list("pipe_id", "bucket").distinct()}


def _late(pipe_ids: Sequence[str], span: BucketRange) -> dict[MinuteKey, int]:
    rows = LateCount.objects.filter(pipe_id__in=pipe_ids, bucket__range=(span.first, span.last))
    sums = rows.values_list("pipe_id", "bucket").annotate(units=Sum("count"))
    return {MinuteKey(pipe_id, bucket): units for pipe_id, bucket, units in sums}


def _counts(bins: Bins) -> Counts:
    return {str(name): len(units) for name, units in bins.items()}


def _sum(many: Iterable[Counts]) -> Counts:
    total: Counts = defaultdict(int)
    for counts in many:
        for name, count in counts.items():
            total[name] += count
    return dict(total)
