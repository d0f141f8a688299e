"""What a transmit lane carries: one unit on its way to its destination."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from dataplane.ledger.meta import Headers, Meta
from dataplane.transmit.memory import Unit
from dataplane.transmit.targets import Target


class Send(Struct, eq=False):
    """One unit on its way to its destination. `places` are where it was read: more than one if it came twice.

    headers:          as read, ours first
    tries, began_us:  attempts in this round, and when the last one began
    taken_s:          when it was taken, by the monotonic clock
    has_turn:         it is this message's turn among those of its key, where its destination wants order
    together:         a number shared with those it was last sent with in one request; 0 if it was not
    waited_s:         time spent in this round's attempts and the pauses between them
    span:             of the attempt under way, if it is traced and its request says so
    """

    unit: Unit
    meta: Meta
    target: Target
    headers: Headers
    key: bytes | None
    body: bytes
    places: list[tuple[int, int]]
    taken_s: float = 0.0
    tries: int = 0
    began_us: int = 0
    waited_s: float = 0.0
    together: int = 0
    has_turn: bool = False
    span: Any = None

    @property
    def is_ordered(self) -> bool:
        """Whether it waits its turn behind earlier ones of its key."""
        return self.target.ordered and self.key is not None


class Parcel(Struct, eq=False):
    """Several sends of one target in one request."""

    target: Target
    members: list[Send]


def members_of(token: Any) -> list[Send]:
    """What a transfer's token carries: a message, several, or none (it fetches an access token)."""
    if isinstance(token, Send):
        return [token]
    return token.members if isinstance(token, Parcel) else []


def sends_of(tokens: Iterable[Any]) -> list[Send]:
    """The messages of transfers that were broken off; their targets have one under way less each."""
    sends = []
    for token in tokens:
        members = members_of(token)
        sends += members
        if members:
            members[0].target.active -= 1
    return sends
