"""Postgres is unavailable for a while: the Observer and the tick wait, report it and resume automatically."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from controlplane.kafka import producer
from controlplane.settings import control_settings
from controlplane.topics import TopicCreator, cluster_plans
from dataplane.ledger.heartbeat import HeartbeatRecord, encode_heartbeat
from dataplane.names import HEARTBEAT_TOPIC
from localbox.testing import ROOT, Box, box_of
from tests.support.patience import until


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with box_of("postgres") as box:
        migrated = box.run(sys.executable, "manage.py", "migrate", "--noinput", timeout_s=180)
        assert migrated.returncode == 0, migrated.stderr
        yield box


@pytest.fixture
def processes(box: Box, kafka: str, tmp_path: Path) -> dict[str, str]:
    """Environment of processes that use that Postgres."""
    TopicCreator(kafka).ensure(cluster_plans(control_settings().topics))
    return box.env | {"PENSTOCK_KAFKA": kafka, "PENSTOCK_VAR": str(tmp_path)}


def beat(kafka: str, name: str) -> None:
    writer = producer(kafka)
    now_us = time.time_ns() // 1000
    writer.produce(
        HEARTBEAT_TOPIC,
        encode_heartbeat(HeartbeatRecord("zz", name, "process", 1, "a", now_us, "running", 1, 1, "host", 0.0, 1)),
    )
    assert writer.flush(10) == 0


def is_stored(url: str, name: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            row = connection.execute("SELECT 1 FROM mgmt_heartbeat WHERE writer = %s", [name]).fetchone()
    except psycopg.OperationalError:
        return False
    return row is not None


def test_observer_process_survives_a_postgres_restart(box: Box, kafka: str, processes: dict[str, str]):
    url = processes["DATABASE_URL"]
    observer = subprocess.Popen([sys.executable, "manage.py", "observe"], cwd=ROOT, env=processes)

    def told(name: str) -> bool:
        beat(kafka, name)
        return is_stored(url, name)

    try:
        until(lambda: told("before"))
        killed = box.kill("postgres")
        box.wait_ready("postgres", not_pid=killed)
        until(lambda: told("after"))
        assert observer.poll() is None, "the process has not ended"
    finally:
        observer.send_signal(signal.SIGTERM)
        assert observer.wait(30) == 0


TICK = """
import django
django.setup()
from controlplane.provisioner.tasks import tick
print(tick())
"""
PAGE = """
import django
django.setup()
from django.test import Client
client = Client(raise_request_exception=False, headers={"host": "127.0.0.1"})
client.cookies["penstock_session"] = "of-somebody-signed-in"
for path in ("/", "/api/v1/me/"):
    answer = client.get(path)
    print(answer.status_code, answer.headers["Retry-After"])
"""


@pytest.mark.parametrize(
    ("code", "says"),
    [
        pytest.param(TICK, "waiting for Postgres", id="a tick"),
        pytest.param(PAGE, "503 5\n503 5", id="the console and the API"),
    ],
)
def test_tick_and_pages_report_that_postgres_is_unavailable_and_end(code: str, says: str):
    nowhere = os.environ | {
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")]),
    }
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, cwd=ROOT, env=nowhere, capture_output=True, text=True, check=True)
    assert said.stdout.strip().endswith(says)
