"""Store of recently settled units on this host, so that a message that is read twice is not sent twice.

Correctness never depends on this store, only on committed offsets. The store limits the repeats after a crash of this
lane, or of the process lane before it, to the sends that were in flight: a verdict is written to a file (the page cache
survives a killed process) before anything else follows from it, and the next lane on this host that reads the partition
finds it. While the file cannot be written, verdicts are kept in memory only.
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

from dataplane.runtime.line_files import append_to, read_lines, write_all
from dataplane.tables.optional_files import OptionalFiles

SEGMENT_ENTRIES: Final = 200_000  # two segments are kept: minutes at full speed, days when idle
VERDICTS: Final = "verdicts of settled units"


class UnitRound(NamedTuple):
    """One unit in one round; a retry or redrive starts a new round, which is sent again.

    account: the pipe's id, or the replay's for a copy that a replay made, which is another unit than its original
    """

    account: str
    destination: str
    child: int
    attempt: int
    position: int


class _Entry(msgspec.Struct, array_like=True):
    """Line of the file, a JSON array: the order of the fields is its format, which earlier releases read and write."""

    account: str
    destination: str
    child: int
    attempt: int
    position: int
    fact: str
    detail: str


_decoder = msgspec.json.Decoder(_Entry)
_encode = msgspec.json.Encoder().encode
_Group = tuple[str, str, int, int]  # account, destination, child, attempt
_NOTHING: Final[dict[tuple[str, str], BitMap64]] = {}


class _Segment:
    """One segment of verdicts, as sets of positions."""

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
        self.entries = 0
        self.sets: dict[_Group, dict[tuple[str, str], BitMap64]] = defaultdict(lambda: defaultdict(BitMap64))
        for line in lines:
            with suppress(msgspec.DecodeError):  # an unreadable line counts as no verdict
                entry = _decoder.decode(line)
                group = (entry.account, entry.destination, entry.child, entry.attempt)
                self.add(group, (entry.fact, entry.detail), entry.position)

    def add(self, group: _Group, settled: tuple[str, str], position: int) -> None:
        self.sets[group][settled].add(position)
        self.entries += 1


class SettledUnits:
    """Settled units of one input partition: `recall` before a send, `note` after a verdict, `flush` on every pass."""

    def __init__(self, folder: Path, name: str, files: OptionalFiles) -> None:
        self._files = files
        self._new, self._old = folder / f"{name}.new", folder / f"{name}.old"
        self._segments = [_Segment(self._read(path)) for path in (self._new, self._old)]
        self._file: FileIO | None = None
        self._lines: list[bytes] = []

    def recall(self, unit: UnitRound) -> tuple[str, str] | None:
        """Return the (fact, detail) with which this unit was settled, or None."""
        group, position = unit[:4], unit.position
        for segment in self._segments:
            for settled, positions in segment.sets.get(group, _NOTHING).items():
                if position in positions:
                    return settled
        return None

    def note(self, unit: UnitRound, fact: str, detail: str) -> None:
        """Record that this unit is settled; `flush` writes it to the file. A hot path: the line is an _Entry's."""
        settled = (fact, detail)
        self._segments[0].add(unit[:4], settled, unit.position)
        self._lines.append(_encode(unit + settled))

    def flush(self) -> None:
        """Write the verdicts noted since the last call, all in one write; the operating system flushes them to disk."""
        if not self._lines:
            return
        lines, self._lines = b"\n".join([*self._lines, b""]), []
        with self._files.attempt(VERDICTS):
            self._append(lines)
        if self._segments[0].entries >= SEGMENT_ENTRIES:
            self._rotate()

    def close(self) -> None:
        """Write the remaining verdicts and close the file."""
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
            self._file.truncate(before)  # the next line must not continue a torn one
            raise

    def _rotate(self) -> None:
        self._segments = [_Segment(), self._segments[0]]
        self._let_go()
        with self._files.attempt(VERDICTS):
            os.replace(self._new, self._old)  # noqa: PTH105 (Path.replace returns a new path, which is not needed)

    def _let_go(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _read(self, path: Path) -> list[bytes]:
        """Return the lines of a file, without a last line that a crash cut off."""
        with self._files.attempt(VERDICTS):
            return read_lines(path)
        return []
