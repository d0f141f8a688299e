"""Shares: of a source's events that have a field, have it in a type, or with a value; by block, and the hours kept.

What is counted is named by a key, a text that also stands in rows: a field, a type of it, or a value of it.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from dataplane.ledger.fields import BODY, FieldSample
from mgmt.patterns.blocks import IN_HOUR
from mgmt.patterns.usual import FULL

FEWEST_EVENTS: Final = 30  # looked at, in a block that says something about shares
MOST_KEYS: Final = 1_000  # of an hour; a block that brings more says nothing
STEPS: Final = 200  # a share is kept in so many steps
UNKNOWN: Final = 255
_APART: Final = "\x1f"  # no name of a field holds it
Kind = Literal["", "type", "value", "closed"]


class Key(NamedTuple):
    """A field ("": whether it is there), a type of it, or a value. Of `value` "" and `closed`: where nobody knows."""

    path: str
    kind: Kind = ""
    value: str = ""

    @property
    def text(self) -> str:
        """As it stands in rows."""
        return _APART.join(self) if self.kind else self.path

    @property
    def veils(self) -> Iterator[str]:
        """Keys that say where this one could not be seen."""
        if self.kind == "value":
            yield Key(self.path, "value").text
        if self.path != BODY:
            yield Key(BODY, "closed").text
            at = self.path.find(".")
            while at >= 0:
                yield Key(self.path[:at], "closed").text
                at = self.path.find(".", at + 1)


def key_of(text: str) -> Key:
    """The key of a text."""
    return Key(*text.split(_APART, 2))  # type: ignore[arg-type]


class Sample(Struct, frozen=True):
    """A source's events that were looked at in a block, by all writers.

    counts: events by key
    veiled: keys (`value` "", `closed`) that say what could not be seen
    """

    events: int
    counts: dict[str, int]
    veiled: frozenset[str]

    @property
    def says(self) -> bool:
        """Whether it is large enough to say something, and not too large to be kept."""
        return self.events >= FEWEST_EVENTS and len(self.counts) + len(self.veiled) <= MOST_KEYS

    def share(self, key: str) -> float | None:
        """Of the events; None if that could not be seen. Fields whose paths read the same count as one."""
        if self.veiled and not self.veiled.isdisjoint(key_of(key).veils):
            return None
        return min(1.0, self.counts.get(key, 0) / self.events)


def merged(samples: Iterable[FieldSample]) -> Sample:
    """What several writers saw, in whatever order."""
    events, counts, veiled = 0, dict[str, int](), set[str]()
    for sample in samples:
        events += sample.events
        for one in sample.fields:
            found = {Key(one.path).text: one.present}
            found |= {Key(one.path, "type", name).text: count for name, count in one.types.items()}
            found |= {Key(one.path, "value", name).text: count for name, count in (one.values or {}).items()}
            for key, count in found.items():
                counts[key] = counts.get(key, 0) + count
            if one.values is None:
                veiled.add(Key(one.path, "value").text)
            if one.closed:
                veiled.add(Key(one.path, "closed").text)
    return Sample(events, counts, frozenset(veiled))


class FieldHour(Struct, array_like=True, frozen=True):
    """The shares of an hour's blocks.

    heard: a byte for each block, 0 or UNKNOWN
    rows:  by key a byte for each block: the share in STEPS, or UNKNOWN. A key without a row has 0 wherever it could
           be seen; rows of veils are 0 or UNKNOWN
    """

    heard: bytes
    rows: dict[str, bytes]

    @property
    def is_full(self) -> bool:
        """Whether it counts."""
        return self.heard.count(0) >= FULL

    def row(self, key: str) -> bytes:
        """The key's share in each block."""
        known = self.rows.get(key)
        if known is not None:
            return known
        veils = [self.rows[veil] for veil in key_of(key).veils if veil in self.rows]
        return bytes(map(max, self.heard, *veils)) if veils else self.heard


EMPTY: Final = FieldHour(bytes([UNKNOWN]) * IN_HOUR, {})


def with_sample(hour: FieldHour | None, place: int, sample: Sample) -> FieldHour:
    """The hour with one block more; it says nothing of a block that is not worth keeping."""
    before = hour or EMPTY
    keys = {*before.rows, *sample.counts, *sample.veiled}
    if not sample.says or len(keys) > MOST_KEYS:
        return before
    rows = {key: _put(before.row(key), place, _step(sample, key)) for key in keys}
    return FieldHour(_put(before.heard, place, 0), rows)


def _step(sample: Sample, key: str) -> int:
    if key in sample.veiled:
        return UNKNOWN
    share = sample.share(key)
    return UNKNOWN if share is None else round(share * STEPS)


def _put(row: bytes, place: int, value: int) -> bytes:
    return row[:place] + bytes([value]) + row[place + 1 :]
