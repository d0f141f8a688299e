"""Keeper with real processes: it starts, restarts, adopts, replaces and ends applications without orphans."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from controlplane.compute.cell_supervisor import DRAIN_S, TERM_S, CellSupervisor, StopStage, wait_after
from controlplane.compute.files import ComputeFiles
from controlplane.compute.keeper import take_lock
from controlplane.compute.port import DesiredApplication
from controlplane.compute.processes import INCARNATION_VARIABLE, members
from tests.support.patience import step_until
from tests.support.system_clock import set_clock

RELEASE = "0123456789abcdef"
WISH = DesiredApplication("c1", 1, "local", RELEASE)
# An application with a worker that left its process group, as PySpark's daemon does.
APPLICATION = """
import os, subprocess, sys, time
worker = "import os, time; os.setpgid(0, 0); time.sleep(300)"
subprocess.Popen([sys.executable, "-c", worker, "pyspark.daemon"])
time.sleep(300)
"""


class Launcher:
    """Launcher of a small real application instead of Spark."""

    def __init__(self, program: str = APPLICATION) -> None:
        self.program = program
        self.children: list[subprocess.Popen[bytes]] = []

    def start(
        self, desired: DesiredApplication, incarnation: str, standby: Path | None = None
    ) -> "subprocess.Popen[bytes]":
        assert standby is None
        env = os.environ | {INCARNATION_VARIABLE: incarnation, "CELL": desired.cell}
        child = subprocess.Popen([sys.executable, "-c", self.program], env=env, start_new_session=True)
        self.children.append(child)
        return child


class Clock:
    """Monotonic clock that the test advances."""

    def __init__(self) -> None:
        self.now = 1_000.0


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    launcher = Launcher()
    yield launcher
    for child in launcher.children:
        for process in psutil.process_iter():
            try:
                if os.getsid(process.pid) == child.pid:
                    process.kill()
            except (psutil.Error, OSError):
                continue
        child.wait()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def files(tmp_path: Path) -> ComputeFiles:
    return ComputeFiles(tmp_path)


class Asked:
    """Recorder of the applications that were asked to stop."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def __call__(self, cell: str, incarnation: str) -> None:
        self.asked.append((cell, incarnation))


def keep(files: ComputeFiles, launcher: Launcher, asked: Asked | None = None) -> CellSupervisor:
    return CellSupervisor("c1", files, launcher, asked or Asked(), lambda: 0.5)


def started(kept: CellSupervisor, clock: Clock) -> str:
    kept.step(WISH, clock.now)
    assert kept.running is not None
    incarnation = kept.running.incarnation
    step_until(lambda: len(members(incarnation)) == 2)
    return incarnation


def test_desired_application_is_started_once_and_recorded(files: ComputeFiles, launcher: Launcher, clock: Clock):
    kept = keep(files, launcher)
    incarnation = started(kept, clock)
    kept.step(WISH, clock.now + 1)
    noted = files.running("c1")
    assert noted is not None
    assert (noted.incarnation, noted.epoch, len(launcher.children)) == (incarnation, 1, 1)


def test_crash_ends_leftover_processes_and_restarts_the_application_after_a_backoff(
    files: ComputeFiles, launcher: Launcher, clock: Clock
):
    kept = keep(files, launcher)
    first = started(kept, clock)
    launcher.children[0].kill()
    step_until(lambda: kept.running is None, lambda: kept.step(WISH, clock.now))
    assert members(first) == []
    kept.step(WISH, clock.now + 0.9)
    assert kept.starts == 1, "the first back-off is one second"
    kept.step(WISH, clock.now + 1.1)
    assert kept.starts == 2


