"""The containers' health check: its reasons, and beat's file, which is the health of a program without a port."""

import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from celery.beat import PersistentScheduler

from config.celery import app
from localbox.healthy import file_fresh, main
from localbox.settings import ROOT

NOW_S = 1_700_000_000.0


def written(path: Path, age_s: float) -> Path:
    path.touch()
    os.utime(path, (NOW_S - age_s, NOW_S - age_s))
    return path


@pytest.mark.parametrize(("age_s", "why"), [(0, None), (400, None), (401, "is 401 s old")])
def test_file_is_healthy_for_as_long_as_it_says(tmp_path: Path, age_s: float, why: str | None):
    found = file_fresh(written(tmp_path / "schedule", age_s), 400, NOW_S)
    assert found is None if why is None else why in str(found)


def test_missing_file_is_not_healthy(tmp_path: Path):
    assert "does not exist" in str(main([str(tmp_path / "schedule"), "400"]))


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_exit_code_follows_the_answer(status: int, code: int):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        command = [sys.executable, "-m", "localbox.healthy", f"http://127.0.0.1:{server.server_port}/readyz"]
        done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": "platform:."}, capture_output=True, check=False)
        server.shutdown()
        thread.join()
    assert done.returncode == code


def test_beat_writes_its_schedule_more_often_than_the_check_of_compose_requires(tmp_path: Path):
    path = tmp_path / "celerybeat-schedule"
    scheduler = PersistentScheduler(app=app, schedule_filename=str(path))
    assert scheduler.schedule, "opens the file"
    for file in tmp_path.iterdir():
        written(file, 10_000)
    assert file_fresh(path, 400, NOW_S)
    scheduler.sync()
    scheduler.close()
    assert main([str(path), "400"]) is None
    assert scheduler.sync_every < 400
