"""Processes of an application: only the daemon of Python workers shows that a task has begun."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from controlplane.compute.launch import SparkLauncher
from controlplane.compute.port import DesiredApplication
from controlplane.compute.processes import DAEMONS, INCARNATION_VARIABLE, members, runs_python_workers
from controlplane.compute.releases import ReleaseStore
from localbox.settings import ROOT
from tests.support.patience import until

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def runs(*words: str) -> bool:
    """Return True if a process with these arguments counts as the daemon of an application."""
    incarnation = uuid.uuid4().hex
    process = subprocess.Popen([*SLEEP, *words], env=os.environ | {INCARNATION_VARIABLE: incarnation})
    try:
        until(lambda: members(incarnation), "the process runs")
        return runs_python_workers(incarnation)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("daemon", DAEMONS)
def test_daemon_shows_that_a_task_has_begun(daemon: str):
    assert runs("-m", daemon, "pyspark.worker")


def test_command_that_submits_an_application_is_no_daemon(tmp_path: Path):
    desired = DesiredApplication("c1", 1, "local[4]", ReleaseStore(tmp_path).pack(ROOT))
    assert not runs(*SparkLauncher(tmp_path).command(desired, "0" * 32))
