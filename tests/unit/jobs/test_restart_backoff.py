"""The pause before a lane restarts: none after the first crash, longer with each crash in a row, bounded."""

import os
from pathlib import Path

from dataplane.jobs.lanes import LONGEST_REJOIN_S, pause_before


def start(note: Path, at_s: float) -> float:
    pause_s = pause_before(note, at_s)
    os.utime(note, (at_s, at_s))
    return pause_s


def test_first_start_and_first_crash_have_no_pause(tmp_path: Path):
    note = tmp_path / "lanes" / "c1-process-0"
    assert [start(note, 1_000.0), start(note, 1_010.0)] == [0.0, 0.0]


def test_pause_grows_with_crashes_in_a_row_up_to_a_limit(tmp_path: Path):
    note = tmp_path / "c1-process-0"
    pauses = [start(note, 1_000.0 + 10 * number) for number in range(9)]
    assert 1.5 <= pauses[2] <= 2
    assert 3 <= pauses[3] <= 4
    assert pauses[4] >= 6
    assert max(pauses) <= LONGEST_REJOIN_S


def test_lane_that_ran_for_a_minute_restarts_without_a_pause(tmp_path: Path):
    note = tmp_path / "c1-process-0"
    for number in range(5):
        start(note, 1_000.0 + number)
    assert start(note, 1_100.0) == start(note, 1_101.0) == 0.0


def test_truncated_note_causes_no_pause(tmp_path: Path):
    note = tmp_path / "c1-process-0"
    note.write_text("")
    os.utime(note, (1_000.0, 1_000.0))
    assert start(note, 1_001.0) == 0.0
