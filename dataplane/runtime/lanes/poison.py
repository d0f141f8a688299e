"""Detection of poison messages: a message that crashes every lane that processes it is found and dead-lettered.

A lane that crashes leaves its committed offset unchanged, and the next one reads the same messages. After the third
restart at one committed offset messages are processed one at a time, each recorded before it is passed to the work; one
that crashed a lane twice, alone, is dead-lettered. Twice, because the first crash may have been a SIGKILL by hand.

The record is a file per (topic, partition) on this host; correctness never depends on it. If the lanes run on several
hosts in turn, each host counts separately, which takes longer and has the same result.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from dataplane.tables.optional_files import OptionalFiles

CRASHES_DETAIL: Final = "crashed its lane more than once while it was processed alone"
NOTES: Final = "notes of lanes that died"
RESTARTS: Final = 3
DEATHS: Final = 2
STABLE_S: Final = 60.0  # a lane that ran so long after it opened a partition was not crashed by its first messages


class CrashRecord(msgspec.Struct, frozen=True):
    """Crash history of one partition, as the last lane that opened it left it. Pure: changes return a new record."""

    offset: int  # first offset that was read: the committed one
    at_s: float  # Unix time at which the partition was opened, or a message was last processed alone
    starts: int = 1  # consecutive starts at that offset
    reach: int = -1  # highest offset passed to the work in any of them
    trial: int = -1  # offset that is processed alone now
    deaths: dict[int, int] = {}  # number of crashes by offset processed alone

    @property
    def is_wary(self) -> bool:
        """True if the next lane may have to process messages one at a time."""
        return self.trial >= 0 or self.starts >= RESTARTS

    @property
    def is_careful(self) -> bool:
        """True if messages are processed one at a time now."""
        return self.starts > RESTARTS

    def condemns(self, offset: int) -> bool:
        """Return True if this message has crashed lanes often enough to be dead-lettered."""
        return self.deaths.get(offset, 0) >= DEATHS

    def handed(self, offset: int) -> "CrashRecord":
        """Return the record after a message was passed to the work with others."""
        return msgspec.structs.replace(self, reach=max(self.reach, offset))

    def tried(self, offset: int, now_s: float) -> "CrashRecord":
        """Return the record for a message that is about to be processed alone."""
        return msgspec.structs.replace(self, trial=offset, at_s=now_s)

    def survived(self, now_s: float) -> "CrashRecord":
        """Return the record after a message was processed alone without a crash.

        Beyond the highest offset that crashed lanes had reached, the record starts over.
        """
        if self.trial >= self.reach:
            return CrashRecord(self.trial + 1, now_s)
        return msgspec.structs.replace(self, trial=-1, at_s=now_s)


def opened(note: CrashRecord | None, offset: int, now_s: float) -> CrashRecord:
    """Return the record for a partition whose first message is at `offset`; `note` is the stored one, if any."""
    if note is None or now_s - note.at_s > STABLE_S:
        return CrashRecord(offset, now_s)
    if note.trial >= offset:
        deaths = {**note.deaths, note.trial: note.deaths.get(note.trial, 0) + 1}
        starts = max(note.starts, RESTARTS) + 1
        return CrashRecord(offset, now_s, starts, note.reach, deaths=deaths)
    if note.offset == offset or any(suspect >= offset for suspect in note.deaths):
        return msgspec.structs.replace(note, offset=offset, at_s=now_s, starts=note.starts + 1, trial=-1)
    return CrashRecord(offset, now_s)


class PoisonTracker:
    """Crash records of a lane's partitions. `now_s` is Unix time, which also advances while no lane runs."""

    def __init__(self, folder: Path, files: OptionalFiles) -> None:
        self._folder = folder
        self._files = files
        self._found: dict[str, CrashRecord] = {}
        self._notes: dict[str, CrashRecord] = {}
        self._unwritten: set[str] = set()  # records that could not be written
        self.is_careful = False  # process messages one at a time
        self.is_alert = False  # a lane has crashed here before: record the offsets passed to the work

    def assigned(self, names: Iterable[str], now_s: float) -> None:
        """Read the stored records of newly assigned partitions."""
        for name in names:
            note = self._read(name)
            if note is not None and now_s - note.at_s <= STABLE_S:
                self._found[name] = note
        self._look()

    def opened(self, name: str, offset: int, now_s: float) -> None:
        """Update a partition's record when its first message is read."""
        self._note(name, opened(self._found.pop(name, None), offset, now_s))

    def handed(self, name: str, offset: int) -> None:
        """Record that messages up to this offset are passed to the work together, if a lane has crashed here before."""
        note = self._notes.get(name)
        if note is not None and note.starts > 1 and offset > note.reach:
            self._note(name, note.handed(offset))

    def try_alone(self, name: str, offset: int, now_s: float) -> bool:
        """Record that a message is processed alone; return False if it must be dead-lettered instead."""
        note = self._notes[name]
        if note.condemns(offset):
            return False
        self._note(name, note.tried(offset, now_s))
        return True

    def survived(self, name: str, now_s: float) -> None:
        """Record that the message that was processed alone caused no crash."""
        if name in self._notes:
            self._note(name, self._notes[name].survived(now_s))

    def expire(self, now_s: float) -> None:
        """Drop records of partitions that were never opened, after STABLE_S; retry writes that failed."""
        for name in [name for name, note in self._found.items() if now_s - note.at_s > STABLE_S]:
            del self._found[name]
        for name in list(self._unwritten):
            self._write(name)
        self._look()

    def let_go(self, name: str) -> None:
        """Delete the record of a partition that is released in order, without a crash."""
        if self._notes.pop(name, None) is not None:
            self._unwritten.discard(name)
            with self._files.attempt(NOTES):
                (self._folder / name).unlink(missing_ok=True)
        self.lost(name)

    def lost(self, name: str) -> None:
        """Forget a partition that another lane already owns, and leave its record to that lane."""
        self._found.pop(name, None)
        self._notes.pop(name, None)
        self._unwritten.discard(name)
        self._look()

    def close(self) -> None:
        """Delete all records: the lane ends without a crash."""
        for name in list(self._notes):
            self.let_go(name)

    def abandon(self) -> None:
        """Keep all records on disk: the lane ends by an unexpected error, which counts as a crash."""
        self._found.clear()
        self._notes.clear()
        self._unwritten.clear()

    def _note(self, name: str, note: CrashRecord) -> None:
        self._notes[name] = note
        self._unwritten.add(name)
        self._write(name)
        self._look()

    def _write(self, name: str) -> None:
        path = self._folder / name
        scratch = path.with_name(f".{name}.{os.getpid()}")
        with self._files.attempt(NOTES):
            self._folder.mkdir(parents=True, exist_ok=True)
            scratch.write_bytes(msgspec.json.encode(self._notes[name]))
            scratch.replace(path)
            self._unwritten.discard(name)

    def _read(self, name: str) -> CrashRecord | None:
        found = b""
        with self._files.attempt(NOTES), suppress(FileNotFoundError):
            found = (self._folder / name).read_bytes()
        try:
            return msgspec.json.decode(found, type=CrashRecord)
        except msgspec.DecodeError:
            return None

    def _look(self) -> None:
        found = any(note.is_wary for note in self._found.values())
        self.is_careful = found or any(note.is_careful for note in self._notes.values())
        self.is_alert = any(note.starts > 1 for note in self._notes.values())
