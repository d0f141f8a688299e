"""`make demo ONCE=1 PIPE=full`: three kinds of destinations, and a script that knows the expected result."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from localbox.demo.full import ACCOUNT
from localbox.end_processes import marked
from localbox.testing import ROOT


def test_accounting_script_is_short_and_imports_nothing_of_penstock():
    text = ACCOUNT.read_text()
    assert len(text.splitlines()) <= 55
    assert not any(f"{how} {room}" in text for how in ("import", "from") for room in ("dataplane", "localbox", "mgmt"))


@pytest.mark.long
@pytest.mark.timeout(700)
def test_full_run_gives_each_destination_what_the_script_expects():
    (ROOT / "var" / "test").mkdir(parents=True, exist_ok=True)
    var = Path(tempfile.mkdtemp(prefix="full-", dir=ROOT / "var" / "test"))
    variables = {"ONCE": "1", "PIPE": "full", "COUNT": "700", "RATE": "200", "PENSTOCK_VAR": str(var)}
    env = os.environ | variables | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}"}
    command = [sys.executable, "-m", "localbox.demo"]
    answer = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=650, check=False)
    assert answer.returncode == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert result["strange"] == 0
    assert all(result[name]["due"] and not result[name]["missing"] for name in ("feed", "lake", "receiver"))
    assert marked(var / "once") == []
    shutil.rmtree(var)
