"""Choose the next rate of a capacity test, and derive the result from the rates tried. Pure.

The rate doubles until one is too high; then it is the geometric mean of the highest rate that held and the lowest that
was too high. A rate is too high after it failed twice: a pause of a virtual machine or of a broker is not a limit of a
group.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Final, Literal

from msgspec import Struct

Outcome = Literal["held", "behind", "sender"]  # the cell kept up; it fell behind; the sender could not send so much
DOUBTS: Final = 2


class SearchBounds(Struct, frozen=True):
    """Limits of the search, in events per second.

    first: the first rate; least, most: the lowest and the highest rate to try
    close: the search ends when the lowest rate that was too high is at most this many times the highest that held
    steps: the most steps
    """

    first: float = 200.0
    least: float = 10.0
    most: float = 50_000.0
    close: float = 1.15
    steps: int = 20


class SearchStep(Struct, frozen=True):
    """One step. `rate`: the rate sent; if the sender could not send more, the rate it reached."""

    rate: float
    outcome: Outcome


class SearchResult(Struct, frozen=True):
    """Highest rate that held, 0 if none did. `at_least`: no rate was too high, so the limit may be higher."""

    rate: float
    at_least: bool


def next_rate(tried: Sequence[SearchStep], bounds: SearchBounds) -> float | None:
    """Return the rate of the next step; None if the search is done or no step is left."""
    if not tried:
        return min(bounds.first, bounds.most)
    if len(tried) >= bounds.steps or any(step.outcome == "sender" for step in tried):
        return None
    if tried[-1].outcome == "behind" and tried[-1].rate not in _too_high(tried):
        return tried[-1].rate
    found, ceiling = found_by(tried), min(_too_high(tried), default=None)
    if ceiling is None:
        return min(found.rate * 2, bounds.most) if found.rate < bounds.most else None
    if not found.rate:
        return ceiling / 2 if ceiling / 2 >= bounds.least else None
    return sqrt(found.rate * ceiling) if ceiling / found.rate > bounds.close else None


def found_by(tried: Sequence[SearchStep]) -> SearchResult:
    """Return the result of these steps. A rate that held above one that was too high does not count."""
    ceiling = min(_too_high(tried), default=None)
    held = [step.rate for step in tried if step.outcome != "behind" and (ceiling is None or step.rate < ceiling)]
    return SearchResult(max(held, default=0.0), ceiling is None)


def _too_high(tried: Sequence[SearchStep]) -> set[float]:
    behind = [step.rate for step in tried if step.outcome == "behind"]
    return {rate for rate in behind if behind.count(rate) >= DOUBTS}