def test_backoff_between_crashes_grows_to_thirty_seconds():
    assert [wait_after(n, 0.5) for n in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
    assert wait_after(1, 0.0) == 0.75


def test_stable_minute_resets_the_backoff(files: ComputeFiles, launcher: Launcher, clock: Clock):
    kept = keep(files, launcher)
    launcher.program = "raise SystemExit(3)"
    kept.step(WISH, clock.now)
    for _ in range(3):
        step_until(lambda: kept.running is None, lambda: kept.step(WISH, clock.now))
        clock.now += 60
        kept.step(WISH, clock.now)
    launcher.program = APPLICATION
    step_until(lambda: kept.running is None, lambda: kept.step(WISH, clock.now))
    clock.now += 60
    started(kept, clock)
    kept.step(WISH, clock.now + 61)
    launcher.children[-1].kill()
    step_until(lambda: kept.running is None, lambda: kept.step(WISH, clock.now + 62))
    kept.step(WISH, clock.now + 63.1)
    assert kept.running is not None


def test_restarted_keeper_adopts_the_running_application(files: ComputeFiles, launcher: Launcher, clock: Clock):
    incarnation = started(keep(files, launcher), clock)
    adopter = keep(files, launcher)
    adopter.step(WISH, clock.now)
    assert adopter.running is not None
    assert adopter.running.incarnation == incarnation
    assert len(launcher.children) == 1


def test_restarted_keeper_adopts_the_running_application_after_the_clock_was_set(
    files: ComputeFiles, launcher: Launcher, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    incarnation = started(keep(files, launcher), clock)
    boot_s = psutil.boot_time()
    set_clock(monkeypatch, lambda: boot_s + 1)
    adopter = keep(files, launcher)
    for _ in range(20):  # an application that seems to have ended is cleared away and started again
        adopter.step(WISH, clock.now)
        clock.now += 1
        time.sleep(0.02)
    assert adopter.running is not None
    assert (adopter.running.incarnation, len(launcher.children)) == (incarnation, 1)
    assert launcher.children[0].poll() is None


def test_keeper_killed_before_it_recorded_the_pid_adopts_by_incarnation(
    files: ComputeFiles, launcher: Launcher, clock: Clock
):
    incarnation = started(keep(files, launcher), clock)
    noted = files.running("c1")
    assert noted is not None
    files.started(type(noted)("c1", 1, incarnation, 0, 1))
    adopter = keep(files, launcher)
    assert adopter.running is not None
    assert adopter.running.pid == launcher.children[0].pid


def test_adopted_application_that_dies_is_restarted(files: ComputeFiles, launcher: Launcher, clock: Clock):
    first = started(keep(files, launcher), clock)
    adopter = keep(files, launcher)
    launcher.children[0].kill()
    launcher.children[0].wait()
    step_until(lambda: adopter.running is None, lambda: adopter.step(WISH, clock.now))
    assert members(first) == []
    adopter.step(WISH, clock.now + 2)
    assert adopter.running is not None
    assert adopter.running.starts == 2


def test_reused_pid_is_not_adopted(files: ComputeFiles, launcher: Launcher, clock: Clock):
    incarnation = started(keep(files, launcher), clock)
    launcher.children[0].kill()
    launcher.children[0].wait()
    noted = files.running("c1")
    assert noted is not None
    files.started(type(noted)("c1", 1, incarnation, os.getpid(), 1))  # our pid, but not our incarnation
    adopter = keep(files, launcher)
    step_until(lambda: adopter.running is None, lambda: adopter.step(None, clock.now))
    assert members(incarnation) == []


def test_new_epoch_asks_the_old_application_to_stop_and_then_starts(
    files: ComputeFiles, launcher: Launcher, clock: Clock
):
    asked = Asked()
    kept = keep(files, launcher, asked)
    first = started(kept, clock)
    newer = DesiredApplication("c1", 2, "local", RELEASE)
    kept.step(newer, clock.now)
    assert asked.asked == [("c1", first)]
    launcher.children[0].send_signal(signal.SIGTERM)  # the application drains and ends
    step_until(lambda: kept.running is not None and kept.running.epoch == 2, lambda: kept.step(newer, clock.now))
    assert members(first) == []


def test_unresponsive_application_is_ended_by_signals(files: ComputeFiles, launcher: Launcher, clock: Clock):
    launcher.program = "import signal; signal.signal(15, signal.SIG_IGN)" + APPLICATION
    kept = keep(files, launcher)
    incarnation = started(kept, clock)
    kept.step(None, clock.now)
    kept.step(None, clock.now + DRAIN_S - 1)
    assert kept._stage is StopStage.DRAIN, "a drain may last as long as the lanes and the Spark session need"
    kept.step(None, clock.now + DRAIN_S + 1)
    kept.step(None, clock.now + DRAIN_S + TERM_S + 2)
    step_until(lambda: kept.running is None, lambda: kept.step(None, clock.now + DRAIN_S + TERM_S + 3))
    assert members(incarnation) == []


def test_application_that_has_started_no_lane_is_ended_without_a_drain(
    files: ComputeFiles, launcher: Launcher, clock: Clock
):
    asked = Asked()
    launcher.program = "import time; time.sleep(300)"  # Spark is starting: no Python worker yet
    kept = keep(files, launcher, asked)
    kept.step(WISH, clock.now)
    step_until(lambda: kept.running is None, lambda: kept.step(None, clock.now))
    assert asked.asked == []
    assert launcher.children[0].wait(5) == -signal.SIGTERM


def test_application_on_a_cluster_is_always_asked_to_stop_as_its_lanes_run_elsewhere(
    files: ComputeFiles, launcher: Launcher, clock: Clock
):
    asked = Asked()
    launcher.program = "import time; time.sleep(300)"
    kept = keep(files, launcher, asked)
    kept.step(DesiredApplication("c1", 1, "spark://master:7077", RELEASE), clock.now)
    kept.step(None, clock.now)
    assert len(asked.asked) == 1


def test_new_epoch_ignores_the_backoff_of_the_previous_one(files: ComputeFiles, launcher: Launcher, clock: Clock):
    kept = keep(files, launcher)
    launcher.program = "raise SystemExit(3)"
    for start in (1, 2, 3):
        kept.step(WISH, clock.now)
        step_until(lambda: kept.running is None, lambda: kept.step(WISH, clock.now))
        assert kept.starts == start
        clock.now += 30
    clock.now -= 30
    kept.step(WISH, clock.now)
    assert files.running("c1") is None, "the back-off has not ended"
    launcher.program = APPLICATION
    kept.step(DesiredApplication("c1", 2, "local", "fedcba9876543210"), clock.now)
    noted = files.running("c1")
    assert noted is not None
    assert (noted.epoch, noted.release) == (2, "fedcba9876543210")


def test_failed_start_is_retried_later(files: ComputeFiles, clock: Clock):
    class Broken(Launcher):
        def start(
            self, desired: DesiredApplication, incarnation: str, standby: Path | None = None
        ) -> "subprocess.Popen[bytes]":
            raise FileNotFoundError(f"spark-submit for {desired.cell}/{incarnation}, {standby}")

    kept = keep(files, Broken())
    kept.step(WISH, clock.now)
    assert (kept.running, kept.starts) == (None, 1)
    kept.step(WISH, clock.now + 0.5)
    assert kept.starts == 1
    kept.step(WISH, clock.now + 1.1)
    assert kept.starts == 2


def test_only_one_keeper_holds_the_lock(tmp_path: Path):
    lock = take_lock(tmp_path)
    assert lock is not None
    assert take_lock(tmp_path) is None
    lock.close()
    again = take_lock(tmp_path)
    assert again is not None
    again.close()
