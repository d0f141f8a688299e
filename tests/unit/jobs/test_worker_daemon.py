"""The daemon from which the Python workers of a cell's application are forked."""

import subprocess
import sys

from localbox.settings import ROOT

LANES = ["dataplane.process.work", "dataplane.transmit.work", "dataplane.retrier.work", "dataplane.runtime.lanes.lane"]
PROGRAM = """
import os, sys
import dataplane.jobs.worker_daemon
print(len(os.listdir("/proc/self/task")), *[name for name in sys.argv[1:] if name not in sys.modules])
"""


def test_code_of_lanes_is_imported_and_no_thread_is_started_before_workers_are_forked():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *LANES], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["1"]
