"""The load of a group over a span of figures: means, and what follows from them. Pure."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from controlplane.autoscaler.figures import Figure

RECOVER_S: Final = 60.0
MINUTE_S: Final = 60.0


class Load(Struct, frozen=True):
    """Means over a span. `cpu`: cores, all lanes together; `backlog`: at its end; `growth`: how much of it is new."""

    span_s: float
    lanes: float
    cpu: float
    came: float
    settled: float
    backlog: int
    growth: int

    @property
    def work(self) -> float:
        """Cores that what comes takes."""
        return self.came * self.cpu / self.settled if self.settled >= 1 else self.cpu

    @property
    def rest(self) -> float:
        """Cores that what is left over takes, if it is to be done within RECOVER_S."""
        return self.backlog / RECOVER_S * self.cpu / self.settled if self.settled >= 1 else 0.0

    @property
    def lag_s(self) -> float:
        """How long the backlog takes at the rate of the span; endless if nothing is settled at all."""
        if self.settled:
            return self.backlog / self.settled
        return float("inf") if self.backlog else 0.0


def mean(figures: Sequence[Figure]) -> Load:
    """The means of at least one figure, each weighted by its span."""
    span_s = sum(figure.span_s for figure in figures)

    def of(name: str) -> float:
        return float(sum(getattr(figure, name) * figure.span_s for figure in figures) / span_s)

    first, last = figures[0], figures[-1]
    return Load(span_s, of("lanes"), of("cpu"), of("came"), of("settled"), last.backlog, last.backlog - first.backlog)


def latest(figures: Sequence[Figure], span_s: float) -> list[Figure]:
    """The figures of the last `span_s` before the newest one's end."""
    since_s = figures[-1].at_s - span_s
    return [figure for figure in figures if figure.at_s > since_s]


def by_minute(figures: Sequence[Figure]) -> list[Load]:
    """The load of each minute, counted back from the newest figure."""
    minutes: dict[int, list[Figure]] = {}
    for figure in figures:
        minutes.setdefault(int((figures[-1].at_s - figure.at_s) // MINUTE_S), []).append(figure)
    return [mean(minute) for minute in minutes.values()]
