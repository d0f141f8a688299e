"""Jobs of the supervisor of replays and shadow runs."""

import threading
from types import SimpleNamespace

import pytest
from pyspark import RDD

from dataplane.jobs.replays import ReplaySupervisor
from dataplane.replay.result import TaskResult
from dataplane.tables.records import CellRecord
from tests.support.replaying import CELL, TOPICS


def test_job_that_cannot_be_made_takes_no_slots_and_is_not_cancelled():
    cancelled: list[str] = []
    context = SimpleNamespace(setJobGroup=lambda *_: None, cancelJobGroup=cancelled.append)
    supervisor = ReplaySupervisor.__new__(ReplaySupervisor)
    supervisor._context, supervisor._cell_name, supervisor._records = context, CELL, {}
    supervisor._job_began_s, supervisor._job_tasks = 0.0, 0
    supervisor._thread, supervisor._ending = None, threading.Event()

    def job() -> RDD[TaskResult]:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk"):
        supervisor._collect("rep_1", 2, job)
    assert supervisor.tasks == 0
    supervisor.poll(CellRecord(CELL, 1, 1, {}, TOPICS), 2)
    assert (supervisor._job_began_s, cancelled) == (0.0, [])
