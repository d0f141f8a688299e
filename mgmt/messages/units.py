"""Units of one bin of a minute, by position; a lost unit with the place where it was last seen."""

from dataclasses import dataclass
from itertools import islice

from dataplane.ledger.bins import Bin, BucketFacts, derive
from dataplane.ledger.units import format_position
from mgmt.ledger.last_seen import last_seen_of
from mgmt.ledger.queries.ledger import MinuteKey, books_of


@dataclass(frozen=True)
class UnitLine:
    """Unit in a bin; `last_seen` (the node) and `last_seen_words` are set for lost ones."""

    position: str
    destination: str
    child: int
    last_seen: str = ""
    last_seen_words: str = ""


def units_in(pipe_id: str, bucket: int, bin_: Bin, most: int) -> tuple[list[UnitLine], int]:
    """Return the first `most` units of a bin and the number of further ones; lost units with `last_seen`."""
    return units_of(books_of([MinuteKey(pipe_id, bucket)])[MinuteKey(pipe_id, bucket)], bin_, most)


def units_of(facts: BucketFacts, bin_: Bin, most: int) -> tuple[list[UnitLine], int]:
    """Return the units of a bin as `units_in` does, from facts that were read already."""
    account = derive(facts)
    found: list[UnitLine] = []
    total = 0
    for where, bins in {"": account.upstream, **account.destinations}.items():
        total += len(bins[bin_])
        for position, child in islice(bins[bin_], most - len(found)):
            last = last_seen_of(facts, position, child, where) if bin_ is Bin.LOST else ()
            found.append(UnitLine(format_position(position), where, max(child, 0), *last))
    return found, total - len(found)
