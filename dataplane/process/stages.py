"""Times of a run's stages, and the stopwatches of the messages that leave it. Pure.

The messages of a run pass the stages together, so each stage takes the same time for all of them.
"""

from dataplane.ledger.breakdown import SLICES, Slice
from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.stopwatch import departure_stamp, spent_until, stamp


class StageTimes:
    """Durations of a run's stages, which follow each other without a gap."""

    def __init__(self, now_us: int) -> None:
        self.begun_us = now_us
        self._stage_us = now_us  # when the present stage began
        self._spent_us = [0] * SLICES

    def over(self, stage: Slice, now_us: int) -> int:
        """End a stage, begin the next one, and return the start of the ended one in microseconds."""
        began_us, self._stage_us = self._stage_us, now_us
        self._spent_us[stage] += now_us - began_us
        return began_us

    def leave(self, waiting: Slice, now_us: int) -> bytes:
        """Return the stamp of messages that leave now and were read for the first time."""
        return stamp(waiting, now_us, self._until(waiting, now_us))

    def leave_again(self, meta: MessageMeta, stopwatch: bytes, waiting: Slice, now_us: int) -> bytes:
        """Return the stamp of a message that leaves now and arrived with the stamp `stopwatch`; b"" if it had none."""
        meta.stopwatch = stopwatch
        before = spent_until(meta, self.begun_us)
        if before is None:
            return b""
        here = self._until(waiting, now_us)
        return departure_stamp(meta, [before[n] + here[n] for n in range(SLICES)], waiting)

    def _until(self, waiting: Slice, now_us: int) -> list[int]:
        """Count the time since the last stage as transform, including the transforms of earlier destinations."""
        spent_us = self._spent_us.copy()
        if waiting is Slice.TRANSMIT_QUEUE:
            spent_us[Slice.TRANSFORM] += now_us - self._stage_us
        return spent_us
