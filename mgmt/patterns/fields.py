"""Which shares of a source's fields a block has beyond the usual, and what follows for a pipe: one finding of a kind.

A share is judged as other signals are, with the noise of a sample; what was so yesterday at this hour is no news. Of a
field that is there more or less often than usual types and values are not judged: they follow from that.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from mgmt.patterns.blocks import DAY_H
from mgmt.patterns.judge import Watch, follow
from mgmt.patterns.shares import STEPS, UNKNOWN, FieldHour, Key, Sample, key_of
from mgmt.patterns.usual import LEAST_BLOCKS, REACH, Usual, hours_to_compare, number_text, usual_among

Drift = Literal["missing", "new", "type", "skew"]
DRIFTS: Final[Sequence[Drift]] = ("missing", "new", "type", "skew")
LEAST_NOISE: Final = 0.02  # so a share that changes by less than 12 points is never told
MOST_WATCHED: Final = 200  # of a kind
LONGEST_PATH: Final = 40
_FLOOR: Final = REACH * LEAST_NOISE * STEPS
_UNKNOWN: Final = bytes([UNKNOWN])
_APART: Final = "\x1e"  # no name of a source or a field holds it
_A: Final[Mapping[str, str]] = {"object": "an object", "array": "an array", "null": "null", "no JSON": "no JSON"}


class Odd(Struct, frozen=True):
    """A share beyond the usual."""

    key: Key
    share: float
    usual: Usual

    @property
    def drift(self) -> Drift | None:
        """What kind of finding it is; of a type that comes less often none: another does more often."""
        high = self.share > self.usual.above
        if self.key.kind == "value":
            return "skew"
        if self.key.kind == "type":
            return "type" if high else None
        return "new" if high else "missing"

    def words(self, source: str) -> str:
        """What is seen and what is usual, in one sentence."""
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


class Drifts(NamedTuple):
    """What a block of one source shows. `inside`: keys that are as usual; of keys in neither nothing can be said."""

    odd: Mapping[str, Odd]
    inside: frozenset[str]


NOTHING: Final = Drifts({}, frozenset())


class Watched(NamedTuple):
    """What a kind has become with a block.

    keys:  what is watched, by place
    whole: as one watch; None if there is nothing to remember
    words: what is told of it, "" if nothing of it can be seen now
    """

    keys: Mapping[str, Watch]
    whole: Watch | None
    words: str


def read_fields(sample: Sample, known: Mapping[int, FieldHour], hour: int, watched: Iterable[str] = ()) -> Drifts:
    """What a block shows beside the hours that are known. `watched`: keys to look at, wherever they come."""
    compared, basis = hours_to_compare(known, hour, lambda kept: kept.is_full)
    if not compared or not sample.says:
        return NOTHING
    yesterday = [known[hour - DAY_H]] if hour - DAY_H in known else []
    keys = {key for kept in compared for key in kept.rows} | sample.counts.keys() | set(watched)
    odd: dict[str, Odd] = {}
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
    return Drifts(odd, frozenset(inside))


def follow_drift(
    drift: Drift,
    before: Mapping[str, Watch],
    number: int,
    sources: Mapping[str, Drifts],
    silenced: Mapping[str, str],
    *,
    known: bool,
) -> Watched:
    """What becomes of a kind at a pipe with block `number`.

    sources:  what each source showed; of others nothing can be said
    silenced: what explains it, by source
    known:    whether it is told or silenced already: then there is an end to be told
    """
    odd = {
        place_of(source, text): (source, one)
        for source, shown in sources.items()
        for text, one in shown.odd.items()
        if one.drift == drift
    }
    inside = {place for place in before if place not in odd and _is_inside(place, sources)}
    after: dict[str, Watch] = {}
    for place in [*before, *(place for place in odd if place not in before)][:MOST_WATCHED]:
        shows = True if place in odd else False if place in inside else None
        watch = follow(before.get(place), number, shows=shows, silenced=silenced.get(place.split(_APART)[0], ""))
        if watch and not watch.over:
            after[place] = watch
    return Watched(after, _whole(after.values(), number, known=known), _words(odd, after))


def place_of(source: str, key: str) -> str:
    """How a source's key is named among those of its pipe."""
    return f"{source}{_APART}{key}"


def watched_of(source: str, places: Iterable[str]) -> list[str]:
    """The keys among them that are a source's."""
    return [key for owner, _, key in (place.partition(_APART) for place in places) if owner == source]


def _is_inside(place: str, sources: Mapping[str, Drifts]) -> bool:
    source, _, key = place.partition(_APART)
    shown = sources.get(source, NOTHING)
    return key in shown.inside or key in shown.odd  # odd the other way round, if it comes to that


def _fields_first(text: str) -> tuple[bool, str]:
    return (key_of(text).kind != "", text)


def _is_veil(key: Key) -> bool:
    return key.kind == "closed" or (key.kind == "value" and not key.value)


def _steps(text: str, hours: Iterable[FieldHour]) -> list[int]:
    """What is known of the share in these hours, sorted."""
    return sorted(b"".join([kept.row(text) for kept in hours]).replace(_UNKNOWN, b""))


def _odd(key: Key, share: float, steps: Sequence[int], basis: str, events: int) -> Odd | None:
    """None if the share is usual, or too little is known to say."""
    if not steps or abs(share * STEPS - steps[len(steps) // 2]) <= _FLOOR:
        return None  # nearly all are: no need to look closer
    usual = _usual(steps, basis, events)
    return Odd(key, share, usual) if usual and not usual.below <= share <= usual.above else None


def _usual(steps: Sequence[int], basis: str, events: int) -> Usual | None:
    return usual_among([step / STEPS for step in steps], basis, lambda median: _noise(median, events))


def _was_so(key: Key, share: float, steps: Sequence[int], events: int) -> bool:
    return len(steps) >= LEAST_BLOCKS and _odd(key, share, steps, "", events) is None


def _noise(median: float, events: int) -> float:
    """Of a share in a sample, by a median that may be 0 or 1 by chance (one event more on either side)."""
    share = (median * events + 1) / (events + 2)
    return max(LEAST_NOISE, math.sqrt(share * (1 - share) / events))


def _whole(watches: Iterable[Watch], number: int, *, known: bool) -> Watch | None:
    """Told if one is told, silenced if one is; over if it was known and none is left."""
    left = list(watches)
    shown = [one for one in left if one.told] or [one for one in left if one.silenced]
    if not shown and known:
        return Watch(number, over=True)
    if not left:
        return None
    told = any(one.told for one in shown)
    silenced = next((one.silenced for one in shown if one.silenced), "")
    return Watch(min(one.since for one in shown or left), told=told, silenced=silenced)


def _words(odd: Mapping[str, tuple[str, Odd]], watches: Mapping[str, Watch]) -> str:
    """The field that has changed most, and how many more there are."""
    told = [place for place, watch in watches.items() if watch.told] or list(watches)
    seen = sorted((odd[place] for place in told if place in odd), key=_by_weight)
    if not seen:
        return ""
    source, first = seen[0]
    more = len(told) - 1
    return first.words(source) + (f", and {more} more" if more else "")


def _by_weight(one: tuple[str, Odd]) -> tuple[float, int, str]:
    _, odd = one
    return (-round(abs(odd.share - odd.usual.median), 1), odd.key.path.count("."), odd.key.text)


def _percent(share: float) -> str:
    return f"{number_text(100 * share)} %"
