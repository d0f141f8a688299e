"""Services of a test run end with their runner: by a signal, by Ctrl-C, or with a crashed xdist worker."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

from localbox.settings import ROOT
from localbox.state import read_snapshot
from tests.guardian import MARK, marked
from tests.support.patience import until

LIMIT_S: Final = 60.0  # for the start; the end needs some seconds, and more on a busy machine
CONFTEST: Final = "from tests.conftest import pytest_configure\n"
STUBBORN: Final = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
SUITE: Final = f"""
import subprocess, sys, time
from pathlib import Path
from localbox.testing import box_of

def test_forever():
    with box_of("redis") as box:
        subprocess.Popen([sys.executable, "-c", {STUBBORN!r}], start_new_session=True)
        Path(__file__).with_name("ready").write_text(str(box.var))
        time.sleep(600)

def test_next():
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _ctrl_c_is_heeded() -> Iterator[None]:
    """SIGINT handling of a foreground job: a shell starts background jobs with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Run:
    """A pytest process in the middle of a test with services."""

    def __init__(self, folder: Path, *more: str) -> None:
        (folder / "conftest.py").write_text(CONFTEST)
        (folder / "test_it.py").write_text(SUITE)
        own = {name: value for name, value in os.environ.items() if name not in (MARK, "PYTEST_XDIST_WORKER")}
        options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), "-q"]
        options += ["-p", "no:cacheprovider", "-p", "no:randomly"]  # the test with services is first
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *more, str(folder / "test_it.py")],
            cwd=ROOT,
            env=own | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "platform")))},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._ready = folder / "ready"
        self.services: set[psutil.Process] = set()

    @property
    def var(self) -> Path:
        """Return the data folder of its box."""
        return Path(self._ready.read_text())

    def wait_ready(self) -> None:
        """Wait until the test has all of its services."""
        until(lambda: self._ready.exists() and self._ready.read_text(), "the services of the run", LIMIT_S)
        supervisor = read_snapshot(self.var / "run" / "state.json")
        assert supervisor is not None
        mark = psutil.Process(supervisor.supervisor.pid).environ()[MARK].split("/")[0]
        self.services = marked(mark) - {psutil.Process(self.process.pid)}
        words = [" ".join(one.cmdline()) for one in self.services]
        assert sum("redis-server" in one or "valkey-server" in one for one in words) == 1, words
        assert sum("SIG_IGN" in one for one in words) >= 1, words

    def wait_ended(self) -> None:
        """Wait until every service has ended and its data are removed."""
        until(lambda: not self._living(), "the end of every service", seen=self._living)
        until(lambda: not self.var.exists(), "their data are removed")

    def _living(self) -> list[psutil.Process]:
        return [one for one in self.services if lives(one)]

    def close(self) -> None:
        """End the processes that a failed test left."""
        self.process.kill()
        self.process.wait(10)
        for process in self.services:
            with contextlib.suppress(psutil.Error):
                process.kill()


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


@contextlib.contextmanager
def running(folder: Path, *more: str) -> Iterator[Run]:
    run = Run(folder, *more)
    try:
        run.wait_ready()
        yield run
    finally:
        run.close()


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.long)],
    ids=lambda number: number.name,
)
def test_services_end_when_a_signal_ends_the_runner(tmp_path: Path, number: signal.Signals):
    with running(tmp_path) as run:
        run.process.send_signal(number)
        run.process.wait(LIMIT_S)
        run.wait_ended()


@pytest.mark.long
def test_services_of_a_crashed_xdist_worker_end_while_the_run_continues(tmp_path: Path):
    with running(tmp_path, "-n", "1") as run:
        (worker,) = (one for one in run.services if "sys.stdin.readline" in str(one.cmdline()))
        worker.kill()
        run.wait_ended()
        assert run.process.poll() is None, "another worker runs the next test"


def test_services_of_workers_end_with_a_killed_controller(tmp_path: Path):
    with running(tmp_path, "-n", "1") as run:
        run.process.kill()
        run.process.wait(LIMIT_S)
        run.wait_ended()
