"""What became of a message, for whoever has its receipt: where it stands and why, no payload, no names.

A message id has 74 bits of chance, so who knows it was told it: by ingest when it was ACKed, or with the delivery.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from django.db.models import Count, Max

from dataplane.ledger.bins import Bin
from dataplane.ledger.trace import bins_of
from mgmt.models import Attempt, DeadLetter, Pipe
from mgmt.queries.find import OUR_ID, FoundMessage, find_messages
from mgmt.queries.ledger import Minute, books_of
from mgmt.queries.passport import original

Standing = Literal["delivered", "under way", "held", "final"]
_HELD: Final = frozenset({Bin.HELD})
_OPEN: Final = frozenset({Bin.RETRYING, Bin.QUEUED})
_FAILED: Final = ("retry", "parked", "dead")  # outcomes of tries; of those that went well only a sample is kept


@dataclass(frozen=True)
class Failures:
    """The tries of a message that failed, at all destinations together; `next_at`: when the next one is due."""

    count: int = 0
    last_at: datetime | None = None
    next_at: datetime | None = None


@dataclass(frozen=True)
class Receipt:
    """`bins`: how many destinations have it in which bin; `causes`: why those that will not have it will not."""

    message_id: str
    standing: Standing
    received_at: datetime
    bins: Mapping[str, int]
    causes: tuple[str, ...]
    failures: Failures
    found: FoundMessage


def receipt_of(message_id: str) -> Receipt | None:
    """The receipt of a message that its topic still keeps; None if there is no such. Raises RecordsAway."""
    if not OUR_ID.fullmatch(message_id):
        return None
    found = next(iter(find_messages(Pipe.objects.filter(cell__isnull=False), message_id)), None)
    if found is None:
        return None
    pipe = Pipe.objects.get(id=found.pipe_id)
    record, _ = original(pipe, found.position)
    if record is None:
        return None
    minute = Minute(pipe.id, record.meta.bucket)
    bins = bins_of(books_of([minute])[minute], found.position, found.child)
    letters = DeadLetter.objects.filter(pipe_id=pipe.id, position=found.position, child=found.child, move=None)
    return Receipt(
        message_id=message_id,
        standing=standing(bins),
        received_at=datetime.fromtimestamp(record.meta.ingest_time_us / 1e6, UTC),
        bins=Counter(map(str, bins.values())),
        causes=tuple(sorted(set(letters.values_list("cause", flat=True)))),
        failures=failures_of(pipe.id, found.position, message_id, waits=Bin.RETRYING in bins.values()),
        found=found,
    )


def failures_of(pipe_id: str, position: int, message_id: str, *, waits: bool) -> Failures:
    """What failed so far; the next try is told only of a message that `waits` for one."""
    failed = Attempt.objects.filter(pipe_id=pipe_id, position=position, message_id=message_id, outcome__in=_FAILED)
    told = failed.aggregate(count=Count("id"), last=Max("at"), next=Max("next_at"))
    return Failures(told["count"], told["last"], told["next"] if waits else None)


def standing(bins: Mapping[str, Bin]) -> Standing:
    """One phrase for all destinations together. What is not in the books yet is under way."""
    found = set(bins.values())
    if not found or found & _OPEN:
        return "under way"
    if found & _HELD:
        return "held"
    return "delivered" if found == {Bin.DELIVERED} else "final"
