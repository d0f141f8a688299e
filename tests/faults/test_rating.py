"""Rating a cell of a real box: what is found is stored, and however a run ends, nothing of it goes on."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from localbox.testing import ROOT, Box
from tests.rig.box_shell import asked
from tests.rig.data_plane import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_800)]
RATE = (sys.executable, str(ROOT / "manage.py"), "rate_traffic", "--hold", "3", "--first", "100")
BEAT = "SELECT DISTINCT kind FROM mgmt_heartbeat WHERE state = 'running' AND at > now() - interval '4 seconds'"
PAUSES = "SELECT count(*) FROM mgmt_pause WHERE ended_at IS NULL AND until > now()"
LEFT = """
SELECT (SELECT count(*) FROM mgmt_pipe WHERE state <> 'closed'),
       (SELECT count(*) FROM mgmt_apikey WHERE revoked_at IS NULL),
       (SELECT count(*) FROM mgmt_pause WHERE ended_at IS NULL)
"""
RATED = """
SELECT "group", units, per_s, at_least, cpu_us FROM mgmt_rating
WHERE at = (SELECT max(at) FROM mgmt_rating) ORDER BY id
"""
NOTHING: list[Any] = [(0, 0, 0)]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    var: Path = tmp_path_factory.mktemp("rating") / "var"
    with Box(var) as running:
        until(lambda: {("ingest",), ("process",), ("transmit",)} <= set(asked(running, BEAT)), "all beat", 120)
        yield running


@contextmanager
def under_way(box: Box) -> "Iterator[tuple[subprocess.Popen[bytes], list[psutil.Process]]]":
    """A run that has begun to measure, and its sender and receiver."""
    with subprocess.Popen(RATE, cwd=ROOT, env=box.env, stderr=subprocess.PIPE) as run:
        assert run.stderr is not None
        while b" held " not in (line := run.stderr.readline()):
            assert line, "it ended before its first step"
        yield run, psutil.Process(run.pid).children()


def test_a_rating_is_stored_with_each_groups_part_and_leaves_nothing_behind(box: Box):
    done = box.run(*RATE, "--most", "200", "--json", timeout_s=240)
    assert done.returncode == 0, done.stderr
    report = msgspec.json.decode(done.stdout)
    assert (report["rate"], report["at_least"], report["where"]) == (200.0, True, "none"), done.stderr
    rows = asked(box, RATED)
    assert [row[0] for row in rows] == ["ingest", "process", "transmit"]
    for _, units, per_s, at_least, cpu_us in rows:
        assert per_s * units == pytest.approx(200, rel=0.1)
        assert at_least
        assert 5 < cpu_us < 5_000
    assert asked(box, LEFT) == NOTHING
    assert asked(box, "SELECT count(*) FROM mgmt_deadletter") == [(0,)]


def test_a_run_that_is_interrupted_ends_all_that_it_began(box: Box):
    with under_way(box) as (run, ends):
        assert asked(box, PAUSES) == [(1,)]
        run.send_signal(signal.SIGTERM)
        assert run.wait(120) == 130
    assert asked(box, LEFT) == NOTHING
    assert not any(end.is_running() for end in ends)


def test_after_a_run_that_was_killed_the_ends_are_gone_and_the_next_run_clears_the_rest(box: Box):
    with under_way(box) as (run, ends):
        run.kill()
    until(lambda: not any(end.is_running() for end in ends), "sender and receiver have ended", 10)
    assert asked(box, PAUSES) == [(1,)]
    began = time.monotonic()
    done = box.run(*RATE, "--most", "100", timeout_s=240)
    assert done.returncode == 0, done.stderr
    assert "takes at least 100 events a second" in done.stdout, f"after {time.monotonic() - began:.0f} s"
    assert asked(box, LEFT) == NOTHING
