"""A host's memory of settled units survives a kill, a torn line, a rotation and a turn of another lane."""

import errno
from io import FileIO
from pathlib import Path

import pytest

from dataplane.tables.optional_files import OptionalFiles
from dataplane.transmit.deliveries import settled_units as module
from dataplane.transmit.deliveries.settled_units import SettledUnits, UnitRound


def unit(position: int, attempt: int = 0, destination: str = "crm") -> UnitRound:
    return UnitRound("p", destination, 0, attempt, position)


def opened(folder: Path, files: OptionalFiles | None = None) -> SettledUnits:
    return SettledUnits(folder, "penstock.c1.egress.g1-0", files or OptionalFiles())


def test_settled_unit_is_recalled_with_its_fact(tmp_path: Path):
    memory = opened(tmp_path)
    memory.note(unit(1), "delivered", "")
    memory.note(unit(2), "dead", "rejected")
    assert memory.recall(unit(1)) == ("delivered", "")
    assert memory.recall(unit(2)) == ("dead", "rejected")
    memory.close()


@pytest.mark.parametrize(
    "other",
    [
        unit(2),
        unit(1, attempt=1),
        unit(1, destination="lake"),
        UnitRound("q", "crm", 0, 0, 1),
        UnitRound("replay_1", "crm", 0, 0, 1),
    ],
)
def test_another_unit_or_round_is_not_recalled(tmp_path: Path, other: UnitRound):
    memory = opened(tmp_path)
    memory.note(unit(1), "delivered", "")
    assert memory.recall(other) is None
    memory.close()


def test_settled_unit_is_recalled_from_its_files_after_a_kill(tmp_path: Path):
    killed = opened(tmp_path)
    killed.note(unit(1), "delivered", "")
    killed.flush()  # flushed, not closed
    again = opened(tmp_path)
    assert again.recall(unit(1)) == ("delivered", "")
    again.close()
    killed.close()


def test_file_of_an_earlier_release_is_read(tmp_path: Path):
    (tmp_path / "penstock.c1.egress.g1-0.new").write_bytes(b'["p","crm",0,0,1,"dead","rejected"]\n')
    memory = opened(tmp_path)
    assert memory.recall(unit(1)) == ("dead", "rejected")
    memory.close()


def test_torn_last_line_is_no_verdict_and_affects_no_later_line(tmp_path: Path):
    memory = opened(tmp_path)
    memory.note(unit(1), "delivered", "")
    memory.note(unit(2), "delivered", "")
    memory.close()
    path = next(tmp_path.glob("*.new"))
    path.write_bytes(path.read_bytes()[:-9])

    again = opened(tmp_path)
    assert again.recall(unit(1)) is not None
    assert again.recall(unit(2)) is None
    again.note(unit(3), "delivered", "")
    again.close()

    third = opened(tmp_path)
    assert [third.recall(unit(n)) is not None for n in (1, 2, 3)] == [True, False, True]
    third.close()


def test_rotation_keeps_the_newer_segment_and_drops_the_oldest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "SEGMENT_ENTRIES", 10)
    memory = opened(tmp_path)
    for position in range(25):
        memory.note(unit(position), "delivered", "")
        memory.flush()
    known = {position for position in range(25) if memory.recall(unit(position))}
    assert known == set(range(10, 25))
    memory.close()
    again = opened(tmp_path)
    assert {position for position in range(25) if again.recall(unit(position))} == known
    again.close()
    assert len(list(tmp_path.iterdir())) == 2, "the number of files does not grow"


def test_verdicts_stay_in_memory_without_a_disk_and_later_ones_are_written_once_it_works(tmp_path: Path):
    (tmp_path / "blocked").write_bytes(b"")
    files = OptionalFiles()
    memory = opened(tmp_path / "blocked" / "settled", files)
    memory.note(unit(1), "delivered", "")
    memory.flush()
    assert files.trouble == "verdicts of settled units: Not a directory"
    assert memory.recall(unit(1)) == ("delivered", "")
    (tmp_path / "blocked").unlink()
    memory.note(unit(2), "delivered", "")
    memory.close()
    again = opened(tmp_path / "blocked" / "settled")
    assert (again.recall(unit(1)), again.recall(unit(2))) == (None, ("delivered", ""))
    again.close()


def test_write_cut_off_by_a_full_disk_leaves_no_torn_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def half(file: FileIO, data: bytes) -> None:
        file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    files = OptionalFiles()
    memory = opened(tmp_path, files)
    for number in range(4):
        memory.note(unit(number), "delivered", "")
        with monkeypatch.context() as full:
            if number in (1, 2):
                full.setattr(module, "write_all", half)
            memory.flush()
        assert bool(files.trouble) is (number > 0)
    memory.close()
    again = opened(tmp_path)
    known = [again.recall(unit(number)) for number in range(4)]
    assert known == [("delivered", ""), None, None, ("delivered", "")]
    again.close()


def test_memory_stays_bounded_if_the_disk_refuses_a_rotation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "SEGMENT_ENTRIES", 2)
    (tmp_path / "blocked").write_bytes(b"")
    memory = opened(tmp_path / "blocked" / "settled")
    for number in range(8):
        memory.note(unit(number), "delivered", "")
        memory.flush()
    assert [memory.recall(unit(number)) is not None for number in range(8)] == [False] * 4 + [False, False, True, True]
    memory.close()
