"""End of the reading of the deliveries of a job's events."""

import pytest

from dataplane.shadow import reading
from dataplane.shadow.job import PartComparison, PartRead, parts_of
from dataplane.shadow.reading import LATE_MS, TAIL_MS, SentCutoff, read_part
from tests.support.replaying import NOW_US
from tests.support.shadowing import ShadowWorld, job_of, run_job, shadow

LAST_MS = NOW_US // 1_000
AFTER_MS = LAST_MS + TAIL_MS + 1


def test_reading_ends_when_later_events_of_each_partition_have_been_sent():
    cutoff = SentCutoff(LAST_MS)
    assert not cutoff.is_past(0, LAST_MS - 5, LAST_MS)
    assert not cutoff.is_past(1, LAST_MS, LAST_MS)
    assert not cutoff.is_past(0, AFTER_MS, AFTER_MS), "partition 1 is behind"
    assert not cutoff.is_past(1, LAST_MS, AFTER_MS)
    assert cutoff.is_past(1, AFTER_MS, AFTER_MS)


def test_late_event_of_a_partition_that_is_past_does_not_prolong_the_reading():
    cutoff = SentCutoff(LAST_MS)
    assert cutoff.is_past(0, AFTER_MS, AFTER_MS)
    assert cutoff.is_past(0, LAST_MS, AFTER_MS)


def test_partition_without_later_events_is_waited_for_only_so_long():
    cutoff = SentCutoff(LAST_MS)
    assert not cutoff.is_past(1, LAST_MS, LAST_MS)
    assert not cutoff.is_past(0, AFTER_MS, LAST_MS + LATE_MS)
    assert cutoff.is_past(0, AFTER_MS, LAST_MS + LATE_MS + 1)


def test_backlog_of_process_is_read_to_its_end():
    cutoff = SentCutoff(LAST_MS)
    assert not cutoff.is_past(0, LAST_MS, LAST_MS + 9 * LATE_MS), "its events are sent hours later"


def test_deliveries_for_which_no_time_is_left_count_as_not_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "READ_SENT_S", 0.0)
    world = ShadowWorld()
    for number in range(4):
        world.process(world.ingest(number, partition=number))
    results = run_job(world, job_of(world, shadow()), 1)
    assert [one.is_cut for one in results if isinstance(one, PartRead)] == [True]
    assert [one.units for one in results if isinstance(one, PartComparison)] == [{"crm": {"not_sent": 4}}]


@pytest.mark.parametrize("tasks", [1, 2])
def test_each_partition_of_both_topics_is_read_by_one_task(tasks: int):
    world = ShadowWorld()
    for number in range(40):
        event = world.ingest(number, partition=number % 4)
        world.process(event)
    results = run_job(world, job_of(world, shadow()), tasks)
    reads = [one for one in results if isinstance(one, PartRead)]
    assert len(reads) == tasks
    assert sum(one.read for one in reads) == 40
    assert {place[1]: until for one in reads for place, until in one.until_us.items()} == dict.fromkeys(
        range(4), NOW_US
    )


@pytest.mark.parametrize("limit", [{"LARGEST_BYTES": 2_500}, {"LARGEST_EVENTS": 2}])
def test_part_that_passes_on_too_much_ends_early(monkeypatch: pytest.MonkeyPatch, limit: dict[str, int]):
    for name, value in limit.items():
        monkeypatch.setattr(reading, name, value)
    world = ShadowWorld()
    for number in range(40):
        world.process(world.ingest(number, b'{"x": "%s"}' % (b"y" * 1_000)))
    job = job_of(world, shadow())
    found = list(read_part(job, parts_of(job, 1)[0], world.reader()))
    (result,) = (one for _, one in found if isinstance(one, PartRead))
    assert (result.is_large, result.error) == (True, "")
    assert len(found) == 4, "three events, and the result"


def test_deliveries_count_for_the_size_of_a_part(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "LARGEST_BYTES", 3_500)
    world = ShadowWorld()
    for number in range(2):
        event = world.ingest(number, b'{"x": "%s"}' % (b"y" * 1_000))
        for name in ("crm", "log", "erp"):
            world.send(event, name, event.value())
    job = job_of(world, shadow())
    found = list(read_part(job, parts_of(job, 1)[0], world.reader()))
    (result,) = (one for _, one in found if isinstance(one, PartRead))
    assert (result.is_large, result.error, result.events, len(found)) == (True, "", 2, 5)


def test_job_of_one_event_has_no_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "LARGEST_BYTES", 1)
    world = ShadowWorld()
    world.process(world.ingest(0, b'{"x": 1}'))
    results = run_job(world, job_of(world, shadow()))
    assert not any(one.is_large for one in results)
    assert [one.units for one in results if isinstance(one, PartComparison) and one.units] == [{"crm": {"equal": 1}}]
