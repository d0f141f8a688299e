"""Figures of a series of measurements."""

import itertools
import statistics
from collections.abc import Iterable, Sequence


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile of at least two values."""
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def pauses_after(kills_us: Sequence[int], times_us: Sequence[int]) -> list[float]:
    """Return the longest time without an entry of `times_us` between each kill and the next one."""
    found = []
    for kill_us, end_us in zip(kills_us, [*kills_us[1:], max(times_us)], strict=True):
        found.append(longest_gap([kill_us, *(at_us for at_us in times_us if kill_us < at_us <= end_us)]) / 1e6)
    return found


def summary_of(pauses: Sequence[float]) -> str:
    """Return the percentiles of pauses in seconds, and each."""
    median, highest = statistics.median(pauses), max(pauses)
    return f"p50 {median:.2f}, p95 {p95(pauses):.2f}, max {highest:.2f} s; each {[round(one, 2) for one in pauses]}"


def longest_gap(times: Iterable[int]) -> int:
    """Return the longest time between two neighbours of at least two times, in their unit."""
    return max(later - earlier for earlier, later in itertools.pairwise(sorted(times)))
