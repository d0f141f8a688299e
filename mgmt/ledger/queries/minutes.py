"""Minutes of a pipe: the bins of each bucket's units now, and for a sealed bucket those at its seal.

The facts of a sealed bucket may still grow: a retry delivers, a redrive brings dead letters back. Every page shows the
numbers of now. A bucket whose units all had a final outcome at the seal, and that gained no fact since, is read from
its seal; every other one is derived.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Value

from dataplane.ledger.bins import OPEN, Bin, Bins, BucketAccount
from dataplane.ledger.losses import BucketLoss, NodeCounts, counted_loss, node_counts
from mgmt.ledger.queries.bucket_range import BucketRange, start_of
from mgmt.ledger.queries.ledger import MinuteKey, accounts_of
from mgmt.models import FactRow, LateCount, Seal

UPSTREAM: Final = ""  # the seal's name for units that ended before a destination was chosen
# Outcomes in the delivered share: queued messages have none yet, and cancelled ones were not to be delivered.
JUDGED: Final = (Bin.DELIVERED, Bin.RETRYING, Bin.HELD, Bin.DEAD, Bin.LOST)
Counts = dict[str, int]


def judged_counts(bins: Counts, *, is_sealed: bool) -> Counts:
    """Return the counts of the outcomes in JUDGED; none is lost in an open minute, whose loss is not final."""
    return {name: bins.get(name, 0) if name != Bin.LOST or is_sealed else 0 for name in JUDGED}


@dataclass(frozen=True)
class DestinationLoss:
    """One destination's part of a bucket; units that ended before a destination was chosen have the name ""."""

    name: str
    bins: Counts


@dataclass(frozen=True)
class MinuteLoss:
    """One bucket of one pipe, as it is now. `bins` is the sum over all destinations.

    nodes:   units that arrived and that were lost, by node in order of travel
    at_seal: `bins` at the seal; None for an open bucket
    late:    units that are in another bin than at the seal
    """

    bucket: int
    sealed_at: datetime | None
    accepted: int
    unacked: int
    bins: Counts
    destinations: tuple[DestinationLoss, ...]
    nodes: NodeCounts = ()
    at_seal: Counts | None = None
    late: int = 0

    @property
    def starts(self) -> datetime:
        """Time at which the bucket starts."""
        return start_of(self.bucket)

    @property
    def loss(self) -> BucketLoss:
        """Loss by node and end to end."""
        return counted_loss(self.nodes, {part.name: part.bins for part in self.destinations})


@dataclass(frozen=True)
class LossTable:
    """Buckets with traffic, newest first, up to the requested number; `total` covers the whole range.

    minutes:     number of buckets with traffic in the whole range
    lost_sealed: messages lost in its sealed buckets; in an open one loss is not final
    """

    lines: tuple[MinuteLoss, ...]
    minutes: int
    total: MinuteLoss | None
    lost_sealed: int = 0

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
    return loss_table_of(minute_lines([pipe_id], span).get(pipe_id, ()), span, most)


def loss_table_of(minutes: Iterable[MinuteLoss], span: BucketRange, most: int) -> LossTable:
    """Return the loss table for a range from the minutes of one that contains it. Pure."""
    within = (line for line in minutes if span.first <= line.bucket <= span.last)
    lines = sorted(within, key=lambda line: -line.bucket)
    return LossTable(tuple(lines[:most]), len(lines), add_up(lines) if lines else None, lost_sealed(lines))


def lost_sealed(lines: Iterable[MinuteLoss]) -> int:
    """Return the number of messages lost in sealed buckets."""
    return sum(line.bins.get(Bin.LOST, 0) for line in lines if line.sealed_at)


def minute_line(pipe_id: str, bucket: int) -> MinuteLoss:
    """Return one bucket; it is empty and open if nothing happened in it."""
    lines = minute_lines([pipe_id], BucketRange("", bucket, bucket))
    return lines[pipe_id][0] if lines.get(pipe_id) else MinuteLoss(bucket, None, 0, 0, {}, ())


