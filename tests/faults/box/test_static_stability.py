"""The data plane needs neither Postgres nor Redis, neither to run nor to restart after a kill."""

import os
import signal
import time

import psutil
import pytest

from controlplane.compute.files import ComputeFiles
from localbox.testing import Box
from tests.support.demo_traffic import DemoTraffic
from tests.support.patience import until

CELL = "c1"


def asleep(pid: int) -> list[psutil.Process]:
    """Suspend a process and all its children: connections hang, which is worse than a refusal."""
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    for process in family:
        process.suspend()
    return family


def kill_the_driver(box: Box) -> int:
    running = ComputeFiles(box.var).running(CELL)
    assert running is not None
    assert running.pid
    os.kill(running.pid, signal.SIGKILL)
    return running.pid


@pytest.mark.timeout(1_200)
def test_deliveries_continue_and_the_ledger_is_exact_afterwards(box: Box):
    with DemoTraffic(box) as traffic:
        traffic.until_delivered(300, 90)
        sleepers = asleep(box.pid("postgres")) + asleep(box.pid("redis"))
        try:
            driver = kill_the_driver(box)
            replica = box.kill("ingest-1")
            box.wait_ready("ingest-1", not_pid=replica, timeout_s=60)
            until(lambda: _another_driver(box, driver), "a new driver, without Postgres and Redis", 60)
            traffic.until_delivered(300, 90)
        finally:
            for process in sleepers:
                process.resume()
        traffic.until_delivered(300, 90)
    traffic.assert_accounted()


def _another_driver(box: Box, killed: int) -> bool:
    time.sleep(0.2)
    running = ComputeFiles(box.var).running(CELL)
    return running is not None and bool(running.pid) and running.pid != killed
