"""Lanes that a signal ends. In processes of their own: they change the signal handlers and the timer of one."""

import subprocess
import sys

import pytest

from localbox.settings import ROOT

PROGRAM = """
import os, signal, sys, time
from dataplane.jobs import lanes

class Lane:
    reason = ""
    def leave(self, reason):
        self.reason = reason

lane, before = Lane(), signal.getsignal(signal.SIGTERM)
lanes.LEAVE_S = 0.3
with lanes.leaves_on_signal(lane):
    os.kill(os.getpid(), signal.Signals[sys.argv[1]])
    while not lane.reason:
        pass
    if sys.argv[2] == "blocks":
        time.sleep(60)
print(lane.reason)
time.sleep(0.5)
print(signal.getsignal(signal.SIGTERM) == before)
"""


def ended(by: str, then: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", PROGRAM, by, then]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM"])
def test_lane_leaves_on_a_signal_and_its_process_can_be_reused(name: str):
    done = ended(name, "leaves")
    assert (done.stdout.splitlines(), done.returncode) == ([f"ended by {name}", "True"], 0)


def test_process_of_a_lane_that_cannot_leave_ends():
    assert ended("SIGTERM", "blocks").returncode == -14  # SIGALRM
