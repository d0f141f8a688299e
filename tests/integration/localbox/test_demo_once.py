"""`make demo ONCE=1` as a whole: a box of its own, real events, and accounts that agree."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from localbox.end_processes import marked
from localbox.testing import ROOT

COUNTS = ["accepted", "unacked", "expected", "delivered", "duplicates", "dead", "filtered", "lost"]
FIGURES = ["p50_ms", "p95_ms", "p99_ms", "events_per_s"]
COUNT = 600


@pytest.mark.timeout(1_200)
def test_run_ends_with_every_unit_delivered_once_and_equal_accounts():
    (ROOT / "var" / "test").mkdir(parents=True, exist_ok=True)
    var = Path(tempfile.mkdtemp(prefix="once-", dir=ROOT / "var" / "test"))
    variables = {"ONCE": "1", "COUNT": str(COUNT), "RATE": "200", "BATCH": "3", "PENSTOCK_VAR": str(var)}
    env = os.environ | variables | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}"}
    command = [sys.executable, "-m", "localbox.demo"]
    answer = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=350, check=False)
    assert answer.returncode == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert list(result) == COUNTS + FIGURES
    assert [result[name] for name in COUNTS] == [COUNT, 0, COUNT, COUNT, 0, 0, 0, 0]
    assert 0 < result["p50_ms"] <= result["p95_ms"] <= result["p99_ms"]
    assert marked(var / "once") == []
    shutil.rmtree(var)
