"""What this host remembers of units it has settled, so that reading a message twice does not send it twice.

Correctness never rests on it: only committed offsets do. It narrows what a crash repeats, of this lane or of the
process lane before it, to the sends that were in flight: a verdict is written to a file (the page cache survives a
killed process) before anything else follows from it, and is found again by whoever reads the partition next.
"""

import os
from collections import defaultdict
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from pyroaring import BitMap64

from dataplane.runtime.lines import append_to, read_lines, write_all

SEGMENT_ENTRIES: Final = 200_000  # two of them are kept: minutes at full speed, days at rest


class Unit(NamedTuple):
    """One unit at one round of global retry; redrive and retry rounds are other units and are sent."""

    pipe: str
    destination: str
    child: int
    attempt: int
    position: int


class _Entry(msgspec.Struct, array_like=True):
    pipe: str
    destination: str
    child: int
    attempt: int
    position: int
    fact: str
    detail: str


_decoder = msgspec.json.Decoder(_Entry)
_encode = msgspec.json.Encoder().encode
_Group = tuple[str, str, int, int]  # pipe, destination, child, attempt
_NOTHING: Final[dict[tuple[str, str], BitMap64]] = {}


class _Segment:
    """One file of verdicts, and the same as sets."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.entries = 0
        self.sets: dict[_Group, dict[tuple[str, str], BitMap64]] = defaultdict(lambda: defaultdict(BitMap64))
        for line in read_lines(path):  # a line that a crash cut off is no verdict
            self.add(_decoder.decode(line))
        self._file = append_to(path)

    def add(self, entry: _Entry) -> None:
        group = (entry.pipe, entry.destination, entry.child, entry.attempt)
        self.sets[group][entry.fact, entry.detail].add(entry.position)
        self.entries += 1

    def write(self, lines: bytes) -> None:
        write_all(self._file, lines)

    def close(self) -> None:
        self._file.close()


class Memory:
    """The settled units of one input partition. `recall` before a send, `note` after a verdict, `flush` each turn."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._new, self._old = folder / f"{name}.new", folder / f"{name}.old"
        self._segments = [_Segment(path) for path in (self._new, self._old)]
        self._lines: list[bytes] = []

    def recall(self, unit: Unit) -> tuple[str, str] | None:
        """The (fact, detail) with which this unit was settled, or None."""
        group, position = unit[:4], unit.position
        for segment in self._segments:
            for settled, positions in segment.sets.get(group, _NOTHING).items():
                if position in positions:
                    return settled
        return None

    def note(self, unit: Unit, fact: str, detail: str) -> None:
        """This unit is settled."""
        entry = _Entry(unit.pipe, unit.destination, unit.child, unit.attempt, unit.position, fact, detail)
        self._segments[0].add(entry)
        self._lines.append(_encode(entry))

    def flush(self) -> None:
        """Hand the verdicts noted since the last time to the operating system: one write."""
        if not self._lines:
            return
        self._lines.append(b"")
        self._segments[0].write(b"\n".join(self._lines))
        self._lines.clear()
        if self._segments[0].entries >= SEGMENT_ENTRIES:
            self._rotate()

    def close(self) -> None:
        """Write what is left and close the files."""
        self.flush()
        for segment in self._segments:
            segment.close()

    def _rotate(self) -> None:
        self._segments[1].close()
        self._segments[0].close()
        os.replace(self._new, self._old)  # noqa: PTH105 (Path.replace would move our notion of the path too)
        self._segments = [_Segment(self._new), _Segment(self._old)]
