"""Relief for a window whose head is blocked: nearly full and nearly all acknowledged, so a few hold up everyone.

Just those few go to retry-in; one that is being sent is broken off, and may come twice, with the same id.
"""

from typing import Final

from dataplane.runtime.lane import Lane
from dataplane.transmit.ends import Ends
from dataplane.transmit.queues import Queues
from dataplane.transmit.sender import Sender
from dataplane.transmit.sends import members_of, sends_of

LOOK_EVERY_S: Final = 0.25
NEARLY_FULL: Final = 0.75  # of what a window may hold
FEW: Final = 0.1  # of what it holds


def blocked_by_few(span: int, unsettled: int, limit: int) -> bool:
    """Whether a window's head is blocked by few messages."""
    return span >= NEARLY_FULL * limit and 0 < unsettled <= FEW * span


class Relief:
    """Looks at the windows a few times a second."""

    def __init__(self, lane: Lane, ends: Ends, queues: Queues, sender: Sender) -> None:
        self._lane = lane
        self._ends = ends
        self._queues = queues
        self._sender = sender
        self._due_s = 0.0

    def turn(self, now_s: float) -> None:
        """Free the windows that need it."""
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
        begun = self._sender.cancel(lambda token: any(id(send) in few for send in members_of(token)))
        out = {id(send) for send in [*waiting, *sends_of(begun)]}
        for send in list(self._ends.under_way.values()):  # as they were taken: the order of their keys
            if id(send) in out:
                self._queues.put_aside(send)
