"""Usual ranges: median and spread of a pipe's blocks at the same hour, and the limits beyond which a block is unusual.

A block is outside when it is further from the median than REACH spreads. The spread is the largest of three: the
median absolute deviation, as a normal distribution's sigma (Rousseeuw, Croux 1993); the distance to the outer decile,
so that bursts are usual where events arrive in bursts, and the new level of one day is not reported on the next; and
the statistical noise of the figure itself, as in counts of few events.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from mgmt.patterns.blocks import DAY_H, IN_HOUR, WEEK_H, Known, PatternBlock

HourT = TypeVar("HourT")
REACH: Final = 6.0
MAD_TO_SIGMA: Final = 1.4826
DECILE_TO_SIGMA: Final = 1 / 1.2816
FEWEST: Final = 20  # messages that a share or a percentile needs to be meaningful
LEAST_BLOCKS: Final = IN_HOUR  # blocks with a value that a signal needs for a usual range
FULL: Final = IN_HOUR // 2  # observed blocks with which an hour counts


class ReferenceHours(Struct, frozen=True):
    """Hours to compare with, as numbers of hours before the present one; at least `least` of them must be known."""

    words: str
    back: Sequence[int]
    least: int


BASES: Final = (
    ReferenceHours("at this hour of the week", [WEEK_H * weeks for weeks in (1, 2, 3, 4)], 2),
    ReferenceHours("at this hour of the day", [DAY_H * days for days in range(1, 8)], 2),
    ReferenceHours("in the hours before", range(1, 7), 3),
)
HOURS_BACK: Final = sorted({back for basis in BASES for back in basis.back})


class PatternSignal(Struct, frozen=True):
    """One figure of a block, on a scale where equal distances are equally unusual.

    of:       the figure; None if the block has too few messages for it
    noise:    the figure's statistical standard deviation in such a block, given the usual median
    text:     the figure as text for people
    sentence: a format string with {seen}, {usual} and {basis}
    """

    name: str
    of: Callable[[PatternBlock], float | None]
    noise: Callable[[float, PatternBlock], float]
    text: Callable[[float], str]
    sentence: str


class UsualRange(Struct, frozen=True):
    """Usual range on the signal's scale: median, outer deciles, and the limits beyond which a block is outside."""

    median: float
    low: float
    high: float
    below: float
    above: float
    basis: str


def blocks_to_compare(known: Known, hour: int) -> tuple[list[PatternBlock], str]:
    """Return the blocks of the first basis with enough hours, and its words; no blocks and "" without such a basis."""
    observed = {number: [block for block in blocks if block is not None] for number, blocks in known.items()}
    hours, words = hours_to_compare(observed, hour, lambda blocks: len(blocks) >= FULL)
    return [block for blocks in hours for block in blocks], words


def hours_to_compare(
    known: Mapping[int, HourT],
    hour: int,
    is_full: Callable[[HourT], bool],
    bases: Sequence[ReferenceHours] = BASES,
) -> tuple[list[HourT], str]:
    """Return the hours of the first basis with enough full hours, and its words; no hours and "" without one."""
    for basis in bases:
        full = [known[hour - back] for back in basis.back if hour - back in known and is_full(known[hour - back])]
        if len(full) >= basis.least:
            return full, basis.words
    return [], ""


def usual_of(
    signal: PatternSignal, blocks: Sequence[PatternBlock], basis: str, block: PatternBlock
) -> UsualRange | None:
    """Return the usual range of a signal for such a block; None while too little is known."""
    values = sorted(value for one in blocks if (value := signal.of(one)) is not None)
    return usual_among(values, basis, lambda median: signal.noise(median, block))


def usual_among(values: Sequence[float], basis: str, noise: Callable[[float], float]) -> UsualRange | None:
    """Return the usual range of sorted values; None while they are too few. `noise`: statistical noise at a median."""
    if len(values) < LEAST_BLOCKS:
        return None
    median, low, high = _quantile(values, 0.5), _quantile(values, 0.1), _quantile(values, 0.9)
    deviation = MAD_TO_SIGMA * _quantile(sorted(abs(value - median) for value in values), 0.5)
    least = max(deviation, noise(median))
    down, up = max(least, (median - low) * DECILE_TO_SIGMA), max(least, (high - median) * DECILE_TO_SIGMA)
    return UsualRange(median, low, high, median - REACH * down, median + REACH * up, basis)


def _quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values; the mean of the two nearest if it is between two."""
    rank = share * (len(values) - 1)
    return (values[math.floor(rank)] + values[math.ceil(rank)]) / 2


def _volume(block: PatternBlock) -> float:
    return math.log1p(block.volume)


def _volume_noise(median: float, _block: PatternBlock) -> float:
    """Noise of counts of independent events: 1 / sqrt(n). A quarter less and a third more are always usual."""
    return max(0.05, math.exp(-median / 2))


def _failing(block: PatternBlock) -> float | None:
    ended = block.delivered + block.failed
    return block.failed / ended if ended >= FEWEST else None


def _failing_noise(median: float, block: PatternBlock) -> float:
    ended = block.delivered + block.failed
    share = max(median, 1 / ended)
    return max(0.01, math.sqrt(share * (1 - share) / ended))


def _lag(block: PatternBlock) -> float | None:
    """Seconds on a scale that is linear up to about 1 s and logarithmic beyond: 30 ms more are negligible."""
    return math.log1p(max(0, block.lag_p95_us) / 1_000_000) if block.arrived >= FEWEST else None


def _lag_noise(_median: float, _block: PatternBlock) -> float:
    """Return a fixed noise: with a usual lag of 0 s, 2.3 s is unusual; with 10 s, 36 s."""
    return 0.2


def number_text(value: float) -> str:
    """Format a number, with one decimal below ten unless it is 0."""
    return f"{value:.1f}".removesuffix(".0") if value < 10 else f"{value:.0f}"


VOLUME: Final = PatternSignal(
    "volume",
    _volume,
    _volume_noise,
    lambda value: number_text(math.expm1(value) * IN_HOUR / 60),
    "{seen} events/min where {usual} are usual {basis}",
)
FAILING: Final = PatternSignal(
    "failures",
    _failing,
    _failing_noise,
    lambda value: f"{number_text(100 * value)} %",
    "{seen} of the messages failed where {usual} do {basis}",
)
LAG: Final = PatternSignal(
    "lag",
    _lag,
    _lag_noise,
    lambda value: f"{number_text(math.expm1(value))} s",
    "a lag p95 of {seen} where {usual} is usual {basis}",
)
SIGNALS: Final = (VOLUME, FAILING, LAG)
