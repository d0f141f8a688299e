"""Which rate is tried next, and what the rates that were tried say. Pure.

Up by doubling until a rate is too much, then by halves of what lies between, in proportion. A rate is too much when it
was so twice in a row: a pause of a virtual machine or of a broker is no limit of a group.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Final, Literal

from msgspec import Struct

Outcome = Literal["held", "behind", "sender"]  # kept up with; fell behind; the sender could not send so much
DOUBTS: Final = 2


class Bounds(Struct, frozen=True):
    """Where the search begins and ends, in events a second.

    close: it ends when the lowest rate that was too much is so many times the highest that held, or less
    """

    first: float = 200.0
    least: float = 10.0
    most: float = 50_000.0
    close: float = 1.15
    steps: int = 20


class Tried(Struct, frozen=True):
    """One step: the rate that was sent, which is what was reached if the sender could not do more."""

    rate: float
    outcome: Outcome


class Found(Struct, frozen=True):
    """The highest rate that held; `at_least`: nothing showed that more would not. Rate 0: none held."""

    rate: float
    at_least: bool


def next_rate(tried: Sequence[Tried], bounds: Bounds) -> float | None:
    """The rate of the next step, None when there is nothing more to learn or no step left."""
    if not tried:
        return min(bounds.first, bounds.most)
    if len(tried) >= bounds.steps or any(step.outcome == "sender" for step in tried):
        return None
    if tried[-1].outcome == "behind" and tried[-1].rate not in _too_much(tried):
        return tried[-1].rate
    found, ceiling = found_by(tried), min(_too_much(tried), default=None)
    if ceiling is None:
        return min(found.rate * 2, bounds.most) if found.rate < bounds.most else None
    if not found.rate:
        return ceiling / 2 if ceiling / 2 >= bounds.least else None
    return sqrt(found.rate * ceiling) if ceiling / found.rate > bounds.close else None


def found_by(tried: Sequence[Tried]) -> Found:
    """What these steps say. A rate that held above one that was too much is not believed."""
    ceiling = min(_too_much(tried), default=None)
    held = [step.rate for step in tried if step.outcome != "behind" and (ceiling is None or step.rate < ceiling)]
    return Found(max(held, default=0.0), ceiling is None)


def _too_much(tried: Sequence[Tried]) -> set[float]:
    behind = [step.rate for step in tried if step.outcome == "behind"]
    return {rate for rate in behind if behind.count(rate) >= DOUBTS}
