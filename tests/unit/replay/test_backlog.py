"""Backlog of copies: two jobs at a time, at a rate that the destinations can take."""

import math

import pytest

from dataplane.replay.backlog import CopyBacklog, WrittenJob, slow_reason, start_pace
from dataplane.spec import HttpDestination, TopicDestination

A, B = ("egress", 0), ("egress", 1)
JOB_S, COMMIT_S = 2.0, 0.3


def job(number: int, units: int = 1_000) -> WrittenJob:
    return WrittenJob({A: number * units}, units, number * JOB_S)


@pytest.mark.parametrize(
    ("committed", "now_s", "passed", "is_full"),
    [
        pytest.param({A: 0}, 5.0, 0, True, id="nothing is delivered"),
        pytest.param({A: 999}, 5.0, 0, True, id="one copy of the job before last is missing"),
        pytest.param({A: 1_000}, 5.0, 1, False, id="the job before last is delivered"),
        pytest.param({A: 2_000}, 5.0, 2, False, id="all is delivered"),
        pytest.param({}, 5.0, 0, True, id="offsets are unknown"),
        pytest.param({}, 32.0, 1, False, id="offsets are unknown for long: the first job ended 30 s ago"),
        pytest.param({A: 0}, 9e9, 0, True, id="a known offset blocks for as long as it takes"),
    ],
)
def test_next_job_starts_when_the_job_before_last_has_been_passed(
    committed: dict[tuple[str, int], int], now_s: float, passed: int, is_full: bool
):
    backlog = CopyBacklog([job(1), job(2)])
    assert len(backlog.passed(committed, now_s)) == passed
    assert backlog.is_full is is_full


def test_every_partition_of_a_job_has_to_be_passed():
    backlog = CopyBacklog([WrittenJob({A: 10, B: 10}, 20, 0.0), job(2)])
    assert not backlog.passed({A: 10, B: 9}, 1.0)
    assert not backlog.passed({A: 10}, 1.0), "and a known one does not stand for an unknown one"
    assert backlog.passed({A: 10, B: 10}, 1.0)


def test_later_job_is_not_passed_before_an_earlier_one():
    """The slow lane may still have copies of the earlier one."""
    backlog = CopyBacklog([WrittenJob({("slow", 0): 5}, 5, 0.0, diverted=True), job(1)])
    assert not backlog.passed({A: 1_000, ("slow", 0): 4}, 1.0)


def replayed(
    rate_per_s: float, takes_per_s: list[float], others_per_s: float = 0, start_per_s: float = math.inf
) -> tuple[list[float], list[float]]:
    """Run a job for each rate of the destination. Return the rates of the jobs, and the queue in seconds after each.

    start_per_s:  of the first job
    others_per_s: records of other pipes in the same partition, in addition; lanes commit COMMIT_S after a delivery
    """
    backlog, now_s, written, taken = CopyBacklog(pace_per_s=start_per_s), 0.0, 0.0, 0.0
    rates, queues = [], []

    def commit(takes: float) -> dict[tuple[str, int], int]:
        return {A: int(max(0.0, min(taken, written - COMMIT_S * (others_per_s + min(takes, rate)))))}

    rate = 0.0
    for takes in takes_per_s:
        while True:
            backlog.taken += sum(one.units for one in backlog.passed(commit(takes), now_s))
            if not backlog.is_full:
                break
            assert now_s < 1e6, "it must not block for ever"
            backlog.wait(now_s)
            now_s, written = now_s + 0.5, written + others_per_s * 0.5
            taken = min(written, taken + (takes + others_per_s) * 0.5)
        rate = backlog.begin_job(now_s, rate_per_s)
        now_s, written = now_s + JOB_S, written + (rate + others_per_s) * JOB_S
        taken = min(written, taken + (takes + others_per_s) * JOB_S)
        backlog.add(WrittenJob({A: int(written)}, int(rate * JOB_S), now_s))
        rates.append(rate)
        queues.append((written - taken) / (takes + others_per_s))
    return rates, queues


