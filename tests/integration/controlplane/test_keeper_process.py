"""Keeper as a process of its own, without Django: it adopts after kill -9, and is drained by a record."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.compute.files import ComputeFiles
from controlplane.compute.port import DesiredApplication, RunningApplication
from controlplane.compute.processes import members, runs_python_workers, signal_all
from controlplane.compute.releases import ReleaseStore
from controlplane.settings import control_settings
from controlplane.topics import TopicCreator, cluster_plans
from localbox.testing_kafka import role_env
from tests.support.patience import until

ROOT = Path(__file__).parents[3]
# Ends only by a stop record, and marks a drain by a file to distinguish it from a kill. Its worker marks its start.
APPLICATION = """
import argparse, os, subprocess, sys, time
from pathlib import Path
from dataplane.tables.control import ControlReader

subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)", "pyspark.daemon"])

named = argparse.ArgumentParser()
for name in ("--cell", "--epoch", "--incarnation"):
    named.add_argument(name)
named = named.parse_args()
reader = ControlReader(os.environ["PENSTOCK_KAFKA"])
while True:
    reader.refresh()
    stop = reader.table.stop(named.cell)
    if stop is not None and stop.incarnation == named.incarnation:
        Path("drained-" + named.incarnation).touch()
        raise SystemExit(0)
    time.sleep(0.2)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with the small application as its cell application."""
    shutil.copytree(ROOT / "dataplane", tmp_path / "checkout" / "dataplane")
    (tmp_path / "checkout" / "dataplane" / "jobs" / "cell.py").write_text(APPLICATION)
    return tmp_path / "checkout"


class Keepers:
    """Keeper processes, one at a time, on one PENSTOCK_VAR."""

    def __init__(self, root: Path, var: Path, kafka: str) -> None:
        self.files = ComputeFiles(var)
        self._release = ReleaseStore(var).pack(root)
        given = {"PENSTOCK_VAR": str(var), "PENSTOCK_KAFKA": kafka, "PYTHONPATH": str(ROOT)}
        self._env = os.environ | given | role_env("cells")
        self._env.pop("DJANGO_SETTINGS_MODULE", None)
        self.log = var / "keeper.log"
        self.process = self.start()

    def start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "controlplane.compute.keeper"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=self._env, stdout=log, stderr=log)
        return self.process

    def request_epoch(self, epoch: int) -> None:
        self.files.request(DesiredApplication("c1", epoch, "local[1]", self._release))

    def running(self) -> RunningApplication | None:
        running = self.files.running("c1")
        return running if running is not None and running.pid else None

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture
def keepers(root: Path, tmp_path: Path, kafka: str) -> Iterator[Keepers]:
    TopicCreator(kafka).ensure(cluster_plans(control_settings().topics))
    keepers = Keepers(root, tmp_path / "var", kafka)
    yield keepers
    if keepers.process.poll() is None:
        keepers.end(signal.SIGKILL)
    if running := keepers.files.running("c1"):
        signal_all(members(running.incarnation), signal.SIGKILL)


def started(keepers: Keepers, epoch: int = 1) -> RunningApplication:
    keepers.request_epoch(epoch)
    until(
        lambda: (now := keepers.running()) is not None and now.epoch == epoch and runs_python_workers(now.incarnation)
    )
    running = keepers.running()
    assert running is not None
    return running


def drained(tmp_path: Path, running: RunningApplication) -> bool:
    return (tmp_path / "var" / f"drained-{running.incarnation}").exists()


def test_killed_and_restarted_keeper_adopts_and_sigterm_drains_by_record(keepers: Keepers, tmp_path: Path):
    first = started(keepers)
    keepers.end(signal.SIGKILL)
    keepers.start()
    until(lambda: "adopted" in keepers.log.read_text())  # it handles signals since before that
    assert keepers.running() == first, "the application continued, and no second one was started"
    assert keepers.end(signal.SIGTERM) == 0
    assert drained(tmp_path, first)
    assert members(first.incarnation) == []


def test_higher_epoch_drains_the_old_application_and_starts_the_new_one(keepers: Keepers, tmp_path: Path):
    first = started(keepers)
    second = started(keepers, epoch=2)
    assert second.incarnation != first.incarnation
    assert drained(tmp_path, first)
    assert not drained(tmp_path, second)
