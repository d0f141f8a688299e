"""Keeper with standby applications as real processes: one takes over at once, and none outlives its keeper or epoch."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import psutil
import pytest

from controlplane.compute.cell_supervisor import TERM_S, CellSupervisor
from controlplane.compute.files import ComputeFiles
from controlplane.compute.port import DesiredApplication, RunningApplication
from controlplane.compute.processes import INCARNATION_VARIABLE, members
from controlplane.compute.standby import END_S, READY_S, RETRY_S, START_AFTER_S, Standby
from localbox.settings import ROOT
from tests.support.patience import step_until

RELEASE: Final = "0123456789abcdef"
WISH: Final = DesiredApplication("c1", 1, "local", RELEASE)
NEWER: Final = DesiredApplication("c1", 2, "local", RELEASE)
# An application that waits at its FIFO as the cell's driver does, and then serves.
APPLICATION: Final = """
import os, select, sys, time
if len(sys.argv) > 1:
    try:
        fifo = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        sys.exit()
    while True:
        try:
            if os.read(fifo, 1):
                break
            sys.exit()
        except BlockingIOError:
            pass
        if os.path.exists(sys.argv[1]):
            os.unlink(sys.argv[1])
        select.select([fifo], [], [], 0.5)
print("serving", flush=True)
time.sleep(300)
"""
# A keeper that holds a standby application until it is killed.
KEEPER: Final = """
import sys, time
from pathlib import Path
from tests.integration.controlplane.test_standby import APPLICATION, START_AFTER_S, Launcher, keep, WISH
launcher = Launcher(Path(sys.argv[1]))
kept = keep(launcher)
kept.step(WISH, 0.0)
launcher.programs = [f"import time; time.sleep({sys.argv[2]})" + APPLICATION]
while True:
    kept.step(WISH, START_AFTER_S + 1)
    time.sleep(0.02)
"""


class Launcher:
    """Launcher of a small real application instead of Spark; `programs` are those of the next starts."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self.programs: list[str] = []
        self.standbys: list[subprocess.Popen[bytes]] = []
        self.started: list[subprocess.Popen[bytes]] = []

    def start(
        self, desired: DesiredApplication, incarnation: str, standby: Path | None = None
    ) -> "subprocess.Popen[bytes]":
        env = os.environ | {INCARNATION_VARIABLE: incarnation, "CELL": desired.cell}
        program = self.programs.pop(0) if self.programs else APPLICATION
        command = [sys.executable, "-c", program, *([str(standby)] if standby else [])]
        with (self.var / f"log-{incarnation}").open("wb") as log:
            child = subprocess.Popen(command, env=env, stdout=log, start_new_session=True)
        (self.standbys if standby else self.started).append(child)
        return child

    def serves(self, incarnation: str) -> bool:
        return (self.var / f"log-{incarnation}").read_text() == "serving\n"


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    launcher = Launcher(tmp_path)
    yield launcher
    for child in (*launcher.started, *launcher.standbys):
        child.kill()
        child.wait()


def keep(launcher: Launcher) -> CellSupervisor:
    standby = Standby("c1", launcher.var / "standby", launcher)
    return CellSupervisor("c1", ComputeFiles(launcher.var), launcher, lambda *_: None, lambda: 0.5, standby=standby)


def incarnation_of(kept: CellSupervisor) -> str:
    assert kept.running is not None
    return kept.running.incarnation


def pid_of(kept: CellSupervisor) -> int:
    assert kept.running is not None
    return kept.running.pid


def takes_over(kept: CellSupervisor, pid: int) -> bool:
    return kept.running is not None and kept.running.pid == pid


def has_standbys(launcher: Launcher, count: int) -> bool:
    return len(launcher.standbys) == count


