"""Releases of ingest in a box: which one a replica runs, and the exchange of replicas one by one."""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from controlplane.compute.files import ComputeFiles, DesiredReplicas
from controlplane.compute.installed import installed_root
from controlplane.compute.releases import ReleaseStore
from dataplane.names import RELEASE_VARIABLE
from localbox.catalogue import programs, replicas
from localbox.errors import BoxError
from localbox.managed_process import ManagedProcess
from localbox.program import Program, StartStage
from localbox.settings import BoxSettings, settings_from
from localbox.supervisor import next_outdated
from tests.support.patience import until

DRAINS = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('up', flush=True)"


@pytest.fixture
def settings(tmp_path: Path) -> BoxSettings:
    return settings_from({"PENSTOCK_VAR": str(tmp_path / "var")}, dotenv=None)


@pytest.fixture
def store(settings: BoxSettings) -> ReleaseStore:
    return ReleaseStore(settings.var)


@pytest.fixture
def installed(store: ReleaseStore) -> str:
    return store.pack(installed_root())


@pytest.fixture
def other(store: ReleaseStore, tmp_path: Path) -> str:
    (tmp_path / "dataplane").mkdir()
    (tmp_path / "dataplane" / "__init__.py").touch()
    return store.pack(tmp_path)


def at_start(settings: BoxSettings) -> list[str]:
    """Return the releases of the replicas with which the box starts."""
    return [program.env[RELEASE_VARIABLE] for program in programs(settings) if program.stage is StartStage.INGEST]


def followed(settings: BoxSettings) -> list[str]:
    """Return the releases of the replicas that the supervisor starts while the box runs."""
    return [program.env[RELEASE_VARIABLE] for program in replicas(settings) or []]


def test_replica_imports_the_data_plane_of_its_release_and_nothing_else_of_the_tree(
    settings: BoxSettings, store: ReleaseStore, installed: str
):
    program = next(program for program in programs(settings) if program.name == "ingest-1")
    archive, *rest = program.env["PYTHONPATH"].split(":")
    assert archive == str(store.archive(installed))
    assert not any((Path(folder) / "dataplane").exists() for folder in rest)
    assert program.env["PYTHONSAFEPATH"], "else Python imports from the working directory first"


def test_box_runs_the_requested_releases_unless_other_code_was_installed(
    settings: BoxSettings, installed: str, other: str
):
    assert at_start(settings) == [installed] * 2
    assert replicas(settings) is None
    files = ComputeFiles(settings.var)
    files.request_replicas(DesiredReplicas(3, installed, canary=other, installed=installed))
    assert at_start(settings) == [other, installed]
    assert followed(settings) == [other, installed, installed]
    files.request_replicas(DesiredReplicas(3, other, canary=other, installed="0" * 16))
    assert at_start(settings) == [installed] * 2, "its packages may not fit another release"
    assert followed(settings) == [installed] * 3


def test_only_a_release_that_is_not_installed_may_fail_at_the_start_of_the_box(
    settings: BoxSettings, installed: str, other: str
):
    ComputeFiles(settings.var).request_replicas(DesiredReplicas(2, installed, canary=other, installed=installed))
    assert [program.patient for program in programs(settings) if program.stage is StartStage.INGEST] == [True, False]


def test_release_that_cannot_be_read_changes_no_replica_and_stops_no_start(
    settings: BoxSettings, store: ReleaseStore, installed: str, other: str
):
    ComputeFiles(settings.var).request_replicas(DesiredReplicas(2, other, installed=installed))
    assert followed(settings) == [other] * 2
    store.archive(other).write_bytes(b"changed")
    with pytest.raises(BoxError, match="was changed after the build"):
        replicas(settings)
    (settings.var / "releases" / f"dataplane-{other}.zip").unlink()
    with pytest.raises(BoxError, match="No such file"):
        replicas(settings)
    assert at_start(settings) == [installed] * 2


class Replicas:
    """Replicas of a box as real processes, stepped as the supervisor does."""

    def __init__(self, settings: BoxSettings, log: Path, pool: ThreadPoolExecutor) -> None:
        self._log = log
        self.running = [ManagedProcess(program, env=settings.env, log=log, pool=pool) for program in wanted("a", "a")]

    def step(self) -> None:
        for one in self.running:
            one.step(may_start=True)

    def all_up(self) -> bool:
        self.step()
        return all(one.is_up for one in self.running)

    def pids(self) -> list[int]:
        return [one.popen.pid for one in self.running if one.popen]

    def next_outdated(self, *releases: str) -> str:
        """Return the name of the replica to replace next if these are the desired releases."""
        found = next_outdated(self.running, {program.name: program for program in wanted(*releases)})
        return found.program.name if found else ""


def wanted(*releases: str, code: str = f"{DRAINS}; time.sleep(60)") -> list[Program]:
    return [
        Program(
            f"ingest-{number}",
            StartStage.INGEST,
            (sys.executable, "-c", code),
            env={RELEASE_VARIABLE: release},
            probe=lambda: None,
            stop_grace_s=5.0,
        )
        for number, release in enumerate(releases, start=1)
    ]


@pytest.fixture
def box(settings: BoxSettings, tmp_path: Path) -> Iterator[Replicas]:
    log = tmp_path / "log"
    with ThreadPoolExecutor(2) as pool:
        box = Replicas(settings, log, pool)
        until(box.all_up, "both run", 10)
        until(lambda: log.read_text().count("up") == 2, "both handle signals", 10)
        yield box
        for one in box.running:
            if one.popen:
                one.popen.kill()
                one.popen.wait(10)


def test_replicas_are_replaced_one_by_one(box: Replicas):
    first, second = box.pids()
    assert box.next_outdated("a", "a") == ""
    assert box.next_outdated("b", "a") == box.next_outdated("b", "b") == "ingest-1"
    box.running[0].replace(wanted("b")[0])
    assert box.next_outdated("b", "b") == "", "the first one drains: the second has to wait"
    until(box.all_up, "the first runs again", 10)
    assert box.pids()[0] != first
    assert box.pids()[1] == second
    assert box.running[0].restarts == 0
    assert box.next_outdated("b", "b") == "ingest-2"


def test_replica_that_does_not_start_is_replaced_at_once_and_holds_up_the_others(box: Replicas):
    bad = wanted("bad", code="raise SystemExit(3)")[0]
    box.running[0].replace(replace(bad, probe=lambda: "not yet"))

    def fails() -> bool:
        box.step()
        return box.running[0].state == "backoff"

    until(fails, "it fails", 10)
    assert box.next_outdated("bad", "b") == "ingest-1", "its command is another one"
    assert box.next_outdated("b", "b") == "ingest-1"
    box.running[0].replace(wanted("b")[0])
    until(box.all_up, "it runs again", 2)


def test_process_that_never_becomes_ready_or_does_not_drain_is_killed(box: Replicas):
    stuck = wanted("b", code="import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)")[0]
    box.running[0].replace(replace(stuck, probe=lambda: "not yet", stop_grace_s=0.2))

    def starts() -> bool:
        box.step()
        return box.running[0].state == "starting"

    until(starts, "it starts", 10)
    time.sleep(0.3)  # it ignores signals from here on
    box.running[0].replace(wanted("a")[0])
    box.running[0].program = replace(box.running[0].program, stop_grace_s=0.2)
    until(box.all_up, "it was killed, and the next one runs", 10)
