"""Shares of a source's events that have a field, a type of a field, or a value of a field; by block and by hour.

An hour also has the sketches of its numeric fields.

A key names what is counted: a field, a type of it, or a value of it. Its text form is stored in rows.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from msgspec import Struct, structs

from dataplane.ledger.fields import BODY, MOST_NUMBERS, FieldObservation
from dataplane.ledger.number_sketch import NumberSketch
from mgmt.patterns.blocks import IN_HOUR
from mgmt.patterns.usual import FULL

FEWEST_EVENTS: Final = 30  # sampled events that a block needs for its shares to be meaningful
MOST_KEYS: Final = 1_000  # of an hour; a block that exceeds it is ignored
MOST_NUMBER_FIELDS: Final = 2 * MOST_NUMBERS  # of an hour, as lanes may sketch different fields
STEPS: Final = 200  # a share is stored as 0 to STEPS
UNKNOWN: Final = 255
_APART: Final = "\x1f"  # separator; no name of a field contains it
FieldChange = Literal["", "type", "value", "closed"]


class FieldKey(NamedTuple):
    """A field (kind "": its presence), a type or a value of it.

    A key of kind `closed`, or `value` with "", is a veil: it marks where other keys could not be observed.
    """

    path: str
    kind: FieldChange = ""
    value: str = ""

    @property
    def text(self) -> str:
        """The text form of the key, as in rows."""
        return _APART.join(self) if self.kind else self.path

    @property
    def veils(self) -> Iterator[str]:
        """Yield the keys that mark where this one could not be observed."""
        if self.kind == "value":
            yield FieldKey(self.path, "value").text
        if self.path != BODY:
            yield FieldKey(BODY, "closed").text
            at = self.path.find(".")
            while at >= 0:
                yield FieldKey(self.path[:at], "closed").text
                at = self.path.find(".", at + 1)


def key_of(text: str) -> FieldKey:
    """Parse the text form of a key."""
    return FieldKey(*text.split(_APART, 2))  # type: ignore[arg-type]


class SourceShares(Struct, frozen=True):
    """Sample of a source's events in a block, of all writers.

    counts: events by key
    veiled: keys (`value` "", `closed`) that mark what could not be observed
    """

    events: int
    counts: dict[str, int]
    veiled: frozenset[str]

    @property
    def says(self) -> bool:
        """True if the sample is large enough to be meaningful, and small enough to be stored."""
        return self.events >= FEWEST_EVENTS and len(self.counts) + len(self.veiled) <= MOST_KEYS

    def share(self, key: str) -> float | None:
        """Return the share of the events with the key; None if it could not be observed.

        Fields whose paths have the same text count as one.
        """
        if self.veiled and not self.veiled.isdisjoint(key_of(key).veils):
            return None
        return min(1.0, self.counts.get(key, 0) / self.events)


def merged(samples: Iterable[FieldObservation]) -> SourceShares:
    """Merge the samples of several writers, in any order."""
    events, counts, veiled = 0, dict[str, int](), set[str]()
    for sample in samples:
        events += sample.events
        for one in sample.fields:
            found = {FieldKey(one.path).text: one.present}
            found |= {FieldKey(one.path, "type", name).text: count for name, count in one.types.items()}
            found |= {FieldKey(one.path, "value", name).text: count for name, count in (one.values or {}).items()}
            for key, count in found.items():
                counts[key] = counts.get(key, 0) + count
            if one.values is None:
                veiled.add(FieldKey(one.path, "value").text)
            if one.closed:
                veiled.add(FieldKey(one.path, "closed").text)
    return SourceShares(events, counts, frozenset(veiled))


class FieldShares(Struct, array_like=True, frozen=True):
    """Shares of an hour's blocks.

    sampled: one byte per block: 0 if it was sampled, else UNKNOWN
    rows:    by key, one byte per block: the share in STEPS, or UNKNOWN. A key without a row has 0 wherever it could be
             observed; rows of veils are 0 or UNKNOWN
    numbers: encoded NumberSketch of the hour by path of the field
    """

    sampled: bytes
    rows: dict[str, bytes]
    numbers: dict[str, bytes] = {}

    @property
    def is_full(self) -> bool:
        """True if enough blocks were sampled for the hour to count."""
        return self.sampled.count(0) >= FULL

    def row(self, key: str) -> bytes:
        """Return the key's share in each block, as bytes."""
        known = self.rows.get(key)
        if known is not None:
            return known
        veils = [self.rows[veil] for veil in key_of(key).veils if veil in self.rows]
        return bytes(map(max, self.sampled, *veils)) if veils else self.sampled


EMPTY: Final = FieldShares(bytes([UNKNOWN]) * IN_HOUR, {})


def with_sample(hour: FieldShares | None, place: int, sample: SourceShares) -> FieldShares:
    """Return the hour with one more block; unchanged if the block is too small or has too many keys."""
    before = hour or EMPTY
    keys = {*before.rows, *sample.counts, *sample.veiled}
    if not sample.says or len(keys) > MOST_KEYS:
        return before
    rows = {key: _put(before.row(key), place, _step(sample, key)) for key in keys}
    return FieldShares(_put(before.sampled, place, 0), rows, before.numbers)


def numbers_of(samples: Iterable[FieldObservation]) -> dict[str, NumberSketch]:
    """Merge the sketches of numeric fields of several writers, by path."""
    found: dict[str, NumberSketch] = {}
    for sample in samples:
        for one in sample.fields:
            if one.numbers is not None:
                found.setdefault(one.path, NumberSketch()).merge(NumberSketch.decode(one.numbers))
    return found


def with_numbers(hour: FieldShares | None, block: Mapping[str, NumberSketch]) -> FieldShares:
    """Return the hour with the numbers of one more block, of at most MOST_NUMBER_FIELDS fields."""
    before = hour or EMPTY
    numbers = dict(before.numbers)
    for path, sketch in block.items():
        if path in numbers or len(numbers) < MOST_NUMBER_FIELDS:
            whole = NumberSketch.decode(numbers[path]) if path in numbers else NumberSketch()
            whole.merge(sketch)
            numbers[path] = whole.encode()
    return structs.replace(before, numbers=numbers)


def _step(sample: SourceShares, key: str) -> int:
    if key in sample.veiled:
        return UNKNOWN
    share = sample.share(key)
    return UNKNOWN if share is None else round(share * STEPS)


def _put(row: bytes, index: int, value: int) -> bytes:
    return row[:index] + bytes([value]) + row[index + 1 :]
