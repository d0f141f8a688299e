"""Lost messages of all tenants by pipe and minute, for staff. The numbers are those of now, not of the seal."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Exists, OuterRef

from dataplane.ledger.losses import BucketLoss, NodeShare, counted_loss
from mgmt.ledger.queries.bucket_range import BucketRange, start_of
from mgmt.ledger.queries.ledger import MinuteKey
from mgmt.ledger.queries.losses import MinuteLosses, minute_losses
from mgmt.ledger.queries.minutes import has_open
from mgmt.models import LateCount, Pipe, Seal

MOST_MINUTES: Final = 100  # on one page
MOST_EXPORTED: Final = 1_000
_OF_PIPE: Final = ("name", "cell", "tenant__name")
_CURSOR: Final = re.compile(r"([0-9]{1,9})-([a-z0-9_]{1,32})")


@dataclass(frozen=True)
class LossLine:
    """Loss of one sealed minute of one pipe."""

    pipe: Pipe
    bucket: int
    loss: BucketLoss

    @property
    def starts(self) -> datetime:
        """Time at which the minute starts."""
        return start_of(self.bucket)

    @property
    def worst(self) -> NodeShare | None:
        """Node with the highest loss."""
        return max(self.loss.nodes, key=lambda node: (node.share, node.lost), default=None)


@dataclass(frozen=True)
class AllLosses:
    """Lossy minutes of all tenants, newest first. `next_before`: cursor of the next page; None if there is none."""

    lines: Sequence[LossLine]
    next_before: str | None

    @property
    def lost(self) -> int:
        """Number of messages lost in these minutes."""
        return sum(line.loss.lost for line in self.lines)

    @property
    def tenants(self) -> int:
        """Number of tenants with a loss in these minutes."""
        return len({line.pipe.tenant_id for line in self.lines})

    def lost_by_cell(self) -> Mapping[str | None, int]:
        """Return the number of lost messages by the cell on which their pipe is placed now."""
        found: dict[str | None, int] = {}
        for line in self.lines:
            found[line.pipe.cell_id] = found.get(line.pipe.cell_id, 0) + line.loss.lost
        return found


def all_losses(span: BucketRange, *, before: tuple[int, str] | None = None, most: int = MOST_MINUTES) -> AllLosses:
    """Return the minutes of the range that lost a message by their seal and still lack it, newest first.

    before: (bucket, pipe id) of the last minute of the page before; a page has at most `most` minutes
    """
    rows = Seal.objects.filter(bucket__range=(span.first, span.last), lost__gt=0)
    if before:
        bucket, pipe_id = before
        rows = rows.filter(bucket__lte=bucket).exclude(bucket=bucket, pipe_id__lte=pipe_id)
    late = LateCount.objects.filter(pipe_id=OuterRef("pipe_id"), bucket=OuterRef("bucket"))
    found = list(rows.annotate(has_late=Exists(late)).order_by("-bucket", "pipe_id")[: most + 1])
    page, more = found[:most], found[most:]
    now = minute_losses([_key(seal) for seal in page if seal.has_late or has_open(seal)], most=0)
    pipes = Pipe.objects.select_related("tenant").only(*_OF_PIPE).in_bulk({seal.pipe_id for seal in page})
    lines = [
        LossLine(pipes[seal.pipe_id], seal.bucket, loss)
        for seal in page
        if seal.pipe_id in pipes and (loss := _loss_of(seal, now)).lost
    ]
    return AllLosses(lines, f"{page[-1].bucket}-{page[-1].pipe_id}" if more else None)


def cursor_of(text: str) -> tuple[int, str] | None:
    """Parse a cursor: bucket and pipe, as `29700123-pipe_0000`; None for anything else."""
    found = _CURSOR.fullmatch(text)
    return (int(found[1]), found[2]) if found else None


def _key(seal: Seal) -> MinuteKey:
    return MinuteKey(seal.pipe_id, seal.bucket)


def _loss_of(seal: Seal, now: Mapping[MinuteKey, MinuteLosses]) -> BucketLoss:
    """Return the present loss; that of the seal if nothing changed, or if the facts are past their retention."""
    found = now.get(_key(seal))
    return found.loss if found and found.loss.due else counted_loss(seal.nodes, seal.bins)
