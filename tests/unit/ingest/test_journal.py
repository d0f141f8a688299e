"""The ack journal, killed between any two of its steps, reports every answered ACK at least once."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dataplane.ingest import journal as module
from dataplane.ingest.journal import AckJournal, JournalledAck
from dataplane.runtime.line_files import append_to, read_lines, write_all


class KilledError(BaseException):
    """Stand-in for SIGKILL: nothing handles it."""


class Killer:
    """Injector that kills the process before its n-th disk operation."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
        self.left = after
        for name in ("append_to", "write_all", "read_lines"):
            monkeypatch.setattr(module, name, self._armed(getattr(module, name)))
        monkeypatch.setattr(os, "replace", self._armed(os.replace))
        monkeypatch.setattr(Path, "unlink", self._armed(Path.unlink))

    def _armed(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if self.left == 0:
                raise KilledError
            self.left -= 1
            return step(*args, **kwargs)

        return counted


class Replica:
    """One run of a replica: `stored` is what the ledger has, `answered` the positions that got a 202."""

    def __init__(self, folder: Path, answered: set[int], stored: set[int]) -> None:
        self.answered, self.stored = answered, stored
        self.journal = AckJournal(folder, "ingest-1")
        self.untold = {position for ack in self.journal.left_behind for position in ack.positions}

    def answer(self, *positions: int) -> None:
        self.journal.write([JournalledAck("c1", "p", 1, list(positions))])
        self.answered.update(positions)
        self.untold.update(positions)

    def tell(self, *meanwhile: int) -> None:
        self.journal.rotate()
        told, self.untold = self.untold, set()
        if meanwhile:
            self.answer(*meanwhile)
        self.stored |= told
        self.journal.reported()


def live(folder: Path, answered: set[int], stored: set[int], first: int) -> None:
    replica = Replica(folder, answered, stored)
    replica.answer(first)
    replica.tell(first + 1)
    replica.answer(first + 2, first + 3)
    replica.tell()
    replica.answer(first + 4)


@pytest.mark.parametrize("steps", range(20))
@pytest.mark.parametrize("steps_of_the_next_run", range(12))
def test_two_runs_killed_at_any_step_lose_no_ack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int, steps_of_the_next_run: int
):
    answered: set[int] = set()
    stored: set[int] = set()
    for first, after in ((0, steps), (10, steps_of_the_next_run)):
        with monkeypatch.context() as patches:
            Killer(patches, after)
            try:
                live(tmp_path, answered, stored, first)
            except KilledError:
                continue
    left = {position for ack in AckJournal(tmp_path, "ingest-1").left_behind for position in ack.positions}
    assert answered <= stored | left


def test_acks_that_the_ledger_has_are_removed_from_the_journal(tmp_path: Path):
    replica = Replica(tmp_path, set(), set())
    for number in range(50):
        replica.answer(number)
        replica.tell()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 0


def test_torn_line_was_never_answered_and_breaks_no_later_start(tmp_path: Path):
    journal = AckJournal(tmp_path, "ingest-1")
    journal.write([JournalledAck("c1", "p", 1, [1])])
    journal.close()
    path = tmp_path / "ingest-1.acks"
    path.write_bytes(path.read_bytes() + b'["c1","p"')
    for number in (2, 3):
        journal = AckJournal(tmp_path, "ingest-1")
        journal.write([JournalledAck("c1", "p", 1, [number])])
        journal.close()
    left = AckJournal(tmp_path, "ingest-1").left_behind
    assert [ack.positions for ack in left] == [[1], [2], [3]]


def test_replicas_have_separate_journals(tmp_path: Path):
    one, other = (AckJournal(tmp_path, name) for name in ("ingest-1", "ingest-2"))
    one.write([JournalledAck("c1", "p", 1, [1])])
    other.write([JournalledAck("c1", "p", 1, [2])])
    assert [ack.positions for ack in AckJournal(tmp_path, "ingest-2").left_behind] == [[2]]
    one.close()
    other.close()


def test_partial_write_on_a_full_disk_raises_an_error(tmp_path: Path):
    class Full:
        def __init__(self) -> None:
            self.room = 10

        def write(self, data: memoryview) -> int:
            if not self.room:
                raise OSError(28, "No space left on device")
            taken = min(self.room, len(data))
            self.room -= taken
            return taken

    with pytest.raises(OSError, match="No space"):
        write_all(Full(), b"x" * 11)  # type: ignore[arg-type]


def test_append_continues_after_the_last_complete_line(tmp_path: Path):
    path = tmp_path / "lines"
    assert read_lines(path) == []
    path.write_bytes(b"one\ntwo\nthr")
    with append_to(path) as file:
        write_all(file, b"three\n")
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    assert read_lines(path) == [b"one", b"two", b"three"]


@contextmanager
def room_for(path: Path, more: int) -> Iterator[None]:
    """Limit files of this process to the present size of this one and a few bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 5, 16, 20, 40])
def test_failed_write_records_no_ack_and_damages_no_other_line(tmp_path: Path, room: int):
    journal = AckJournal(tmp_path, "ingest-1")
    journal.write([JournalledAck("c1", "p", 1, [1])])
    with room_for(tmp_path / "ingest-1.acks", room), pytest.raises(OSError, match="File too large"):
        journal.write(
            [JournalledAck("c1", "p", 1, [2]), JournalledAck("c1", "p", 1, [3]), JournalledAck("c1", "p", 1, [4])]
        )
    journal.write([JournalledAck("c1", "p", 1, [5])])
    journal.close()
    assert [ack.positions for ack in AckJournal(tmp_path, "ingest-1").left_behind] == [[1], [5]]


def test_failed_rotation_loses_no_ack_and_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    journal = AckJournal(tmp_path, "ingest-1")
    journal.write([JournalledAck("c1", "p", 1, [1])])
    with monkeypatch.context() as patches:

        def full(_path: Path) -> None:
            raise OSError(28, "No space left on device")

        patches.setattr(module, "append_to", full)
        with pytest.raises(OSError, match="No space"):
            journal.rotate()
        with pytest.raises(OSError, match="No space"):
            journal.write([JournalledAck("c1", "p", 1, [2])])
    journal.write([JournalledAck("c1", "p", 1, [3])])
    journal.rotate()
    journal.close()
    assert [ack.positions for ack in AckJournal(tmp_path, "ingest-1").left_behind] == [[1], [3]]
