"""Relief for ack windows with head-of-line blocking: nearly full, nearly all settled, so that a few block all others.

Only those few are produced to retry-in; a send in flight is cancelled and may arrive twice, with the same id.
"""

from typing import Final

from dataplane.runtime.lanes.context import LaneContext
from dataplane.transmit.deliveries.delivery import cancelled_deliveries, members_of
from dataplane.transmit.outcomes.outcomes import Outcomes
from dataplane.transmit.queues import DeliveryQueues
from dataplane.transmit.senders import Senders

LOOK_EVERY_S: Final = 0.25
NEARLY_FULL: Final = 0.75  # of a window's limit
FEW: Final = 0.1  # of the messages in the window


def blocked_by_few(span: int, unsettled: int, limit: int) -> bool:
    """Return True if few unsettled messages block a window that is nearly full."""
    return span >= NEARLY_FULL * limit and 0 < unsettled <= FEW * span


class SlowLaneRelief:
    """Check the ack windows every LOOK_EVERY_S seconds, and free blocked ones."""

    def __init__(self, lane: LaneContext, ends: Outcomes, queues: DeliveryQueues, senders: Senders) -> None:
        self._lane = lane
        self._ends = ends
        self._queues = queues
        self._senders = senders
        self._due_s = 0.0

    def poll(self, now_s: float) -> None:
        """Free the blocked windows, if a check is due."""
        if now_s < self._due_s:
            return
        self._due_s = now_s + LOOK_EVERY_S
        limit = self._lane.settings.max_unsettled
        blocked = {
            slot for slot, window in self._lane.windows.items() if blocked_by_few(window.span, window.unsettled, limit)
        }
        if blocked:
            self._free(blocked)

    def _free(self, blocked: set[int]) -> None:
        few = {
            id(send): send for send in self._ends.under_way.values() if any(slot in blocked for slot, _ in send.places)
        }
        waiting = self._queues.take_out(set(few))
        begun = self._senders.cancel(lambda token: any(id(send) in few for send in members_of(token)))
        out = {id(send) for send in [*waiting, *cancelled_deliveries(begun)]}
        for send in list(self._ends.under_way.values()):  # in the order read, which keeps the order per key
            if id(send) in out:
                self._queues.put_aside(send)
