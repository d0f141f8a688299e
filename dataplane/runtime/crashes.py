"""What a host remembers of lanes that died: so that a message which kills every lane that takes it is found and buried.

A lane that dies leaves its committed offset where it was, and the next one takes the same messages. After the third
restart at one committed offset messages are taken one at a time, each noted before it is handed over; one that a lane
died with twice, alone, is condemned. Twice, because the first time may have been somebody's SIGKILL.

The note is a file for each (topic, partition); correctness never rests on it. Lanes that live on several hosts in turn
count on each of them, which takes longer and comes to the same end.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from dataplane.tables.optional_files import OptionalFiles

CRASHES_LANE: Final = "crashes-lane"  # the cause of what is buried
CRASHES_DETAIL: Final = "lanes died of it, more than once, with nothing else under way"
NOTES: Final = "notes of lanes that died"
RESTARTS: Final = 3
DEATHS: Final = 2
STABLE_S: Final = 60.0  # a lane that lived so long after it opened a partition did not die of its first messages


class CrashNote(msgspec.Struct, frozen=True):
    """One partition, as the last lane that opened it left it. Pure: what to write next comes from what is read."""

    offset: int  # the first that was read: the committed one
    at_s: float  # seconds since the epoch: when it was opened, or something was last tried alone
    starts: int = 1  # openings in a row at that offset
    reach: int = -1  # the highest offset that was handed over in any of them
    trial: int = -1  # the offset that is with the work alone now
    deaths: dict[int, int] = {}  # offsets a lane died with, alone, and how often

    @property
    def is_wary(self) -> bool:
        """Whether the next lane may have to take messages one at a time."""
        return self.trial >= 0 or self.starts >= RESTARTS

    @property
    def is_careful(self) -> bool:
        """Whether messages are taken one at a time now."""
        return self.starts > RESTARTS

    def condemns(self, offset: int) -> bool:
        """Whether this message has killed often enough."""
        return self.deaths.get(offset, 0) >= DEATHS

    def handed(self, offset: int) -> "CrashNote":
        """A message went to the work with others."""
        return msgspec.structs.replace(self, reach=max(self.reach, offset))

    def tried(self, offset: int, now_s: float) -> "CrashNote":
        """A message is about to go to the work alone."""
        return msgspec.structs.replace(self, trial=offset, at_s=now_s)

    def survived(self, now_s: float) -> "CrashNote":
        """The message on trial did no harm; beyond the reach of those that died there is nothing to fear."""
        if self.trial >= self.reach:
            return CrashNote(self.trial + 1, now_s)
        return msgspec.structs.replace(self, trial=-1, at_s=now_s)


def opened(note: CrashNote | None, offset: int, now_s: float) -> CrashNote:
    """The note for a partition whose first message is at `offset`, from what was found (None if nothing was)."""
    if note is None or now_s - note.at_s > STABLE_S:
        return CrashNote(offset, now_s)
    if note.trial >= offset:
        deaths = {**note.deaths, note.trial: note.deaths.get(note.trial, 0) + 1}
        starts = max(note.starts, RESTARTS) + 1
        return CrashNote(offset, now_s, starts, note.reach, deaths=deaths)
    if note.offset == offset or any(suspect >= offset for suspect in note.deaths):
        return msgspec.structs.replace(note, offset=offset, at_s=now_s, starts=note.starts + 1, trial=-1)
    return CrashNote(offset, now_s)


class Crashes:
    """The notes of the partitions a lane holds. `now_s` is the wall clock: it goes on while nobody runs."""

    def __init__(self, folder: Path, files: OptionalFiles) -> None:
        self._folder = folder
        self._files = files
        self._found: dict[str, CrashNote] = {}
        self._notes: dict[str, CrashNote] = {}
        self._unwritten: set[str] = set()  # of these, what the disk did not take
        self.is_careful = False  # messages are to be taken one at a time
        self.is_alert = False  # a lane has died here before: what is handed over is noted

    def assigned(self, names: Iterable[str], now_s: float) -> None:
        """These partitions are ours now: read what was left about them."""
        for name in names:
            note = self._read(name)
            if note is not None and now_s - note.at_s <= STABLE_S:
                self._found[name] = note
        self._look()

    def opened(self, name: str, offset: int, now_s: float) -> None:
        """The first message of a partition came."""
        self._note(name, opened(self._found.pop(name, None), offset, now_s))

    def handed(self, name: str, offset: int) -> None:
        """Messages up to this one go to the work together. Noted only where a lane has died before."""
        note = self._notes.get(name)
        if note is not None and note.starts > 1 and offset > note.reach:
            self._note(name, note.handed(offset))

    def try_alone(self, name: str, offset: int, now_s: float) -> bool:
        """A message is to go to the work alone. False if it has killed often enough: bury it instead."""
        note = self._notes[name]
        if note.condemns(offset):
            return False
        self._note(name, note.tried(offset, now_s))
        return True

    def survived(self, name: str, now_s: float) -> None:
        """The message that was tried alone did no harm."""
        if name in self._notes:
            self._note(name, self._notes[name].survived(now_s))

    def expire(self, now_s: float) -> None:
        """Drop notes that were found and never opened, after a while; write again what the disk did not take."""
        for name in [name for name, note in self._found.items() if now_s - note.at_s > STABLE_S]:
            del self._found[name]
        for name in list(self._unwritten):
            self._write(name)
        self._look()

    def let_go(self, name: str) -> None:
        """We give the partition back in order: nobody died of it."""
        if self._notes.pop(name, None) is not None:
            self._unwritten.discard(name)
            with self._files.attempt(NOTES):
                (self._folder / name).unlink(missing_ok=True)
        self.lost(name)

    def lost(self, name: str) -> None:
        """The partition is somebody else's already, and so is its note."""
        self._found.pop(name, None)
        self._notes.pop(name, None)
        self._unwritten.discard(name)
        self._look()

    def close(self) -> None:
        """The lane ends by itself: whatever it holds, it did not die of it."""
        for name in list(self._notes):
            self.let_go(name)

    def abandon(self) -> None:
        """The lane ends by an error that nobody expected: the notes stay, as if its process had been killed."""
        self._found.clear()
        self._notes.clear()
        self._unwritten.clear()

    def _note(self, name: str, note: CrashNote) -> None:
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

    def _read(self, name: str) -> CrashNote | None:
        found = b""
        with self._files.attempt(NOTES), suppress(FileNotFoundError):
            found = (self._folder / name).read_bytes()
        try:
            return msgspec.json.decode(found, type=CrashNote)
        except msgspec.DecodeError:
            return None

    def _look(self) -> None:
        found = any(note.is_wary for note in self._found.values())
        self.is_careful = found or any(note.is_careful for note in self._notes.values())
        self.is_alert = any(note.starts > 1 for note in self._notes.values())
