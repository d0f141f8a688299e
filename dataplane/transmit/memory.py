"""What this host remembers of units it has settled, so that reading a message twice does not send it twice.

Correctness never rests on it: only committed offsets do. It narrows what a crash repeats, of this lane or of the
process lane before it, to the sends that were in flight: a verdict is written to a file (the page cache survives a
killed process) before anything else follows from it, and is found again by whoever reads the partition next. While the
file cannot be written, verdicts are remembered in memory alone.
"""

import os
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from pyroaring import BitMap64

from dataplane.runtime.lines import append_to, read_lines, write_all
from dataplane.tables.optional_files import OptionalFiles

SEGMENT_ENTRIES: Final = 200_000  # two of them are kept: minutes at full speed, days at rest
VERDICTS: Final = "verdicts of settled units"


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
    """Some verdicts as sets."""

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
        self.entries = 0
        self.sets: dict[_Group, dict[tuple[str, str], BitMap64]] = defaultdict(lambda: defaultdict(BitMap64))
        for line in lines:
            with suppress(msgspec.DecodeError):  # what cannot be read is no verdict
                self.add(_decoder.decode(line))

    def add(self, entry: _Entry) -> None:
        group = (entry.pipe, entry.destination, entry.child, entry.attempt)
        self.sets[group][entry.fact, entry.detail].add(entry.position)
        self.entries += 1


class Memory:
    """The settled units of one input partition. `recall` before a send, `note` after a verdict, `flush` each turn."""

    def __init__(self, folder: Path, name: str, files: OptionalFiles) -> None:
        self._files = files
        self._new, self._old = folder / f"{name}.new", folder / f"{name}.old"
        self._segments = [_Segment(self._read(path)) for path in (self._new, self._old)]
        self._file: FileIO | None = None
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
        lines, self._lines = b"\n".join([*self._lines, b""]), []
        with self._files.attempt(VERDICTS):
            self._append(lines)
        if self._segments[0].entries >= SEGMENT_ENTRIES:
            self._rotate()

    def close(self) -> None:
        """Write what is left and close the file."""
        self.flush()
        self._let_go()

    def _append(self, lines: bytes) -> None:
        if self._file is None:
            self._new.parent.mkdir(parents=True, exist_ok=True)
            self._file = append_to(self._new)
        before = os.fstat(self._file.fileno()).st_size
        try:
            write_all(self._file, lines)
        except OSError:
            self._file.truncate(before)  # what comes next must not run on from a torn line
            raise

    def _rotate(self) -> None:
        self._segments = [_Segment(), self._segments[0]]
        self._let_go()
        with self._files.attempt(VERDICTS):
            os.replace(self._new, self._old)  # noqa: PTH105 (Path.replace would move our notion of the path too)

    def _let_go(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _read(self, path: Path) -> list[bytes]:
        """The verdicts in a file; a line that a crash cut off is none."""
        with self._files.attempt(VERDICTS):
            return read_lines(path)
        return []
