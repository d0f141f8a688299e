"""Receipt of a message: its state and causes, without payload or names, for anyone who knows its id.

A message id has 74 random bits, so only ingest (with the ACK) or a delivery can have given it to the reader.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from django.db.models import Count, Max

from dataplane.ledger.bins import Bin
from dataplane.ledger.trace import bins_of
from mgmt.ledger.queries.ledger import MinuteKey, books_of
from mgmt.messages.queries.journey import original
from mgmt.messages.queries.message_search import OUR_ID, FoundMessage, find_messages
from mgmt.models import DeadLetter, DeliveryAttempt, Pipe
from mgmt.tenancy.row_scope import all_tenants

Standing = Literal["delivered", "under way", "held", "final"]
_HELD: Final = frozenset({Bin.HELD})
_OPEN: Final = frozenset({Bin.RETRYING, Bin.QUEUED})
_FAILED: Final = ("retry", "parked", "dead")  # outcomes of attempts; of the successful ones only a sample is stored


@dataclass(frozen=True)
class DeliveryFailures:
    """Failed attempts of a message at all destinations together; `next_at`: time of the next attempt."""

    count: int = 0
    last_at: datetime | None = None
    next_at: datetime | None = None


@dataclass(frozen=True)
class Receipt:
    """State of a message.

    bins:   number of destinations by bin
    causes: causes of its dead letters
    """

    message_id: str
    standing: Standing
    received_at: datetime
    bins: Mapping[str, int]
    causes: tuple[str, ...]
    failures: DeliveryFailures
    found: FoundMessage


@all_tenants("receipt")
def receipt_of(message_id: str) -> Receipt | None:
    """Return the receipt of a message that is still on its topic, or None. Raises RecordUnavailableError."""
    if not OUR_ID.fullmatch(message_id):
        return None
    found = next(iter(find_messages(Pipe.objects.filter(cell__isnull=False), message_id)), None)
    if found is None:
        return None
    pipe = Pipe.objects.get(id=found.pipe_id)
    record, _ = original(pipe, found.position)
    if record is None:
        return None
    minute = MinuteKey(pipe.id, record.meta.bucket)
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


def failures_of(pipe_id: str, position: int, message_id: str, *, waits: bool) -> DeliveryFailures:
    """Return the failed attempts so far. `next_at` is set only if the message `waits` for a retry."""
    failed = DeliveryAttempt.objects.filter(
        pipe_id=pipe_id, position=position, message_id=message_id, outcome__in=_FAILED
    )
    totals = failed.aggregate(count=Count("id"), last=Max("at"), next=Max("next_at"))
    return DeliveryFailures(totals["count"], totals["last"], totals["next"] if waits else None)


def standing(bins: Mapping[str, Bin]) -> Standing:
    """Return one state for all destinations together. A message without facts yet is under way."""
    found = set(bins.values())
    if not found or found & _OPEN:
        return "under way"
    if found & _HELD:
        return "held"
    return "delivered" if found == {Bin.DELIVERED} else "final"
