"""The usual: median and spread of the blocks that a pipe had at the same hour, and how far a block may be from it.

A block is outside when it lies further from the median than REACH spreads. The spread is the largest of three: the
median absolute deviation, as a normal distribution's sigma (Rousseeuw, Croux 1993); the distance to the outer decile,
so that bursts are usual where events come in bursts, and a level that came one day is no news the next; and the noise
that the figure has by itself, as counts of few events have.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from mgmt.patterns.blocks import DAY_H, IN_HOUR, WEEK_H, Block, Known

Kept = TypeVar("Kept")
REACH: Final = 6.0
MAD_TO_SIGMA: Final = 1.4826
DECILE_TO_SIGMA: Final = 1 / 1.2816
FEWEST: Final = 20  # messages that say something about a share or a percentile
LEAST_BLOCKS: Final = IN_HOUR  # of which a signal must have had a value
FULL: Final = IN_HOUR // 2  # blocks that make an hour count


class Basis(Struct, frozen=True):
    """Hours to compare with, as distances back from the present one; at least `least` of them must be known."""

    words: str
    back: Sequence[int]
    least: int


BASES: Final = (
    Basis("at this hour of the week", [WEEK_H * weeks for weeks in (1, 2, 3, 4)], 2),
    Basis("at this hour of the day", [DAY_H * days for days in range(1, 8)], 2),
    Basis("in the hours before", range(1, 7), 3),
)
HOURS_BACK: Final = sorted({back for basis in BASES for back in basis.back})


class Signal(Struct, frozen=True):
    """One figure of a block, on a scale where equal distances are equally unusual.

    of:       the figure; None if the block does not say
    noise:    the figure's own standard deviation in such a block, given the usual median
    text:     the figure for people
    sentence: with {seen}, {usual} and {basis}
    """

    name: str
    of: Callable[[Block], float | None]
    noise: Callable[[float, Block], float]
    text: Callable[[float], str]
    sentence: str


class Usual(Struct, frozen=True):
    """What is usual, on the signal's scale: median, outer deciles, and the borders beyond which a block is outside."""

    median: float
    low: float
    high: float
    below: float
    above: float
    basis: str


def blocks_to_compare(known: Known, hour: int) -> tuple[list[Block], str]:
    """The blocks of the first basis that has enough hours, and its words; none and "" if no basis has."""
    heard = {number: [block for block in blocks if block is not None] for number, blocks in known.items()}
    hours, words = hours_to_compare(heard, hour, lambda blocks: len(blocks) >= FULL)
    return [block for blocks in hours for block in blocks], words


def hours_to_compare(known: Mapping[int, Kept], hour: int, is_full: Callable[[Kept], bool]) -> tuple[list[Kept], str]:
    """The hours of the first basis of which enough are full, and its words; none and "" if there is no such basis."""
    for basis in BASES:
        full = [known[hour - back] for back in basis.back if hour - back in known and is_full(known[hour - back])]
        if len(full) >= basis.least:
            return full, basis.words
    return [], ""


def usual_of(signal: Signal, blocks: Sequence[Block], basis: str, block: Block) -> Usual | None:
    """What is usual of a signal for such a block; None as long as too little is known."""
    values = sorted(value for one in blocks if (value := signal.of(one)) is not None)
    return usual_among(values, basis, lambda median: signal.noise(median, block))


def usual_among(values: Sequence[float], basis: str, noise: Callable[[float], float]) -> Usual | None:
    """What is usual among sorted values; None as long as they are too few. `noise`: as a Signal has it."""
    if len(values) < LEAST_BLOCKS:
        return None
    median, low, high = _quantile(values, 0.5), _quantile(values, 0.1), _quantile(values, 0.9)
    deviation = MAD_TO_SIGMA * _quantile(sorted(abs(value - median) for value in values), 0.5)
    least = max(deviation, noise(median))
    down, up = max(least, (median - low) * DECILE_TO_SIGMA), max(least, (high - median) * DECILE_TO_SIGMA)
    return Usual(median, low, high, median - REACH * down, median + REACH * up, basis)


def _quantile(values: Sequence[float], share: float) -> float:
    """Of sorted values; the mean of the two nearest, where it lies between two."""
    place = share * (len(values) - 1)
    return (values[math.floor(place)] + values[math.ceil(place)]) / 2


def _volume(block: Block) -> float:
    return math.log1p(block.volume)


def _volume_noise(median: float, _block: Block) -> float:
    """Counts of independent events: one by the root of their number. A quarter less, a third more are usual."""
    return max(0.05, math.exp(-median / 2))


def _failing(block: Block) -> float | None:
    ended = block.delivered + block.failed
    return block.failed / ended if ended >= FEWEST else None


def _failing_noise(median: float, block: Block) -> float:
    ended = block.delivered + block.failed
    share = max(median, 1 / ended)
    return max(0.01, math.sqrt(share * (1 - share) / ended))


def _lag(block: Block) -> float | None:
    """Seconds on a scale that is straight up to about one and a logarithm beyond: 30 ms more is nothing."""
    return math.log1p(max(0, block.lag_p95_us) / 1_000_000) if block.arrived >= FEWEST else None


def _lag_noise(_median: float, _block: Block) -> float:
    """Where nothing is usual, from 2.3 s on it is unusual; where 10 s are, from 36 s on."""
    return 0.2


def number_text(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if value < 10 else f"{value:.0f}"


VOLUME: Final = Signal(
    "volume",
    _volume,
    _volume_noise,
    lambda value: number_text(math.expm1(value) * IN_HOUR / 60),
    "{seen} events/min where {usual} are usual {basis}",
)
FAILING: Final = Signal(
    "failures",
    _failing,
    _failing_noise,
    lambda value: f"{number_text(100 * value)} %",
    "{seen} of the messages failed where {usual} do {basis}",
)
LAG: Final = Signal(
    "lag",
    _lag,
    _lag_noise,
    lambda value: f"{number_text(math.expm1(value))} s",
    "a lag p95 of {seen} where {usual} is usual {basis}",
)
SIGNALS: Final = (VOLUME, FAILING, LAG)
