"""Unusual shares of a source's fields in a block, and the findings of a pipe that follow: one per kind of drift.

A share is judged like the other signals, with the noise of a sample; a share that was the same yesterday at this hour
is not reported. The types and values of a field that is itself missing or new are not judged, as they follow from that.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from mgmt.patterns.blocks import DAY_H
from mgmt.patterns.judge import PatternStreak, follow
from mgmt.patterns.shares import STEPS, UNKNOWN, FieldKey, FieldShares, SourceShares, key_of
from mgmt.patterns.usual import LEAST_BLOCKS, REACH, UsualRange, hours_to_compare, number_text, usual_among

Drift = Literal["missing", "new", "type", "skew"]
DRIFTS: Final[Sequence[Drift]] = ("missing", "new", "type", "skew")
LEAST_NOISE: Final = 0.02  # so a change of a share by less than 12 points is never reported
MOST_WATCHED: Final = 200  # keys of one kind of drift
LONGEST_PATH: Final = 40
_FLOOR: Final = REACH * LEAST_NOISE * STEPS
_UNKNOWN: Final = bytes([UNKNOWN])
_APART: Final = "\x1e"  # separator; no name of a source or a field contains it
_A: Final[Mapping[str, str]] = {"object": "an object", "array": "an array", "null": "null", "no JSON": "no JSON"}


class UnusualShare(Struct, frozen=True):
    """A share outside the usual range."""

    key: FieldKey
    share: float
    usual: UsualRange

    @property
    def drift(self) -> Drift | None:
        """The kind of finding; None for a type that became rarer, because another type then became more frequent."""
        high = self.share > self.usual.above
        if self.key.kind == "value":
            return "skew"
        if self.key.kind == "type":
            return "type" if high else None
        return "new" if high else "missing"

    def words(self, source: str) -> str:
        """Return a sentence with the measured share and the usual one."""
        low, high = _percent(self.usual.low), _percent(self.usual.high)
        usual = low if low == high else f"{low} to {high}"
        return f"{self._what(source)} in {_percent(self.share)} of the events where {usual} is usual {self.usual.basis}"

    def _what(self, source: str) -> str:
        path, kind, value = self.key
        if len(path) > LONGEST_PATH:
            path = f"{path[: LONGEST_PATH // 2]}…{path[-LONGEST_PATH // 2 :]}"
        field = f"{'the whole event' if path == '$' else f'field {path}'} of source {source}"
        if not kind:
            return field
        return f"{field} is {value if kind == 'value' else _A.get(value, f'a {value}')}"


class FieldDrifts(NamedTuple):
    """Judgement of a block of one source: unusual and usual keys; keys in neither could not be judged."""

    odd: Mapping[str, UnusualShare]
    inside: frozenset[str]


NOTHING: Final = FieldDrifts({}, frozenset())


class FieldStreak(NamedTuple):
    """State of one kind of drift after a block.

    keys:  streak of each watched key, by `place_of`
    whole: the streak of the kind; None if there is nothing to remember
    words: text of the finding; "" if none of its keys is unusual now
    """

    keys: Mapping[str, PatternStreak]
    whole: PatternStreak | None
    words: str


def read_fields(
    sample: SourceShares, known: Mapping[int, FieldShares], hour: int, watched: Iterable[str] = ()
) -> FieldDrifts:
    """Judge a block by the known hours. `watched`: keys to judge in addition to those of the block and the hours."""
    compared, basis = hours_to_compare(known, hour, lambda kept: kept.is_full)
    if not compared or not sample.says:
        return NOTHING
    yesterday = [known[hour - DAY_H]] if hour - DAY_H in known else []
    keys = {key for kept in compared for key in kept.rows} | sample.counts.keys() | set(watched)
    odd: dict[str, UnusualShare] = {}
    inside: set[str] = set()
    for text in sorted(keys, key=_fields_first):
        key, share = key_of(text), sample.share(text)
        steps = _steps(text, compared)
        if share is None or key.path in odd or _is_veil(key) or len(steps) < LEAST_BLOCKS:
            continue
        found = _odd(key, share, steps, basis, sample.events)
        if found and found.drift and not _was_so(key, share, _steps(text, yesterday), sample.events):
            odd[text] = found
        else:
            inside.add(text)
    return FieldDrifts(odd, frozenset(inside))


def follow_drift(
    drift: Drift,
    before: Mapping[str, PatternStreak],
    number: int,
    sources: Mapping[str, FieldDrifts],
    silenced: Mapping[str, str],
    *,
    known: bool,
) -> FieldStreak:
    """Return the state of one kind of drift of a pipe after block `number`.

    sources:  judgement of each source; other sources could not be judged
    silenced: change that explains the drift, by source
    known:    True if the drift is reported or silenced already, so that its end must be reported
    """
    odd = {
        place_of(source, text): (source, one)
        for source, shown in sources.items()
        for text, one in shown.odd.items()
        if one.drift == drift
    }
    inside = {place for place in before if place not in odd and _is_inside(place, sources)}
    after: dict[str, PatternStreak] = {}
    for place in [*before, *(place for place in odd if place not in before)][:MOST_WATCHED]:
        shows = True if place in odd else False if place in inside else None
        watch = follow(before.get(place), number, shows=shows, silenced=silenced.get(place.split(_APART)[0], ""))
        if watch and not watch.over:
            after[place] = watch
    return FieldStreak(after, _whole(after.values(), number, known=known), _words(odd, after))


def place_of(source: str, key: str) -> str:
    """Return the name of a source's key within its pipe."""
    return f"{source}{_APART}{key}"


