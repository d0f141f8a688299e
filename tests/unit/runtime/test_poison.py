"""Crash records: a message that crashes its lanes is found and dead-lettered, and no other message is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.runtime.lanes.poison import DEATHS, RESTARTS, STABLE_S, CrashRecord, PoisonTracker, opened
from dataplane.tables.optional_files import OptionalFiles

NAME = "penstock.c1.ingest.g1-0"


class Lane:
    """Consume loop on one partition: reads batches, or single messages, until it dies or is done."""

    def __init__(self, folder: Path, first: int, now_s: float) -> None:
        self.crashes = PoisonTracker(folder, OptionalFiles())
        self.crashes.assigned([NAME], now_s)
        self.committed, self.now_s = first, now_s
        self.dead: list[int] = []

    def run(self, end: int, killers: set[int], *, batch: int = 5, kill_before: int | None = None) -> bool:
        """Return True if the lane reached `end` alive. `kill_before`: SIGKILL from outside at that offset."""
        at, is_open = self.committed, False
        while at < end:
            taken = [at] if self.crashes.is_careful else list(range(at, min(end, at + batch)))
            if not is_open:
                self.crashes.opened(NAME, at, self.now_s)
                is_open = True
            if not self.hand_over(taken, killers, kill_before):
                return False
            at = taken[-1] + 1
            self.committed = at
        return True

    def hand_over(self, taken: list[int], killers: set[int], kill_before: int | None) -> bool:
        if not self.crashes.is_careful:
            self.crashes.handed(NAME, taken[-1])
            return not killers & set(taken) and kill_before not in taken
        for offset in taken:
            if not self.crashes.try_alone(NAME, offset, self.now_s):
                self.dead.append(offset)
                continue
            if offset in killers or offset == kill_before:
                return False
            self.crashes.survived(NAME, self.now_s)
        return True


def restarts_until_done(folder: Path, killers: set[int], *, end: int = 40) -> tuple[int, list[int]]:
    committed, now_s, dead = 0, 1_000.0, []
    for start in range(200):
        lane = Lane(folder, committed, now_s)
        done = lane.run(end, killers)
        dead += lane.dead
        committed, now_s = lane.committed, now_s + 8
        if done:
            return start, dead
    raise AssertionError(f"no end: at {committed}, dead {dead}")


@pytest.mark.parametrize("killer", [0, 3, 7, 39])
def test_one_poison_message_is_found_and_no_other_is_dead_lettered(tmp_path: Path, killer: int):
    restarts, dead = restarts_until_done(tmp_path, {killer})
    assert dead == [killer]
    more = 0 if killer < 5 else 1  # after settled offsets, the first crash was counted at another offset
    assert restarts == RESTARTS + DEATHS + more, "three crashes in a batch, then two alone"


@given(st.sets(st.integers(0, 39), max_size=5))
def test_any_number_of_poison_messages_and_nothing_else_is_dead_lettered(
    tmp_path_factory: pytest.TempPathFactory, killers: set[int]
):
    restarts, dead = restarts_until_done(tmp_path_factory.mktemp("notes"), killers)
    assert sorted(dead) == sorted(killers)
    assert restarts <= len(killers) * (RESTARTS + 1 + DEATHS)


@given(st.lists(st.integers(0, 39), max_size=8))
def test_external_kills_dead_letter_a_message_only_if_it_was_alone_twice(
    tmp_path_factory: pytest.TempPathFactory, kills: list[int]
):
    folder = tmp_path_factory.mktemp("notes")
    committed, now_s, dead = 0, 1_000.0, []
    for kill in [*kills, None]:
        lane = Lane(folder, committed, now_s)
        lane.run(40, set(), kill_before=kill)
        dead += lane.dead
        committed, now_s = lane.committed, now_s + 8
    assert all(kills.count(offset) >= DEATHS for offset in dead)


def test_stable_run_resets_the_crash_record():
    note = CrashRecord(7, 1_000.0, starts=9, reach=20, trial=8, deaths={8: 1})
    assert opened(note, 7, 1_000.0 + STABLE_S + 1) == CrashRecord(7, 1_000.0 + STABLE_S + 1)


def test_progress_between_crashes_is_no_crash_loop():
    assert opened(CrashRecord(7, 1_000.0, starts=3), 8, 1_001.0) == CrashRecord(8, 1_001.0)


def test_orderly_release_of_a_partition_removes_its_crash_record(tmp_path: Path):
    crashes = PoisonTracker(tmp_path, OptionalFiles())
    crashes.opened(NAME, 7, 1_000.0)
    assert (tmp_path / NAME).exists()
    crashes.let_go(NAME)
    assert not (tmp_path / NAME).exists()


def test_lost_partition_keeps_the_crash_record_for_its_new_owner(tmp_path: Path):
    crashes = PoisonTracker(tmp_path, OptionalFiles())
    crashes.opened(NAME, 7, 1_000.0)
    crashes.lost(NAME)
    assert (tmp_path / NAME).exists()


def test_careful_mode_ends_soon_if_the_suspected_message_never_arrives(tmp_path: Path):
    crashes = PoisonTracker(tmp_path, OptionalFiles())
    crashes.opened(NAME, 7, 1_000.0)
    for _ in range(RESTARTS):
        crashes = PoisonTracker(tmp_path, OptionalFiles())
        crashes.assigned([NAME], 1_001.0)
        crashes.opened(NAME, 7, 1_001.0)
    later = PoisonTracker(tmp_path, OptionalFiles())
    later.assigned([NAME], 1_002.0)
    assert later.is_careful
    later.expire(1_002.0 + STABLE_S)
    assert not later.is_careful


def test_torn_crash_record_is_ignored(tmp_path: Path):
    (tmp_path / NAME).write_bytes(b'{"offset":')
    crashes = PoisonTracker(tmp_path, OptionalFiles())
    crashes.assigned([NAME], 1_000.0)
    assert not crashes.is_careful


def test_lane_without_a_disk_writes_no_crash_record_and_does_not_fail(tmp_path: Path):
    (tmp_path / "blocked").write_bytes(b"")
    files = OptionalFiles()
    crashes = PoisonTracker(tmp_path / "blocked" / "crashes", files)
    crashes.assigned([NAME], 0)
    crashes.opened(NAME, 5, 0)
    assert "notes of lanes that died: Not a directory" in files.trouble
    (tmp_path / "blocked").unlink()
    crashes.expire(1)
    assert (tmp_path / "blocked" / "crashes" / NAME).exists(), "written as soon as the disk works"
    crashes.let_go(NAME)
    assert not (tmp_path / "blocked" / "crashes" / NAME).exists()