def with_standby(launcher: Launcher) -> CellSupervisor:
    """Return a supervisor whose application runs, at 0 s, and whose standby application is ready, at 11 s."""
    kept = keep(launcher)
    kept.step(WISH, 0.0)
    kept.step(WISH, START_AFTER_S - 1)
    assert launcher.standbys == []
    kept.step(WISH, START_AFTER_S + 1)
    assert len(launcher.standbys) == 1
    step_until(lambda: not list((launcher.var / "standby").iterdir()))
    return kept


def test_standby_application_takes_over_without_a_backoff_and_is_replaced(launcher: Launcher):
    kept, now = with_standby(launcher), START_AFTER_S + 2
    for number in (1, 2):
        standby = launcher.standbys[-1]
        psutil.Process(pid_of(kept)).kill()
        step_until(partial(takes_over, kept, standby.pid), partial(kept.step, WISH, now))
        noted = ComputeFiles(launcher.var).running("c1")
        assert noted is not None
        assert (noted.pid, noted.starts, len(launcher.started)) == (standby.pid, number + 1, 1)
        step_until(lambda: launcher.serves(incarnation_of(kept)))
        now += START_AFTER_S + 1
        kept.step(WISH, now)
        assert len(launcher.standbys) == number + 1
        step_until(lambda: not list((launcher.var / "standby").iterdir()))


def test_application_that_ends_before_its_standby_is_ready_restarts_after_a_backoff(launcher: Launcher):
    kept = keep(launcher)
    kept.step(WISH, 0.0)
    launcher.programs = ["import time; time.sleep(300)"]  # never ready
    kept.step(WISH, START_AFTER_S + 1)
    launcher.started[0].kill()
    step_until(lambda: kept.running is None, lambda: kept.step(WISH, START_AFTER_S + 2))
    kept.step(WISH, START_AFTER_S + 4)
    assert len(launcher.started) == 2


@pytest.mark.parametrize("desired", [None, NEWER], ids=["none", "another epoch"])
def test_standby_application_ends_with_what_it_stands_by_for(launcher: Launcher, desired: DesiredApplication | None):
    kept, now = with_standby(launcher), START_AFTER_S + 2
    step_until(lambda: launcher.standbys[0].poll() == 0, lambda: kept.step(desired, now))
    step_until(lambda: kept.running is None or kept.running.epoch == 2, lambda: kept.step(desired, now))
    assert not launcher.serves(kept._standby.incarnation if kept._standby else "")
    step_until(lambda: kept.is_idle or desired, lambda: kept.step(desired, now))
    assert len(launcher.started) == (1 if desired is None else 2)


def test_standby_application_that_ignores_its_end_is_killed(launcher: Launcher):
    kept = keep(launcher)
    kept.step(WISH, 0.0)
    launcher.programs = ["import time; time.sleep(300)"]
    kept.step(WISH, START_AFTER_S + 1)
    kept.step(None, START_AFTER_S + 2)
    assert not kept.is_idle
    step_until(lambda: kept.is_idle, lambda: kept.step(None, START_AFTER_S + 60))
    assert launcher.standbys[0].wait(5) < 0


def test_standby_application_that_is_never_ready_is_ended(launcher: Launcher):
    kept = keep(launcher)
    kept.step(WISH, 0.0)
    launcher.programs = ["import time; time.sleep(300)"]
    now = START_AFTER_S + 1
    kept.step(WISH, now)
    kept.step(WISH, now + READY_S + 1)
    step_until(lambda: launcher.standbys[0].poll() is not None, partial(kept.step, WISH, now + READY_S + END_S + 2))
    step_until(lambda: len(launcher.standbys) == 2, partial(kept.step, WISH, now + READY_S + RETRY_S + 2))


