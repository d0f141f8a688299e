"""Drift of numeric fields: the newest values of a field against those of the same hour on earlier days. Pure.

The measure is the population stability index: the sum of (now - usual) * ln(now / usual) over ranges that each held
about a tenth of the usual values. Below 0.1 nothing changed, above 0.25 much did (Siddiqi, "Credit Risk
Scorecards", Wiley 2006). For n and m values of one distribution it is about chi-squared with a degree of freedom less
than there are ranges, times 1/n + 1/m (Yurdakul, Naranjo, "Statistical properties of the population stability index",
Journal of Risk Model Validation 14, 2020), so 0.25 is beyond chance with LEAST_NOW and LEAST_USUAL values.

Values of an hour often depend on each other, as those of one sender do, and some fields never repeat, as ids and times.
A field is therefore unusual only if its index is also REACH times above the highest one of its own last week.
A distribution that was the same yesterday at this hour is not unusual: a change that lasts is reported for a day.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from dataplane.ledger.number_sketch import NumberBin, NumberSketch
from mgmt.patterns.blocks import DAY_H, WEEK_H, hour_of
from mgmt.patterns.judge import PatternStreak, follow
from mgmt.patterns.usual import BASES, hours_to_compare

LEAST_NOW: Final = 200  # values of a window
LEAST_USUAL: Final = 400  # values of the hours that it is compared with, together
LEAST_OF_HOUR: Final = 100  # values with which an hour counts
WINDOW_BLOCKS: Final = 3  # of a window at least; it is longer until it has enough values, ...
MOST_BLOCKS: Final = 12  # ... but a longer one is dropped, as it cannot be compared with an hour
RANGES: Final = 10
SIGNIFICANT: Final = 0.25
REACH: Final = 2
LEAST_HOURS: Final = 24  # with an index that a field needs before it is judged
MOST_HOURS: Final = WEEK_H  # whose indexes are remembered
SEASONAL: Final = BASES[:2]  # the hours before say nothing about a daily cycle
NARROW: Final = 128  # a spread of less than 1/128 of the median is eight bins of a sketch
QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
_STEP: Final = 0.02  # of a stored index
_UNLIKE: Final = 255  # a stored index of values that do not repeat, such as ids: no window is unusual then
_NO_VALUE: Final = 0.5  # added to the count of each range, so that an empty one has a finite index


class NumberRange(Struct, frozen=True):
    """Range of values with its share of the usual ones and of those now; a border is None if there is none."""

    low: float | None
    high: float | None
    usual: float
    now: float


class NumberDrift(Struct, frozen=True):
    """Distribution of a field that is unusual. `usual`, `now`: the values at QUANTILES; `limit`: of the index."""

    index: float
    limit: float
    basis: str
    values: int
    usual_values: int
    usual: Sequence[float]
    now: Sequence[float]
    ranges: Sequence[NumberRange]


class NumberWatch(Struct, frozen=True, array_like=True):
    """State of a field between two blocks.

    window:  encoded sketch of the values since the block `since`; b"" without any
    indexes: highest stability index of the windows of an hour that were not unusual, one byte for each hour
    last:    index of the last usual window, remembered only if no unusual one follows; 0 without one
    hour:    hour of that window
    streak:  the field's streak of unusual windows, by their first blocks; None if the last ones were usual
    drift:   the last unusual window of the streak
    seen:    newest block with values
    """

    window: bytes = b""
    since: int = 0
    indexes: bytes = b""
    last: int = 0
    hour: int = 0
    streak: PatternStreak | None = None
    drift: NumberDrift | None = None
    seen: int = 0

    @property
    def told(self) -> NumberDrift | None:
        """The drift, once it lasted long enough to be reported."""
        return self.drift if self.streak and self.streak.told else None


def follow_numbers(
    before: NumberWatch, number: int, values: NumberSketch, known: Mapping[int, bytes], *, is_quiet: bool
) -> tuple[NumberWatch, bool]:
    """Return a field's state after block `number`, and True if a window ended with it.

    values:   the field's values in the block
    known:    encoded sketches of the field's values, by hour
    is_quiet: a change of the platform is in progress: the window is dropped, nothing starts and nothing ends
    """
    before = structs.replace(before, seen=number)
    if is_quiet:
        return structs.replace(before, window=b"", since=0), False
    is_new = not before.window or number - before.since >= MOST_BLOCKS
    since = number if is_new else before.since
    if not is_new:
        values.merge(NumberSketch.decode(before.window))
    if number - since + 1 < WINDOW_BLOCKS or values.count < LEAST_NOW:
        return structs.replace(before, window=values.encode(), since=since), False
    return _judged(before, since, hour_of(number), values, known), True


def _judged(before: NumberWatch, since: int, hour: int, now: NumberSketch, known: Mapping[int, bytes]) -> NumberWatch:
    after = structs.replace(before, window=b"", since=0)
    drift = drift_of(now, known, hour, limit_of(before.indexes))
    if drift is None:
        return after
    is_odd = len(before.indexes) >= LEAST_HOURS and drift.index > drift.limit
    streak = follow(before.streak, since, shows=is_odd, silenced="")
    if streak and streak.over:
        streak = None
    if streak is None:
        after = _with_index(after, hour, drift.index)
    return structs.replace(
        after,
        last=0 if is_odd else after.last,
        streak=streak,
        drift=drift if is_odd else before.drift if streak else None,
    )


def _with_index(watch: NumberWatch, hour: int, index: float) -> NumberWatch:
    """Remember the index of the window before, which no unusual window has followed, and keep this one for the next."""
    last = min(_UNLIKE, max(1, math.ceil(index / _STEP)))
    if not watch.last:
        return structs.replace(watch, last=last, hour=hour)
    if hour == watch.hour and watch.indexes:
        indexes = watch.indexes[:-1] + bytes([max(watch.last, watch.indexes[-1])])
    else:
        indexes = (watch.indexes + bytes([watch.last]))[-MOST_HOURS:]
    return structs.replace(watch, indexes=indexes, last=last, hour=hour)


def limit_of(indexes: bytes) -> float:
    """Return the index above which a window is unusual, given those of the last week; infinite if none can be."""
    highest = max(indexes, default=0)
    return math.inf if highest == _UNLIKE else max(SIGNIFICANT, REACH * _STEP * highest)


def drift_of(now: NumberSketch, known: Mapping[int, bytes], hour: int, limit: float) -> NumberDrift | None:
    """Compare values with those of the hours known for `hour`; None if these are too few.

    The distributions returned are those of the comparison with all hours; the index is that with yesterday, if that is
    lower.
    """
    sketches = {at: NumberSketch.decode(known[at]) for basis in SEASONAL for back in basis.back
                if (at := hour - back) in known}  # fmt: skip
    compared, basis = hours_to_compare(sketches, hour, lambda one: one.count >= LEAST_OF_HOUR, SEASONAL)
    usual = NumberSketch()
    for one in compared:
        usual.merge(one)
    if usual.count < LEAST_USUAL or (_is_narrow(usual) and _is_narrow(now)):
        return None
    ranges = ranges_of(usual, now)
    index = stability_index(ranges, usual.count, now.count)
    yesterday = sketches.get(hour - DAY_H)
    if yesterday and yesterday.count >= LEAST_NOW and index > SIGNIFICANT:
        index = min(index, stability_index(ranges_of(yesterday, now), yesterday.count, now.count))
    return NumberDrift(
        index,
        limit,
        basis,
        now.count,
        usual.count,
        [usual.quantile(q) for q in QUANTILES],
        [now.quantile(q) for q in QUANTILES],
        ranges,
    )


def _is_narrow(values: NumberSketch) -> bool:
    """Return True if the values differ by less than their sketch can show, as ids and times of some hours do."""
    low, middle, high = (values.quantile(q) for q in (0.1, 0.5, 0.9))
    return high - low < abs(middle) / NARROW


def stability_index(ranges: Sequence[NumberRange], usual: int, now: int) -> float:
    """Return the population stability index of shares of `usual` and `now` values."""

    def share(part: float, values: int) -> float:
        return (part * values + _NO_VALUE) / (values + _NO_VALUE * len(ranges))

    pairs = [(share(one.usual, usual), share(one.now, now)) for one in ranges]
    return sum((after - before) * math.log(after / before) for before, after in pairs)


def ranges_of(usual: NumberSketch, now: NumberSketch) -> list[NumberRange]:
    """Divide the numbers into ranges with about a tenth of the usual values each, one below and one above all."""
    shift = max(usual.shift, now.shift)
    groups = _groups(list(usual.at(shift).bins()), usual.count / RANGES)
    counts = [0] * (len(groups) + 2)
    lasts = [group[-1].low for group in groups]
    for one in now.at(shift).bins():
        counts[0 if one.low < groups[0][0].low else 1 + bisect_left(lasts, one.low)] += one.count
    shares = [sum(one.count for one in group) / usual.count for group in groups]
    lows = [None, *(group[0].low for group in groups), groups[-1][-1].high]
    highs = [groups[0][0].low, *(group[-1].high for group in groups), None]
    return [
        NumberRange(low, high, before, count / now.count)
        for low, high, before, count in zip(lows, highs, [0.0, *shares, 0.0], counts, strict=True)
    ]


def _groups(bins: Sequence[NumberBin], least: float) -> list[list[NumberBin]]:
    """Divide bins, in their order, into groups of at least `least` values; a small rest joins the last one."""
    groups: list[list[NumberBin]] = [[]]
    size = 0
    for one in bins:
        if size >= least:
            groups.append([])
            size = 0
        groups[-1].append(one)
        size += one.count
    if len(groups) > 1 and size < least / 2:
        groups[-2].extend(groups.pop())
    return groups
