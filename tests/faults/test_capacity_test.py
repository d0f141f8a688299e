"""Capacity test of a real box's cell: the result is stored, and every run, however it ends, is cleaned up."""

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
from tests.support.box_shell import query_rows
from tests.support.patience import until

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
        until(lambda: {("ingest",), ("process",), ("transmit",)} <= set(query_rows(running, BEAT)), "all beat", 120)
        yield running


@contextmanager
def under_way(box: Box) -> "Iterator[tuple[subprocess.Popen[bytes], list[psutil.Process]]]":
    """Start a run, wait until it measures, and yield it with its sender and receiver."""
    with subprocess.Popen(RATE, cwd=ROOT, env=box.env, stderr=subprocess.PIPE) as run:
        assert run.stderr is not None
        while b" held " not in (line := run.stderr.readline()):
            assert line, "the run ended before its first step"
        yield run, psutil.Process(run.pid).children()


def test_capacity_result_is_stored_for_each_group_and_leaves_nothing_behind(box: Box):
    done = box.run(*RATE, "--most", "200", "--json", timeout_s=240)
    assert done.returncode == 0, done.stderr
    report = msgspec.json.decode(done.stdout)
    assert (report["rate"], report["at_least"], report["where"]) == (200.0, True, "none"), done.stderr
    rows = query_rows(box, RATED)
    assert [row[0] for row in rows] == ["ingest", "process", "transmit"]
    for _, units, per_s, at_least, cpu_us in rows:
        assert per_s * units == pytest.approx(200, rel=0.1)
        assert at_least
        assert 5 < cpu_us < 5_000
    assert query_rows(box, LEFT) == NOTHING
    assert query_rows(box, "SELECT count(*) FROM mgmt_deadletter") == [(0,)]


def test_interrupted_run_ends_everything_it_started(box: Box):
    with under_way(box) as (run, ends):
        assert query_rows(box, PAUSES) == [(1,)]
        run.send_signal(signal.SIGTERM)
        assert run.wait(120) == 130
    assert query_rows(box, LEFT) == NOTHING
    assert not any(end.is_running() for end in ends)


def test_sender_and_receiver_end_with_a_killed_run_and_the_next_run_cleans_up_the_rest(box: Box):
    with under_way(box) as (run, ends):
        run.kill()
    until(lambda: not any(end.is_running() for end in ends), "sender and receiver have ended", 10)
    assert query_rows(box, PAUSES) == [(1,)]
    began = time.monotonic()
    done = box.run(*RATE, "--most", "100", timeout_s=240)
    assert done.returncode == 0, done.stderr
    assert "takes at least 100 events per second" in done.stdout, f"after {time.monotonic() - began:.0f} s"
    assert query_rows(box, LEFT) == NOTHING
