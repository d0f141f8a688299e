"""What a host remembers of settled units survives a kill, a torn line, a rotation and another lane's turn."""

from pathlib import Path

import pytest

from dataplane.transmit import memory as module
from dataplane.transmit.memory import Memory, Unit


def unit(position: int, attempt: int = 0, destination: str = "crm") -> Unit:
    return Unit("p", destination, 0, attempt, position)


def opened(folder: Path) -> Memory:
    return Memory(folder, "penstock.c1.egress.g1-0")


def test_a_settled_unit_is_recalled_with_its_fact(tmp_path: Path):
    memory = opened(tmp_path)
    memory.note(unit(1), "delivered", "")
    memory.note(unit(2), "dead", "rejected")
    assert memory.recall(unit(1)) == ("delivered", "")
    assert memory.recall(unit(2)) == ("dead", "rejected")
    memory.close()


@pytest.mark.parametrize("other", [unit(2), unit(1, attempt=1), unit(1, destination="lake"), Unit("q", "crm", 0, 0, 1)])
def test_another_unit_or_round_is_not_recalled(tmp_path: Path, other: Unit):
    memory = opened(tmp_path)
    memory.note(unit(1), "delivered", "")
    assert memory.recall(other) is None
    memory.close()


def test_it_is_recalled_by_whoever_opens_the_files_after_a_kill(tmp_path: Path):
    killed = opened(tmp_path)
    killed.note(unit(1), "delivered", "")
    killed.flush()  # and no close
    again = opened(tmp_path)
    assert again.recall(unit(1)) == ("delivered", "")
    again.close()
    killed.close()


def test_a_torn_last_line_is_no_verdict_and_spoils_nothing_after_it(tmp_path: Path):
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


def test_rotation_keeps_the_newer_segment_and_forgets_the_oldest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
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
    assert len(list(tmp_path.iterdir())) == 2, "nothing grows"
