"""Losses of minutes: by node and end to end, with the lost messages. The numbers are those of now, not of the seal."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from dataplane.ledger.bins import BucketFacts, derive
from dataplane.ledger.losses import BucketLoss, LostUnit, bucket_loss, lost_units
from dataplane.ledger.units import format_position
from mgmt.ledger.last_seen import last_seen_of
from mgmt.ledger.queries.ledger import MinuteKey, books_of

MOST_LOST: Final = 200


@dataclass(frozen=True)
class LostMessage:
    """A lost message: row of the loss table; `child` is 0 for the message itself.

    seen: the nodes that saw it, in order of travel; `last_seen` is the last one
    """

    position: str
    child: int
    destination: str
    seen: tuple[str, ...]
    last_seen: str
    last_seen_words: str


@dataclass(frozen=True)
class MinuteLosses:
    """Losses of one minute, with the rows from `first` on."""

    loss: BucketLoss
    messages: tuple[LostMessage, ...]
    first: int = 0

    @property
    def more(self) -> int:
        """Number of lost messages after the listed ones."""
        return max(0, self.loss.lost - self.first - len(self.messages))

    @property
    def next_offset(self) -> int | None:
        """Number of the first message after the listed ones; None if there is none."""
        return self.first + len(self.messages) if self.more else None


def minute_losses(
    minutes: Iterable[MinuteKey], *, first: int = 0, most: int = MOST_LOST
) -> dict[MinuteKey, MinuteLosses]:
    """Return the losses of each minute, with at most `most` of its lost messages from the number `first` on.

    Only the losses of a sealed minute are final.
    """
    return {minute: losses_of(books, first=first, most=most) for minute, books in books_of(minutes).items()}


def all_lost(minute: MinuteKey) -> Iterator[LostMessage]:
    """Yield every lost message of a minute, for exports."""
    books = books_of([minute])[minute]
    yield from (_message(books, unit) for unit in lost_units(books))


def losses_of(books: BucketFacts, *, first: int = 0, most: int = MOST_LOST) -> MinuteLosses:
    """Return the losses of facts that were read already, as `minute_losses` does."""
    account = derive(books)
    found = islice(lost_units(books, account, first=first), most)
    return MinuteLosses(bucket_loss(account), tuple(_message(books, unit) for unit in found), first)


def _message(books: BucketFacts, unit: LostUnit) -> LostMessage:
    last = last_seen_of(books, unit.position, unit.child, unit.destination)
    return LostMessage(format_position(unit.position), max(unit.child, 0), unit.destination, unit.seen, *last)
