"""Deliveries of a transmit lane: one unit, or a batch of units, being sent to a destination."""

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from dataplane.ledger.breakdown import Slice
from dataplane.ledger.meta import Headers, MessageMeta
from dataplane.ledger.stopwatch import departure_stamp, spent_until
from dataplane.transmit.deliveries.settled_units import UnitRound
from dataplane.transmit.destinations.targets import DestinationTarget

_DESTINATION_QUEUE: Final = int(Slice.DESTINATION_QUEUE)  # an enum member costs 0.1 us in a hot path
_TRANSMIT: Final = int(Slice.TRANSMIT)
_RETRY: Final = int(Slice.RETRY)


class Delivery(Struct, eq=False):
    """One unit that is being delivered to its destination.

    places:            (slot, offset) of each record it was read from; more than one if it was read twice
    headers:           as read, the `Meta` header first
    tries, began_us:   attempts in this round, and when the last one began
    taken_s, taken_us: when it was read, by the monotonic and by the wall clock
    first_s:           when its first request began; 0.0 before
    request_s:         when the current request began, 0.0 if there is none
    ended_s:           when the last request ended
    requesting_s:      time spent in requests that ended
    has_turn:          True while it is this message's turn among those of its key (ordered destinations)
    together:          a number shared by the members of its last batch request; 0 if there was none
    waited_s:          time spent in this round's attempts and the pauses between them
    span:              OTel span of the current attempt, if its request names one as parent
    """

    unit: UnitRound
    meta: MessageMeta
    target: DestinationTarget
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
    def carried(self) -> Headers:
        """Headers without the envelope."""
        return self.headers[1:]

    @property
    def is_copy(self) -> bool:
        """True if a replay made the message."""
        return bool(self.meta.replay)

    @property
    def is_ordered(self) -> bool:
        """True if it waits for its turn behind earlier messages of its key. A copy of a replay never does."""
        return self.target.ordered and self.key is not None and not self.is_copy

    def request_begins(self, now_s: float) -> None:
        """Record the beginning of a request."""
        self.request_s = now_s
        self.first_s = self.first_s or now_s

    def request_ends(self, now_s: float) -> None:
        """Record the end of a request."""
        self.requesting_s += now_s - self.request_s
        self.request_s, self.ended_s = 0.0, now_s

    def time_in_lane(self, now_s: float) -> tuple[int, list[int] | None]:
        """Return its time in this lane, and all of its time by slice, in microseconds. A hot path.

        The slices are None if an earlier release produced the message without a stopwatch.
        """
        queued_s, requesting_s, between_s = now_s - self.taken_s, self.requesting_s, 0.0
        if self.first_s:
            queued_s = self.first_s - self.taken_s
            if self.request_s:
                requesting_s += now_s - self.request_s
            between_s = now_s - self.first_s - requesting_s
        queue_us, requests_us = int(queued_s * 1_000_000), int(requesting_s * 1_000_000)
        retry_us = int(between_s * 1_000_000) if between_s > 0 else 0  # rounding may leave a negative rest
        spent_us = spent_until(self.meta, self.taken_us)
        if spent_us is not None:
            spent_us[_DESTINATION_QUEUE] += queue_us
            spent_us[_TRANSMIT] += requests_us
            spent_us[_RETRY] += retry_us
        return queue_us + requests_us + retry_us, spent_us

    def stamp(self, waiting: Slice, now_s: float) -> bytes:
        """Return its stopwatch for another topic, in which it will wait in slice `waiting`."""
        return departure_stamp(self.meta, self.time_in_lane(now_s)[1], waiting)


class DeliveryBatch(Struct, eq=False):
    """Several deliveries of one target in one request.

    is_object: the request writes an object to a store; the target may have changed when the answer comes
    """

    target: DestinationTarget
    members: list[Delivery]
    is_object: bool = False


def members_of(token: Any) -> list[Delivery]:
    """Return the deliveries of a transfer's token: one, several, or none (a request for an access token)."""
    if isinstance(token, Delivery):
        return [token]
    return token.members if isinstance(token, DeliveryBatch) else []


def cancelled_deliveries(tokens: Iterable[Any]) -> list[Delivery]:
    """Return the deliveries of cancelled transfers, and count each transfer as ended at its target."""
    sends = []
    for token in tokens:
        members = members_of(token)
        sends += members
        if members:
            members[0].target.active -= 1
    return sends
