"""What a transmit lane carries: one unit on its way to its destination."""

from msgspec import Struct

from dataplane.ledger.meta import Headers, Meta
from dataplane.transmit.memory import Unit
from dataplane.transmit.targets import Target


class Send(Struct, eq=False):
    """One unit on its way to its destination. `places` are where it was read: more than one if it came twice.

    headers:          as read, ours first
    tries, began_us:  attempts in this round, and when the last one began
    taken_s:          when it was taken, by the monotonic clock
    waited_s:         time spent in this round's attempts and the pauses between them
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
