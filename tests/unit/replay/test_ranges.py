"""Ranges of a replay: every offset is read once, in any number of jobs, and progress never goes backwards."""

from hypothesis import given
from hypothesis import strategies as st

from dataplane.replay.ranges import MOST_TASKS, OffsetRange, first_progress, is_resolved, merged, next_tasks, remaining
from dataplane.replay.result import TaskResult
from dataplane.tables.redrives import format_place

TOPIC = "penstock.c1.ingest.g1"
RANGES = st.dictionaries(st.integers(0, 7), st.tuples(st.integers(0, 50), st.integers(0, 40)), min_size=1).map(
    lambda found: [OffsetRange((TOPIC, number), first, first + size) for number, (first, size) in found.items()]
)


@given(RANGES, st.data())
def test_every_offset_is_read_exactly_once_whatever_each_task_manages(ranges: list[OffsetRange], data: st.DataObject):
    progress = first_progress("r", ranges, 1)
    assert is_resolved(progress)
    read: list[tuple[str, int, int]] = []
    jobs = 0
    while remaining(progress):
        slots = data.draw(st.integers(1, 4))
        tasks = next_tasks(progress, slots, 10.0)
        assert 1 <= len(tasks) <= min(slots, MOST_TASKS)
        assert len({one.place for one, _ in tasks}) == len(tasks)
        assert abs(sum(rate for _, rate in tasks) - 10.0) < 1e-9
        results = []
        for one, _ in tasks:
            done = data.draw(st.integers(0 if jobs < 20 else 1, one.end - one.first))
            read += [(*one.place, offset) for offset in range(one.first, one.first + done)]
            results.append(TaskResult(one.place, one.first + done, read=done, asked=done, units={"d": done}))
        before, progress = progress, merged(progress, results, 2)
        assert all(progress.reached[place] >= offset for place, offset in before.reached.items())
        assert progress.ends == before.ends
        jobs += 1
    due = {(*one.place, offset) for one in ranges for offset in range(one.first, one.end)}
    assert len(read) == len(due)
    assert set(read) == due
    assert (progress.read, progress.asked, progress.units.get("d", 0)) == (len(due),) * 3


@given(RANGES, st.integers(-1, 0))
def test_no_task_without_a_slot(ranges: list[OffsetRange], slots: int):
    assert next_tasks(first_progress("r", ranges, 1), slots, 1.0) == []


@given(RANGES)
def test_result_beyond_the_range_or_behind_the_progress_does_not_count(ranges: list[OffsetRange]):
    progress = first_progress("r", ranges, 1)
    far = merged(progress, [TaskResult(one.place, one.end + 9) for one in ranges], 2)
    assert far.reached == progress.ends
    back = merged(far, [TaskResult(one.place, 0) for one in ranges], 3)
    assert back.reached == far.reached


def test_largest_rest_is_read_first_so_that_partitions_end_together():
    ranges = [OffsetRange((TOPIC, 0), 0, 5), OffsetRange((TOPIC, 1), 0, 9), OffsetRange((TOPIC, 2), 3, 10)]
    tasks = next_tasks(first_progress("r", ranges, 1), 2, 8.0)
    assert tasks == [(ranges[1], 4.0), (ranges[2], 4.0)]


def test_ranges_are_stored_so_that_a_restart_has_the_same():
    progress = first_progress("r", [OffsetRange((TOPIC, 3), 7, 5), OffsetRange((TOPIC, 1), 2, 4)], 1)
    assert progress.reached == {format_place((TOPIC, 3)): 7, format_place((TOPIC, 1)): 2}
    assert progress.ends == {format_place((TOPIC, 3)): 7, format_place((TOPIC, 1)): 4}
