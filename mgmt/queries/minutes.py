"""The loss table: where the units of each minute are. A sealed minute is read from its seal, an open one derived."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Sum

from dataplane.ledger.bins import Account, Bin, Bins
from mgmt.models import FactRow, LateCount, Seal
from mgmt.queries.ledger import Minute, accounts_of
from mgmt.queries.span import Span, start_of

UPSTREAM: Final = ""  # the seal's name for units that ended before a destination was chosen
Counts = dict[str, int]


@dataclass(frozen=True)
class DestinationLine:
    """One destination's part of a minute; units that never got so far stand under the name ""."""

    name: str
    bins: Counts


@dataclass(frozen=True)
class MinuteLine:
    """One minute of one pipe. `bins` adds up all destinations; `late` settled after the seal."""

    bucket: int
    sealed_at: datetime | None
    accepted: int
    unacked: int
    bins: Counts
    destinations: tuple[DestinationLine, ...]
    late: int = 0

    @property
    def starts(self) -> datetime:
        """The moment the minute begins."""
        return start_of(self.bucket)


@dataclass(frozen=True)
class LossTable:
    """Minutes with traffic, newest first, at most as many as were asked for; `total` covers the whole span."""

    lines: tuple[MinuteLine, ...]
    minutes: int
    total: MinuteLine | None

    @property
    def sums(self) -> Counts:
        """How many units of the whole span are in each bin; a bin without any may be absent."""
        return self.total.bins if self.total else {}

    @property
    def bins(self) -> list[str]:
        """The bins worth a column: the usual ones, and any other that holds a unit."""
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


def loss_table(*, pipe_id: str, span: Span, most: int) -> LossTable:
    """The pipe's minutes within a span."""
    lines = sorted(minute_lines([pipe_id], span)[pipe_id], key=lambda line: -line.bucket)
    return LossTable(tuple(lines[:most]), len(lines), add_up(lines) if lines else None)


def minute_lines(pipe_ids: Sequence[str], span: Span) -> Mapping[str, list[MinuteLine]]:
    """Every minute with traffic of several pipes, in no particular order."""
    lines: dict[str, list[MinuteLine]] = defaultdict(list)
    late = _late(pipe_ids, span)
    sealed: set[Minute] = set()
    for seal in Seal.objects.filter(pipe_id__in=pipe_ids, bucket__range=(span.first, span.last)):
        minute = Minute(seal.pipe_id, seal.bucket)
        sealed.add(minute)
        lines[seal.pipe_id].append(_from_seal(seal, late.get(minute, 0)))
    for minute, account in accounts_of(_moving(pipe_ids, span) - sealed).items():
        lines[minute.pipe_id].append(from_account(minute.bucket, account))
    return lines


def from_account(bucket: int, account: Account) -> MinuteLine:
    """The line of an open minute."""
    parts = [DestinationLine(UPSTREAM, _counts(account.upstream))]
    parts += [DestinationLine(name, _counts(bins)) for name, bins in account.destinations.items()]
    return MinuteLine(
        bucket, None, len(account.acked), len(account.unacked), _sum(part.bins for part in parts), tuple(parts)
    )


def add_up(lines: Sequence[MinuteLine]) -> MinuteLine:
    """The sum of some minutes; sealed if all of them are."""
    parts: dict[str, list[Counts]] = defaultdict(list)
    for line in lines:
        for part in line.destinations:
            parts[part.name].append(part.bins)
    seals = [line.sealed_at for line in lines if line.sealed_at]
    return MinuteLine(
        bucket=min(line.bucket for line in lines),
        sealed_at=max(seals) if len(seals) == len(lines) else None,
        accepted=sum(line.accepted for line in lines),
        unacked=sum(line.unacked for line in lines),
        bins=_sum(line.bins for line in lines),
        destinations=tuple(DestinationLine(name, _sum(counts)) for name, counts in sorted(parts.items())),
        late=sum(line.late for line in lines),
    )


def _from_seal(seal: Seal, late: int) -> MinuteLine:
    parts = tuple(DestinationLine(name, dict(bins)) for name, bins in sorted(seal.bins.items()))
    bins = _sum(part.bins for part in parts)
    return MinuteLine(seal.bucket, seal.sealed_at, seal.accepted, seal.unacked, bins, parts, late)


def _moving(pipe_ids: Sequence[str], span: Span) -> set[Minute]:
    rows = FactRow.objects.filter(pipe_id__in=pipe_ids, bucket__range=(span.first, span.last))
    return {Minute(*row) for row in rows.values_list("pipe_id", "bucket").distinct()}


def _late(pipe_ids: Sequence[str], span: Span) -> dict[Minute, int]:
    rows = LateCount.objects.filter(pipe_id__in=pipe_ids, bucket__range=(span.first, span.last))
    sums = rows.values_list("pipe_id", "bucket").annotate(units=Sum("count"))
    return {Minute(pipe_id, bucket): units for pipe_id, bucket, units in sums}


def _counts(bins: Bins) -> Counts:
    return {str(name): len(units) for name, units in bins.items()}


def _sum(many: Iterable[Counts]) -> Counts:
    total: Counts = defaultdict(int)
    for counts in many:
        for name, count in counts.items():
            total[name] += count
    return dict(total)