def minute_lines(pipe_ids: Sequence[str], span: BucketRange) -> Mapping[str, list[MinuteLoss]]:
    """Return by pipe every bucket with traffic, in no particular order."""
    lines: dict[str, list[MinuteLoss]] = defaultdict(list)
    seals = {
        MinuteKey(seal.pipe_id, seal.bucket): seal
        for seal in Seal.objects.filter(pipe_id__any_of=pipe_ids, bucket__range=(span.first, span.last))
    }
    with_facts, gained = _with_facts(pipe_ids, span)
    unchanged = {minute for minute, seal in seals.items() if minute not in gained and not has_open(seal)}
    found = accounts_of(with_facts - unchanged)
    for minute, account in found.items():
        lines[minute.pipe_id].append(line_of(minute.bucket, account, seals.get(minute)))
    for minute in seals.keys() - found.keys():
        lines[minute.pipe_id].append(_from_seal(seals[minute]))
    return lines


def bins_at(*, pipe_id: str, destination: str, span: BucketRange) -> Counts:
    """Return the number of units of a range in each bin of one destination."""
    lines = minute_lines([pipe_id], span).get(pipe_id, [])
    return _sum(part.bins for line in lines for part in line.destinations if part.name == destination)


def line_of(bucket: int, account: BucketAccount, seal: Seal | None = None) -> MinuteLoss:
    """Return the line of a bucket from its present account; of an unsealed one if `seal` is None."""
    parts = [DestinationLoss(UPSTREAM, _counts(account.upstream))]
    parts += [DestinationLoss(name, _counts(bins)) for name, bins in account.destinations.items()]
    return MinuteLoss(
        bucket=bucket,
        sealed_at=seal.sealed_at if seal else None,
        accepted=len(account.acked),
        unacked=len(account.unacked),
        bins=_sum(part.bins for part in parts),
        destinations=tuple(parts),
        nodes=node_counts(account),
        at_seal=_sum(seal.bins.values()) if seal else None,
        late=_moved(seal.bins, parts) if seal else 0,
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
        nodes=_add_nodes(line.nodes for line in lines),
        at_seal=_sum(line.at_seal or {} for line in lines) if len(seals) == len(lines) else None,
        late=sum(line.late for line in lines),
    )


def _from_seal(seal: Seal) -> MinuteLoss:
    """Return the line of a bucket that is as it was at its seal, or whose facts are past their retention."""
    parts = tuple(DestinationLoss(name, dict(bins)) for name, bins in sorted(seal.bins.items()))
    bins = _sum(part.bins for part in parts)
    return MinuteLoss(seal.bucket, seal.sealed_at, seal.accepted, seal.unacked, bins, parts, seal.nodes, bins)


def has_open(seal: Seal) -> bool:
    """Return True if a unit could change its bin without a new fact: marks decide on what waits."""
    return any(bins.get(name) for bins in seal.bins.values() for name in (*OPEN, Bin.HELD))


def _moved(at_seal: Mapping[str, Counts], parts: Iterable[DestinationLoss]) -> int:
    """Return the number of units that joined a bin since the seal."""
    return sum(
        max(0, count - at_seal.get(part.name, {}).get(name, 0)) for part in parts for name, count in part.bins.items()
    )


def _add_nodes(many: Iterable[NodeCounts]) -> NodeCounts:
    total: dict[str, dict[str, Any]] = {}
    for nodes in many:
        for one in nodes:
            known = total.setdefault(one["node"], {"node": one["node"], "arrived": 0, "lost": 0})
            known["arrived"] += one["arrived"]
            known["lost"] += one["lost"]
    return list(total.values())


def _with_facts(pipe_ids: Sequence[str], span: BucketRange) -> tuple[set[MinuteKey], set[MinuteKey]]:
    """Return the buckets with facts, and those that gained a fact after their seal."""
    facts, late = (
        model.objects.filter(pipe_id__any_of=pipe_ids, bucket__range=(span.first, span.last))
        .annotate(is_late=Value(is_late))
        .values_list("pipe_id", "bucket", "is_late")
        .distinct()
        for model, is_late in ((FactRow, False), (LateCount, True))
    )
    rows = list(facts.union(late))
    return {MinuteKey(*row[:2]) for row in rows if not row[2]}, {MinuteKey(*row[:2]) for row in rows if row[2]}


def _counts(bins: Bins) -> Counts:
    return {str(name): len(units) for name, units in bins.items()}


def _sum(many: Iterable[Counts]) -> Counts:
    total: Counts = defaultdict(int)
    for counts in many:
        for name, count in counts.items():
            total[name] += count
    return dict(total)
