"""Units of one bin of a minute, by position; a lost unit with the place where it was last seen."""

from dataclasses import dataclass
from itertools import islice

from dataplane.ledger.bins import OVERWRITTEN, Bin, BucketFacts, derive
from dataplane.ledger.trace import facts_in_order
from dataplane.ledger.units import format_position
from mgmt.ledger.queries.ledger import MinuteKey, books_of
from mgmt.messages.presenters import last_seen


@dataclass(frozen=True)
class UnitLine:
    """Unit in a bin; `last_seen` is set for lost ones."""

    position: str
    destination: str
    child: int
    last_seen: str


def units_in(pipe_id: str, bucket: int, bin_: Bin, most: int) -> tuple[list[UnitLine], int]:
    """Return the first `most` units of a bin and the number of further ones; lost units with `last_seen`."""
    facts = books_of([MinuteKey(pipe_id, bucket)])[MinuteKey(pipe_id, bucket)]
    account = derive(facts)
    found: list[UnitLine] = []
    total = 0
    for where, bins in {"": account.upstream, **account.destinations}.items():
        total += len(bins[bin_])
        for position, child in islice(bins[bin_], most - len(found)):
            seen = _last_seen(facts, position, child, where) if bin_ is Bin.LOST else ""
            found.append(UnitLine(format_position(position), where, max(child, 0), seen))
    return found, total - len(found)


def _last_seen(facts: BucketFacts, position: int, child: int, where: str) -> str:
    if child == OVERWRITTEN:
        return "accepted by ingest. Kafka lost the record and reused its offset for another message."
    return last_seen(facts_in_order(facts, position, child, where))
