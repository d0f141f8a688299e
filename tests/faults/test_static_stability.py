"""The data plane needs neither Postgres nor Redis: not to run, and not to come back after a kill."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from controlplane.compute.files import ComputeFiles
from localbox.demo.payloads import SHIPPED, read_payloads
from localbox.demo.sender import Sender, Target
from localbox.state import last_json_line
from localbox.testing import Box
from tests.rig.data_plane import until

RATE = 100.0
COUNT = 4_000
CELL = "c1"


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    with Box(tmp_path / "var", extra=["receiver", "demo-pipe"]) as running:
        yield running


def asleep(pid: int) -> list[psutil.Process]:
    """Stop a process and all its children where they stand: connections hang, which is worse than refusing."""
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    for process in family:
        process.suspend()
    return family


def received(box: Box) -> int:
    path = box.var / "demo" / "received.log"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_the_driver(box: Box) -> int:
    running = ComputeFiles(box.var).running(CELL)
    assert running is not None
    assert running.pid
    os.kill(running.pid, signal.SIGKILL)
    return running.pid


@pytest.mark.timeout(400)
def test_deliveries_go_on_and_the_ledger_is_exact_afterwards(box: Box):
    pipe = last_json_line(box.settings.logs / "demo-pipe.log")
    target = Target.of(box.env["PENSTOCK_INGEST_URL"], pipe["key"])
    log = box.var / "demo" / "sent.log"
    sender = Sender(target, read_payloads(SHIPPED), log=log, rate=RATE, count=COUNT)
    sending = threading.Thread(target=sender.run, daemon=True)
    sending.start()
    until(lambda: received(box) > 300, "the first deliveries", 90)

    sleepers = asleep(box.pid("postgres")) + asleep(box.pid("redis"))
    try:
        driver = kill_the_driver(box)
        replica = box.kill("ingest-1")
        box.wait_ready("ingest-1", not_pid=replica, timeout_s=60)
        until(lambda: _another_driver(box, driver), "a new driver, without Postgres and Redis", 60)
        before = received(box)
        until(lambda: received(box) > before + 300, "deliveries, without Postgres and Redis", 90)
    finally:
        for process in sleepers:
            process.resume()

    sending.join(180)
    assert not sending.is_alive()
    until(lambda: received(box) >= COUNT, "the last deliveries", 60)
    accounted = box.run(sys.executable, "-m", "tests.rig.account", pipe["pipe"], timeout_s=180)
    assert accounted.returncode == 0, accounted.stdout + accounted.stderr


def _another_driver(box: Box, killed: int) -> bool:
    time.sleep(0.2)
    running = ComputeFiles(box.var).running(CELL)
    return running is not None and bool(running.pid) and running.pid != killed