def test_fast_destination_never_slows_a_replay_down():
    rates, _ = replayed(30_000, [30_000.0] * 50)
    assert set(rates) == {30_000}


def test_traffic_of_other_pipes_in_the_same_partitions_slows_no_replay_down():
    """The records that wait for the lanes' next commit may be more than the copies of a slow replay."""
    rates, _ = replayed(50, [1_000.0] * 50, others_per_s=5_000)
    assert set(rates) == {50}


def test_queue_before_a_slow_destination_stays_short():
    rates, queues = replayed(1_000, [100] * 60)
    assert max(queues[10:]) < 2 * JOB_S, "it would be 20 jobs without a limit"
    assert 80 < sum(rates[10:]) / 50 < 110, "and the destination is not idle"


@pytest.mark.parametrize("takes", [5, 8, 50, 100])
def test_first_jobs_of_a_fast_replay_make_no_long_queue(takes: float):
    _, queues = replayed(5_000, [takes] * 30, start_per_s=8)
    assert max(queues) < 4 * JOB_S, "the first job alone would make one of 2,000 s at 5 copies per second"


def test_rate_doubles_from_job_to_job_until_the_first_queue():
    rates, _ = replayed(30_000, [30_000.0] * 14, start_per_s=64)
    assert rates[:3] == [64, 128, 256]
    assert rates[9:] == [30_000] * 5


def test_replay_starts_with_the_concurrency_of_its_narrowest_endpoint():
    wide, narrow = (HttpDestination(url="https://crm.example", concurrency=many) for many in (64, 2))
    assert start_pace([wide, narrow, TopicDestination(partitions=1)]) == 2
    assert start_pace([TopicDestination(partitions=1)]) == math.inf


def test_rate_grows_again_when_the_destination_is_faster():
    rates, _ = replayed(1_000, [100.0] * 20 + [1_000.0] * 40)
    assert rates[19] < 150
    assert rates[-1] == 1_000


def test_destination_that_takes_nothing_gets_one_job_after_the_other():
    backlog = CopyBacklog()
    backlog.passed({A: 0}, 0.0)
    assert backlog.begin_job(0.0, 500.0) == 500.0
    backlog.add(job(1))
    backlog.passed({A: 0}, 2.5)
    assert backlog.begin_job(2.5, 500.0) == 1.0, "the second one is small"
    backlog.add(job(2, units=2))
    assert backlog.is_full


def test_pace_follows_the_slow_lane_after_a_wait():
    """Copies pass egress at once, so only the wait shows how much the destination takes."""
    backlog = CopyBacklog()
    backlog.begin_job(0.0, 500.0)
    backlog.wait(2.0)
    backlog.taken += 1_000
    assert backlog.begin_job(100.0, 500.0) == 9.0


def test_pause_of_an_hour_does_not_count_as_slowness():
    backlog = CopyBacklog()
    backlog.begin_job(0.0, 500.0)
    backlog.add(job(1))
    backlog.wait(2.0)
    for now_s in (2.5, 3_600.0):
        backlog.interrupt(now_s)
    backlog.taken += sum(one.units for one in backlog.passed({A: 1_000}, 3_600.5))
    assert backlog.begin_job(3_600.5, 500.0) == 500.0


def test_pace_below_a_rate_that_a_user_has_lowered_has_no_effect():
    backlog = CopyBacklog(pace_per_s=400.0)
    assert backlog.begin_job(1.0, 50.0) == 50.0
    assert backlog.pace_per_s == math.inf


def test_wait_counts_from_its_first_second():
    backlog = CopyBacklog([job(1), job(2)])
    assert [backlog.wait(now_s) for now_s in (10.0, 11.0, 17.0)] == [0.0, 1.0, 7.0]
    backlog.begin_job(18.0, 1.0)
    assert backlog.wait(20.0) == 0.0


def test_reason_names_the_destinations():
    assert slow_reason(["crm"]) == "waits for destination crm, which is slower than the replay"
    assert "one of the destinations crm, erp," in slow_reason(["erp", "crm"])
