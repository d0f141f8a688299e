"""The supervisor with real services: readiness, restarts, and a clean shutdown from every state."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest
from confluent_kafka.admin import NewTopic

from localbox.end_processes import marked
from localbox.managed_process import ManagedProcess
from localbox.program import Program, StartStage
from localbox.settings import settings_from
from localbox.state import ProcessIdentity, read_snapshot
from localbox.supervisor import living, state_file
from localbox.testing import ROOT, Box, box_of
from tests.support.kafka import broker_admin
from tests.support.patience import Patience


@pytest.fixture(scope="module")
def redis_box() -> Iterator[Box]:
    """The smallest box: it starts fast, so most duties of the supervisor are tested on it."""
    with box_of("redis") as box:
        yield box


@pytest.fixture
def box(redis_box: Box) -> Box:
    if living(redis_box.settings) is None:
        redis_box.start()
    return redis_box


def test_killed_program_is_restarted_automatically(box: Box):
    old = box.kill("redis")
    new = box.wait_ready("redis", not_pid=old)
    assert new != old
    assert box.entry("redis").restarts >= 1


def test_second_up_reports_the_running_box_and_harms_nothing(box: Box):
    before = box.pid("redis")
    answer = box.command("up", "--detach")
    assert answer.returncode == 0
    assert "already running" in answer.stdout
    assert box.pid("redis") == before


def test_down_ends_everything_and_a_second_down_succeeds(box: Box):
    pid = box.pid("redis")
    assert box.command("down").returncode == 0
    assert not alive(pid)
    answer = box.command("down")
    assert (answer.returncode, answer.stdout) == (0, "penstock is not running\n")
    assert box.command("status").returncode == 3


def test_down_ends_the_processes_of_a_killed_supervisor(box: Box):
    pid, supervisor = box.pid("redis"), supervisor_of(box)
    os.kill(supervisor.pid, signal.SIGKILL)
    wait_gone(supervisor)
    assert alive(pid)
    assert "ended the processes that a killed supervisor left" in box.command("down").stdout
    assert not alive(pid)


def test_up_after_a_killed_supervisor_starts_new_processes(box: Box):
    pid, supervisor = box.pid("redis"), supervisor_of(box)
    os.kill(supervisor.pid, signal.SIGKILL)
    wait_gone(supervisor)
    box.start()
    assert box.pid("redis") != pid
    assert not alive(pid)


def test_stale_state_file_with_a_reused_pid_kills_no_process(box: Box):
    box.stop()
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        snapshot = f'{{"pid": {bystander.pid}, "started_s": 1.0}}'
        state_file(box.settings).write_text(
            f'{{"supervisor": {snapshot}, "ready": true, "ready_s": 1.0,'
            f' "programs": [{{"name": "redis", "stage": 0, "state": "ready", "process": {snapshot}}}]}}'
        )
        assert read_snapshot(state_file(box.settings)) is not None
        assert box.command("down").returncode == 0
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_invalid_state_file_prevents_no_start(box: Box):
    box.stop()
    state_file(box.settings).write_text("{ half a")
    box.start()
    assert box.pid("redis")


def test_port_in_use_is_reported_with_its_holder_and_nothing_is_started(box: Box):
    box.stop()
    with socket.create_server(("127.0.0.1", box.settings.ports["PENSTOCK_REDIS_PORT"])):
        answer = box.command("up", "--detach", "--only", "redis")
    assert answer.returncode == 1
    assert f"is in use by {psutil.Process().name()} (pid {os.getpid()})" in answer.stdout
    assert "PENSTOCK_REDIS_PORT" in answer.stdout
    assert living(box.settings) is None


def test_down_ends_an_orphan_with_the_mark_of_the_box(box: Box):
    orphan = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], env=box.env, start_new_session=True
    )
    try:
        assert orphan.pid in [known.pid for known in marked(box.var)]
        box.stop()
        assert orphan.wait(10) == -signal.SIGTERM
    finally:
        orphan.kill()


def test_ctrl_c_in_the_foreground_stops_everything_and_exits_0(box: Box):
    box.stop()
    command = [sys.executable, "-m", "localbox", "up", "--only", "redis"]
    with subprocess.Popen(
        command, cwd=ROOT, env=box.given | {"PYTHONPATH": box.env["PYTHONPATH"]}, stdout=subprocess.PIPE, text=True
    ) as foreground:
        redis = box.wait_ready("redis", timeout_s=30)
        foreground.send_signal(signal.SIGINT)
        out, _ = foreground.communicate(timeout=30)
    assert foreground.returncode == 0
    assert out.splitlines()[-1] == "stopped"
    assert not alive(redis)


def test_program_that_cannot_start_fails_the_start_with_the_end_of_its_log(box: Box):
    box.stop()
    folder = box.var / "redis"
    data = next(folder.rglob("*.manifest"), folder / "appendonly.aof")  # Redis has a manifest since 7.0, as has Valkey
    before = data.read_bytes()
    data.write_bytes(b"this is no append-only file\n")
    try:
        answer = box.command("up", "--detach", "--only", "redis")
    finally:
        data.write_bytes(before)
    assert answer.returncode == 1
    assert "redis does not start" in answer.stdout
    assert "file format" in answer.stdout


def test_unknown_program_is_refused_in_one_sentence(box: Box):
    box.stop()
    answer = box.command("up", "--only", "rediss")
    assert answer.returncode == 1
    assert answer.stderr.startswith("penstock: no such program: rediss")


def test_kafka_and_postgres_keep_their_data_across_down_and_up():
    with box_of("postgres", "kafka") as box:
        admin = broker_admin(box.env["PENSTOCK_KAFKA"])
        admin.create_topics([NewTopic("kept", num_partitions=3)])["kept"].result(30)
        with psycopg.connect(box.env["DATABASE_URL"], autocommit=True) as connection:
            connection.execute("create table kept (n int)")
        box.stop()
        box.start()
        topics = broker_admin(box.env["PENSTOCK_KAFKA"]).list_topics(timeout=30).topics
        assert len(topics["kept"].partitions) == 3
        with psycopg.connect(box.env["DATABASE_URL"]) as connection:
            assert connection.execute("select count(*) from kept").fetchone() == (0,)
        assert "shutting down" in box.log("postgres")
        assert "not properly shut down" not in box.log("postgres")


def test_two_boxes_run_side_by_side(box: Box):
    with box_of("redis") as other:
        assert other.pid("redis") != box.pid("redis")
        assert other.entry("redis").port != box.entry("redis").port


def alive(pid: int) -> bool:
    """Return True if the process is alive; a zombie that its parent has not reaped yet is dead."""
    known = ProcessIdentity.of(pid)
    return known is not None and known.process() is not None


def supervisor_of(box: Box) -> ProcessIdentity:
    snapshot = living(box.settings)
    assert snapshot is not None
    return snapshot.supervisor


def wait_gone(known: ProcessIdentity) -> None:
    patience = Patience(10)
    while known.process() is not None:
        assert not patience.is_over
        time.sleep(0.01)


def test_box_writes_all_files_below_var(box: Box, tmp_path: Path):
    """Nothing is written outside var/: the home directory of the run stays empty but for the cache."""
    home = tmp_path / "home"
    home.mkdir()
    with Box(tmp_path / "var", only=["redis"], env={"HOME": str(home)}):
        pass
    assert list(home.iterdir()) == []


def test_down_does_not_wait_for_pending_jars(tmp_path: Path):
    slow = tmp_path / "bin" / "java"
    slow.parent.mkdir()
    slow.write_text(
        "#!/bin/sh\ncase $1 in -version) echo 'openjdk version \"17.0.1\"' >&2 ;; *) exec sleep 300 ;; esac\n"
    )
    slow.chmod(0o755)
    given = {"PATH": f"{slow.parent}{os.pathsep}{os.environ['PATH']}", "PENSTOCK_CACHE": str(tmp_path / "cache")}
    box = Box(tmp_path / "var", only=["kafka"], env=given | {"JAVA_HOME": ""})
    command = [sys.executable, "-m", "localbox", "up", "--only", "kafka"]
    with subprocess.Popen(command, cwd=ROOT, env=box.given | {"PYTHONPATH": box.env["PYTHONPATH"]}) as starting:
        patience = Patience(30)
        while not marked(box.var) or living(box.settings) is None:
            assert not patience.is_over
            time.sleep(0.05)
        box.stop()
        assert starting.wait(20) == 0
    assert marked(box.var) == []


def test_killed_group_leader_leaves_no_process_of_its_group(tmp_path: Path):
    note = tmp_path / "child"
    code = f"import os, time; child = os.fork(); child and open({str(note)!r}, 'w').write(str(child)); time.sleep(60)"
    settings = settings_from({"PENSTOCK_VAR": str(tmp_path / "var")}, dotenv=None)
    with ThreadPoolExecutor(1) as pool:
        program = Program("leader", StartStage.CONTROL, (sys.executable, "-c", code))
        running = ManagedProcess(program, env=settings.env, log=tmp_path / "log", pool=pool)
        running.step(may_start=True)
        patience = Patience(10)
        while not (note.exists() and note.read_text()):
            assert not patience.is_over
            time.sleep(0.01)
        child = int(note.read_text())
        assert running.popen is not None
        running.popen.kill()
        running.popen.wait(10)
        running.step(may_start=True)
        assert running.state == "backoff"
        if left := ProcessIdentity.of(child):
            wait_gone(left)
