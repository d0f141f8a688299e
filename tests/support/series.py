"""Figures of a series of measurements."""

import itertools
import statistics
from collections.abc import Iterable, Sequence


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile of at least two values."""
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def longest_gap(times: Iterable[int]) -> int:
    """Return the longest time between two neighbours of at least two times, in their unit."""
    return max(later - earlier for earlier, later in itertools.pairwise(sorted(times)))
