"""A process is recognised by its pid and its start, also after the system clock was set."""

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from localbox.state import ProcessIdentity
from tests.support.system_clock import set_clock


@pytest.fixture
def other() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("step_s", [1.0, -3_600.0])
def test_process_is_recognised_after_the_clock_was_set(monkeypatch: pytest.MonkeyPatch, step_s: float):
    known = ProcessIdentity.of(os.getpid())
    assert known is not None
    before_s, boot_s = psutil.Process().create_time(), psutil.boot_time()
    set_clock(monkeypatch, lambda: boot_s + step_s)
    assert psutil.Process().create_time() == before_s + step_s, "the simulated change reaches psutil"
    assert known.process() is not None


def test_clock_that_changes_during_the_reading_is_read_again(monkeypatch: pytest.MonkeyPatch):
    known = ProcessIdentity.of(os.getpid())
    assert known is not None
    boot_s = psutil.boot_time()
    reads = iter([boot_s, boot_s + 1])
    set_clock(monkeypatch, lambda: next(reads, boot_s + 1))
    assert known.process() is not None


def test_process_that_started_at_another_time_is_not_recognised(other: "subprocess.Popen[bytes]"):
    known = ProcessIdentity.of(other.pid)
    assert known is not None
    assert known.process() is not None
    assert ProcessIdentity(other.pid, known.started_s - 1).process() is None


def test_ended_process_is_not_recognised_even_while_it_is_a_zombie(other: "subprocess.Popen[bytes]"):
    known = ProcessIdentity.of(other.pid)
    assert known is not None
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert known.process() is None
    other.wait()
    assert ProcessIdentity.of(other.pid) is None
