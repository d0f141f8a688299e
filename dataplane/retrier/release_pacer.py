"""Pacing of messages that return to a destination, so that one destination does not delay the others. Pure."""

from typing import Final, NamedTuple

MANY: Final = 10_000


class DestinationKey(NamedTuple):
    """Key of a destination: its pipe and its name."""

    pipe: str
    destination: str


class ReleasePacer:
    """Rate limiter with one bucket per destination, `rate_per_s` messages a second each.

    A destination that was idle gets a burst of up to one second's worth: the generic cell rate algorithm (ITU-T I.371).
    """

    def __init__(self, rate_per_s: float) -> None:
        self._step_us = 1_000_000 / rate_per_s
        self._next_us: dict[DestinationKey, float] = {}

    def moment_us(self, name: DestinationKey, now_us: int) -> int:
        """Reserve and return the time, in microseconds, at which the destination's next message may be sent."""
        earliest = now_us - 1_000_000
        moment = max(self._next_us.get(name, 0.0), earliest) + self._step_us
        self._next_us[name] = moment
        if len(self._next_us) > MANY:
            self._next_us = {other: us for other, us in self._next_us.items() if us > earliest}
        return max(now_us, int(moment))
