"""Jobs of the supervisor of replays and shadow runs."""

import threading
from types import SimpleNamespace

import pytest
from pyspark import RDD

from dataplane.jobs.replays import ReplaySupervisor
from dataplane.replay.result import TaskResult
from dataplane.tables.records import CellRecord
from tests.support.replaying import CELL, TOPICS


@pytest.fixture
def cancelled() -> list[str]:
    """Return the job groups that were cancelled."""
    return []


@pytest.fixture
def supervisor(cancelled: list[str]) -> ReplaySupervisor:
    made = ReplaySupervisor.__new__(ReplaySupervisor)
    made._context = SimpleNamespace(setJobGroup=lambda *_: None, cancelJobGroup=cancelled.append)
    made._cell_name, made._records = CELL, {}
    made._job_began_s, made._job_tasks = 0.0, 0
    made._thread, made._ending = None, threading.Event()
    return made


def test_job_that_cannot_be_made_takes_no_slots_and_is_not_cancelled(
    supervisor: ReplaySupervisor, cancelled: list[str]
):
    def job() -> RDD[TaskResult]:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk"):
        supervisor._collect("rep_1", 2, job)
    assert supervisor.tasks == 0
    supervisor.poll(CellRecord(CELL, 1, 1, {}, TOPICS), 2)
    assert (supervisor._job_began_s, cancelled) == (0.0, [])


def test_job_is_cancelled_when_lanes_need_its_slots(supervisor: ReplaySupervisor, cancelled: list[str]):
    def job() -> RDD[TaskResult]:
        supervisor.make_room(2)
        assert not cancelled
        supervisor.make_room(1)
        raise OSError("cancelled")

    with pytest.raises(OSError, match="cancelled"):
        supervisor._collect("rep_1", 2, job)
    assert cancelled == [f"{CELL}/replay"]
    supervisor.make_room(0)
    assert len(cancelled) == 1, "no job is in progress"
