"""Mean load of a group over a span of figures, and values derived from it. Pure."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from controlplane.autoscaler.figures import GroupRates

RECOVER_S: Final = 60.0
MINUTE_S: Final = 60.0


class GroupLoad(Struct, frozen=True):
    """Means over a span of `span_s` seconds.

    cpu:     cores, all lanes together
    came:    arrived messages per second; `settled` likewise
    backlog: messages not settled at the end of the span
    growth:  increase of the backlog within the span
    """

    span_s: float
    lanes: float
    cpu: float
    came: float
    settled: float
    backlog: int
    growth: int

    @property
    def work(self) -> float:
        """Cores that the arriving messages need."""
        return self.came * self.cpu / self.settled if self.settled >= 1 else self.cpu

    @property
    def rest(self) -> float:
        """Cores that the backlog needs to be settled within RECOVER_S."""
        return self.backlog / RECOVER_S * self.cpu / self.settled if self.settled >= 1 else 0.0

    @property
    def lag_s(self) -> float:
        """Seconds that the backlog takes at the rate of the span; infinite if nothing is settled."""
        if self.settled:
            return self.backlog / self.settled
        return float("inf") if self.backlog else 0.0


def mean(figures: Sequence[GroupRates]) -> GroupLoad:
    """Return the means of at least one figure, each weighted by its span."""
    span_s = sum(figure.span_s for figure in figures)

    def of(name: str) -> float:
        return float(sum(getattr(figure, name) * figure.span_s for figure in figures) / span_s)

    first, last = figures[0], figures[-1]
    return GroupLoad(
        span_s, of("lanes"), of("cpu"), of("came"), of("settled"), last.backlog, last.backlog - first.backlog
    )


def latest(figures: Sequence[GroupRates], span_s: float) -> list[GroupRates]:
    """Return the figures of the last `span_s` seconds before the newest one's end. `figures` must not be empty."""
    since_s = figures[-1].at_s - span_s
    return [figure for figure in figures if figure.at_s > since_s]


def by_minute(figures: Sequence[GroupRates]) -> list[GroupLoad]:
    """Return the load of each minute, counted back from the newest figure."""
    minutes: dict[int, list[GroupRates]] = {}
    for figure in figures:
        minutes.setdefault(int((figures[-1].at_s - figure.at_s) // MINUTE_S), []).append(figure)
    return [mean(minute) for minute in minutes.values()]
