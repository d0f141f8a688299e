"""What a transmit lane carries: one unit on its way to its destination."""

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from dataplane.ledger.breakdown import Slice
from dataplane.ledger.meta import Headers, Meta
from dataplane.ledger.stopwatch import handed_on, spent_until
from dataplane.transmit.memory import Unit
from dataplane.transmit.targets import Target

_DESTINATION_QUEUE: Final = int(Slice.DESTINATION_QUEUE)  # a member of an enumeration costs a hot path 0.1 us
_TRANSMIT: Final = int(Slice.TRANSMIT)
_RETRY: Final = int(Slice.RETRY)


class Send(Struct, eq=False):
    """One unit on its way to its destination. `places` are where it was read: more than one if it came twice.

    headers:          as read, ours first
    tries, began_us:  attempts in this round, and when the last one began
    taken_s, taken_us: when it was taken, by the monotonic and by the wall clock
    first_s:          when its first request began; 0.0 before
    request_s:        when the request under way began, 0.0 if none is
    ended_s:          when the last request ended
    requesting_s:     time spent in requests that ended
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
    taken_s: float
    taken_us: int
    first_s: float = 0.0
    request_s: float = 0.0
    ended_s: float = 0.0
    requesting_s: float = 0.0
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

    def request_begins(self, now_s: float) -> None:
        """Note the beginning of a request."""
        self.request_s = now_s
        self.first_s = self.first_s or now_s

    def request_ends(self, now_s: float) -> None:
        """Note its end."""
        self.requesting_s += now_s - self.request_s
        self.request_s, self.ended_s = 0.0, now_s

    def time_in_lane(self, now_s: float) -> tuple[int, list[int] | None]:
        """Return how long it has been in this lane, and all of its time by slice; a hot path. Microseconds.

        The slices are None if an earlier release handed the message to us unstamped.
        """
        queued_s, requesting_s, between_s = now_s - self.taken_s, self.requesting_s, 0.0
        if self.first_s:
            queued_s = self.first_s - self.taken_s
            if self.request_s:
                requesting_s += now_s - self.request_s
            between_s = now_s - self.first_s - requesting_s
        queue_us, requests_us = int(queued_s * 1_000_000), int(requesting_s * 1_000_000)
        retry_us = int(between_s * 1_000_000) if between_s > 0 else 0  # rounding may leave a little below
        spent_us = spent_until(self.meta, self.taken_us)
        if spent_us is not None:
            spent_us[_DESTINATION_QUEUE] += queue_us
            spent_us[_TRANSMIT] += requests_us
            spent_us[_RETRY] += retry_us
        return queue_us + requests_us + retry_us, spent_us

    def stamp(self, waiting: Slice, now_s: float) -> bytes:
        """Return its stopwatch as it leaves the lane for another topic."""
        return handed_on(self.meta, self.time_in_lane(now_s)[1], waiting)


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