def test_standby_applications_that_end_are_started_again_after_a_growing_pause(launcher: Launcher):
    kept, now = keep(launcher), START_AFTER_S + 1
    kept.step(WISH, 0.0)
    launcher.programs = ["raise SystemExit(2)"] * 4  # an older release does not know the option
    for number, pause_s in enumerate((RETRY_S, 2 * RETRY_S, 4 * RETRY_S), 1):
        step_until(partial(has_standbys, launcher, number), partial(kept.step, WISH, now))
        step_until(lambda: not kept._standby or not kept._standby.exists, partial(kept.step, WISH, now))
        kept.step(WISH, now + pause_s - 1)
        assert len(launcher.standbys) == number
        now += pause_s
    step_until(lambda: len(launcher.standbys) == 4, partial(kept.step, WISH, now))
    step_until(lambda: not kept._standby or not kept._standby.exists, partial(kept.step, WISH, now))
    step_until(lambda: kept.running is not None and kept.running.epoch == 2, partial(kept.step, NEWER, now))
    kept.step(NEWER, now + START_AFTER_S + 1)
    assert len(launcher.standbys) == 5, "another epoch waits for no pause"


def test_application_takes_over_only_when_every_process_of_the_other_one_has_ended(launcher: Launcher):
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(300)"
    launcher.programs = [
        f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {stubborn!r}]); time.sleep(300)"
    ]
    kept, now = with_standby(launcher), START_AFTER_S + 2
    first, standby = incarnation_of(kept), launcher.standbys[0]
    step_until(lambda: (launcher.var / f"log-{first}").read_text() == "ready\n")
    launcher.started[0].kill()
    launcher.started[0].wait()
    for _ in range(10):  # SIGTERM, which the child ignores
        kept.step(WISH, now)
        time.sleep(0.02)
    assert members(first)
    assert not takes_over(kept, standby.pid)
    step_until(partial(takes_over, kept, standby.pid), partial(kept.step, WISH, now + TERM_S + 1))
    assert members(first) == []


def test_standby_application_is_activated_only_after_it_was_recorded(launcher: Launcher):
    class Full(ComputeFiles):
        def started(self, running: RunningApplication) -> None:
            raise OSError(f"no space left for {running}")

    kept, now = with_standby(launcher), START_AFTER_S + 2
    standby = kept._standby
    assert standby is not None
    kept._files = Full(launcher.var)
    launcher.started[0].kill()
    with pytest.raises(OSError, match="no space"):
        step_until(lambda: False, partial(kept.step, WISH, now))
    time.sleep(0.2)
    assert launcher.standbys[0].poll() is None
    assert not launcher.serves(standby.incarnation)


def test_cell_on_a_cluster_has_no_standby_application(launcher: Launcher):
    kept, desired = keep(launcher), DesiredApplication("c1", 1, "spark://master:7077", RELEASE)
    kept.step(desired, 0.0)
    kept.step(desired, START_AFTER_S + 1)
    assert launcher.standbys == []


@pytest.mark.parametrize("sleeps_s", [0, 2], ids=["when it is ready", "before it has opened its FIFO"])
def test_standby_application_ends_with_a_killed_keeper_and_its_application_is_adopted(tmp_path: Path, sleeps_s: int):
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}
    keeper = subprocess.Popen([sys.executable, "-c", KEEPER, str(tmp_path), str(sleeps_s)], env=env)

    def logs() -> list[str]:
        return [path.name.removeprefix("log-") for path in tmp_path.glob("log-*")]

    try:
        step_until(lambda: len(logs()) == 2 and (sleeps_s or not list((tmp_path / "standby").iterdir())))
        noted = ComputeFiles(tmp_path).running("c1")
        assert noted is not None
        standby = next(name for name in logs() if name != noted.incarnation)
        step_until(lambda: members(standby))
        keeper.kill()
        keeper.wait()
        step_until(lambda: not members(standby))
        adopter = keep(Launcher(tmp_path))
        adopter.step(WISH, 0.0)
        assert incarnation_of(adopter) == noted.incarnation
        assert members(noted.incarnation)
    finally:
        keeper.kill()
        for name in logs():
            for process in members(name):
                process.kill()