def watched_of(source: str, places: Iterable[str]) -> list[str]:
    """Return the keys of one source from names of `place_of`."""
    return [key for owner, _, key in (place.partition(_APART) for place in places) if owner == source]


def _is_inside(place: str, sources: Mapping[str, FieldDrifts]) -> bool:
    source, _, key = place.partition(_APART)
    shown = sources.get(source, NOTHING)
    return key in shown.inside or key in shown.odd  # unusual in the other direction also ends this drift


def _fields_first(text: str) -> tuple[bool, str]:
    return (key_of(text).kind != "", text)


def _is_veil(key: FieldKey) -> bool:
    return key.kind == "closed" or (key.kind == "value" and not key.value)


def _steps(text: str, hours: Iterable[FieldShares]) -> list[int]:
    """Return the known values of the share in these hours, sorted."""
    return sorted(b"".join([kept.row(text) for kept in hours]).replace(_UNKNOWN, b""))


def _odd(key: FieldKey, share: float, steps: Sequence[int], basis: str, events: int) -> UnusualShare | None:
    """Return the unusual share; None if it is usual, or too little is known."""
    if not steps or abs(share * STEPS - steps[len(steps) // 2]) <= _FLOOR:
        return None  # a cheap test that ends nearly all cases
    usual = _usual(steps, basis, events)
    return UnusualShare(key, share, usual) if usual and not usual.below <= share <= usual.above else None


def _usual(steps: Sequence[int], basis: str, events: int) -> UsualRange | None:
    return usual_among([step / STEPS for step in steps], basis, lambda median: _noise(median, events))


def _was_so(key: FieldKey, share: float, steps: Sequence[int], events: int) -> bool:
    return len(steps) >= LEAST_BLOCKS and _odd(key, share, steps, "", events) is None


def _noise(median: float, events: int) -> float:
    """Return the noise of a share in a sample. Adds one event on either side, as the median may be 0 or 1 by chance."""
    share = (median * events + 1) / (events + 2)
    return max(LEAST_NOISE, math.sqrt(share * (1 - share) / events))


def _whole(watches: Iterable[PatternStreak], number: int, *, known: bool) -> PatternStreak | None:
    """Merge the streaks of all keys: reported if one is, silenced if one is, over if it was known and none is left."""
    left = list(watches)
    shown = [one for one in left if one.told] or [one for one in left if one.silenced]
    if not shown and known:
        return PatternStreak(number, over=True)
    if not left:
        return None
    told = any(one.told for one in shown)
    silenced = next((one.silenced for one in shown if one.silenced), "")
    return PatternStreak(min(one.since for one in shown or left), told=told, silenced=silenced)


def _words(odd: Mapping[str, tuple[str, UnusualShare]], watches: Mapping[str, PatternStreak]) -> str:
    """Return the text for the field that has changed most, with the number of others."""
    told = [place for place, watch in watches.items() if watch.told] or list(watches)
    seen = sorted((odd[place] for place in told if place in odd), key=_by_weight)
    if not seen:
        return ""
    source, first = seen[0]
    more = len(told) - 1
    return first.words(source) + (f", and {more} more" if more else "")


def _by_weight(one: tuple[str, UnusualShare]) -> tuple[float, int, str]:
    _, odd = one
    return (-round(abs(odd.share - odd.usual.median), 1), odd.key.path.count("."), odd.key.text)


def _percent(share: float) -> str:
    return f"{number_text(100 * share)} %"
