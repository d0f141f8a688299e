"""How fast one destination's messages come back, so that none of them fills the way of the others. Pure."""

from typing import Final, NamedTuple

MANY: Final = 10_000


class Name(NamedTuple):
    """A destination."""

    pipe: str
    destination: str


class Pace:
    """Gives each destination's messages moments of their own, `rate_per_s` a second, as long as they come faster.

    A destination that was silent may come at once, up to a second's worth: a generic cell rate algorithm (ITU-T I.371).
    """

    def __init__(self, rate_per_s: float) -> None:
        self._step_us = 1_000_000 / rate_per_s
        self._next_us: dict[Name, float] = {}

    def moment_us(self, name: Name, now_us: int) -> int:
        """When the next message of this destination may go on; the moment is taken by asking."""
        earliest = now_us - 1_000_000
        moment = max(self._next_us.get(name, 0.0), earliest) + self._step_us
        self._next_us[name] = moment
        if len(self._next_us) > MANY:
            self._next_us = {other: us for other, us in self._next_us.items() if us > earliest}
        return max(now_us, int(moment))
