"""States of messages that a search has found, from the ledger."""

from collections.abc import Iterable
from dataclasses import dataclass

from dataplane.ledger.bins import Bin, derive
from dataplane.ledger.trace import units_at
from mgmt.ledger.last_seen import LastSeen, last_seen_of
from mgmt.ledger.queries.ledger import MinuteKey, books_of
from mgmt.messages.queries.message_search import FoundMessage


@dataclass(frozen=True)
class FoundState:
    """Bin before the route, "" if the message passed it; the bins of its deliveries; where it was lost, if it was."""

    bin: str
    legs: tuple[str, ...]
    last_seen: LastSeen | None


def states_of(found: Iterable[FoundMessage]) -> dict[FoundMessage, FoundState]:
    """Return the state of each message; of one that was exploded, with the deliveries of all its children."""
    by_minute: dict[MinuteKey, list[FoundMessage]] = {}
    for one in found:
        by_minute.setdefault(MinuteKey(one.pipe_id, one.meta.bucket), []).append(one)
    states = {}
    for minute, books in books_of(by_minute).items():
        account = derive(books)
        for one in by_minute[minute]:
            units = [unit for unit in units_at(account, one.position) if not one.child or unit[2] == one.child]
            lost = next((unit for unit in units if unit[1] is Bin.LOST), None)
            states[one] = FoundState(
                bin=next((str(bin_) for name, bin_, _ in units if not name), ""),
                legs=tuple(str(bin_) for name, bin_, _ in units if name),
                last_seen=last_seen_of(books, one.position, lost[2], lost[0]) if lost else None,
            )
    return states
