"""Data plane alone, as real processes: two ingest replicas on one port, and the cell under the keeper."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil

from controlplane.compute.files import ComputeFiles
from controlplane.compute.port import DesiredApplication
from controlplane.compute.processes import members, signal_all
from controlplane.compute.releases import ReleaseStore
from dataplane.names import LANE_KINDS
from localbox.settings import ROOT, settings_from
from localbox.spark import ensure_spark, spark_env
from localbox.testing_kafka import role_env
from tests.support.broker import Broker
from tests.support.cluster import HIGH_QUOTAS
from tests.support.patience import until
from tests.support.plane import Plane
from tests.support.trust import Trust
from tests.support.watch import Heartbeats, Offsets

REPLICAS: Final = ("ingest-1", "ingest-2")
FRESH_US: Final = 5_000_000
MASTER: Final = "local[16,1000]"


class Replicas:
    """Ingest replicas; one that ends is restarted after a second, as in the box."""

    def __init__(self, env: dict[str, str], log: Path) -> None:
        self._env, self._log = env, log
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ending = threading.Event()
        for name in REPLICAS:
            self._start(name)
        self._thread = threading.Thread(target=self._keep, name="replicas", daemon=True)
        self._thread.start()

    def pid(self, name: str) -> int:
        """Return the process id of a replica."""
        return self._processes[name].pid

    def close(self) -> None:
        """End the replicas in order."""
        self._ending.set()
        self._thread.join(10)
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait(40)

    def _start(self, name: str) -> None:
        with (self._log / f"{name}.log").open("ab") as log:
            command = [sys.executable, "-m", "dataplane.ingest", "--replica", name]
            self._processes[name] = subprocess.Popen(
                command, cwd=ROOT, env=self._env, stdout=log, stderr=log, start_new_session=True
            )

    def _keep(self) -> None:
        while not self._ending.wait(0.5):
            for name, process in list(self._processes.items()):
                if process.poll() is not None:
                    self._start(name)


class DataPlane(Plane):
    """Everything between a customer and a destination, with the means to break it and to read its ledger."""

    def __init__(self, var: Path, partitions: int = 4, *, standby: bool = False, master: str = MASTER) -> None:
        """Start everything but the cell.

        standby: the keeper keeps a standby application
        master:  Spark's master URL for the cell
        """
        self.var = var
        self.master = master
        self.partitions = partitions
        super().__init__(var, partitions)
        (var / "log").mkdir(parents=True, exist_ok=True)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        self.process_env = inherited | self.env | {"PENSTOCK_QUOTAS": HIGH_QUOTAS}
        self.trust = Trust(var)  # destinations may use TLS with its certificates
        self.process_env["PENSTOCK_DESTINATION_CA"] = str(self.trust.ca_file)
        box = settings_from(os.environ, dotenv=None)
        ensure_spark(box)
        self.process_env |= spark_env(box) | ({"PENSTOCK_STANDBY_APPLICATIONS": "true"} if standby else {})
        self.replicas = Replicas(self.process_env | role_env("ingest"), var / "log")
        self.files = ComputeFiles(var)
        self._keeper_log = var / "log" / "keeper.log"
        with self._keeper_log.open("ab") as log:
            self._keeper = subprocess.Popen(
                [sys.executable, "-m", "controlplane.compute.keeper"],
                cwd=ROOT,
                env=self.process_env | role_env("cells"),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.heartbeats = Heartbeats(self.broker.address)
        self.offsets = Offsets(self.broker.address, self.cluster.cell, self.cluster.topics)

    def start_cell(self) -> None:
        """Request the application and wait until a lane of every kind beats."""
        since_us = time.time_ns() // 1_000
        self.ask_for(self.cluster.epoch, ReleaseStore(self.var).pack(ROOT))
        # Spark starts slowly on a busy machine, too.
        until(lambda: self._all_beat(since_us), "a heartbeat of every kind of lane", 240)

    def wait_whole(self) -> None:
        """Wait for the application and a recent heartbeat of every kind of lane: earlier lanes may have ended."""

        def whole() -> bool:
            return self.is_running() and self._all_beat(time.time_ns() // 1_000 - FRESH_US)

        until(whole, "the application with all its lanes", 120, seen=lambda: list(self.heartbeats.latest.values()))

    def _all_beat(self, since_us: int) -> bool:
        self.heartbeats.refresh()
        beats = self.heartbeats.latest.values()
        kinds = {beat.kind for beat in beats if beat.at_us > since_us and beat.state == "running"}
        return kinds >= {"process", "transmit", "transmit-retry", "retrier"}

    def wait_applied(self) -> None:
        """Wait until every lane has applied the newest control record."""
        since_us = time.time_ns() // 1_000

        def is_applied() -> bool:
            is_whole = self._all_beat(since_us)
            beats = [beat for beat in self.heartbeats.latest.values() if beat.at_us > since_us]
            lanes = [beat for beat in beats if beat.kind in LANE_KINDS and beat.state == "running"]
            return is_whole and all(beat.table_offset >= self.cluster.published for beat in lanes)

        until(is_applied, "every lane has the newest record", 60, seen=lambda: list(self.heartbeats.latest.values()))

    def ask_for(self, epoch: int, release: str) -> None:
        """Submit an application of this epoch and publish the cell, as the Provisioner does for a new epoch."""
        self.files.request(DesiredApplication(self.cluster.cell, epoch, self.master, release))
        if epoch != self.cluster.epoch:
            self.cluster.epoch = epoch
            self.cluster.publish_cell()

    def drain_cell(self) -> str:
        """Withdraw the application and wait for its end; return the keeper's log line about it."""
        self.files.withdraw(self.cluster.cell)
        until(lambda: self.files.running(self.cluster.cell) is None, "the end of the application", 60)
        until(self._ends, "the keeper's line about it")  # the keeper logs the line after it has seen the end
        return self._ends()[-1]

    def _ends(self) -> list[str]:
        return [line for line in self._keeper_log.read_text(errors="replace").splitlines() if "ended" in line]

    def shift_clocks(self, *, lanes_s: float = 0, ingest_s: float = 0) -> None:
        """Shift the wall clocks of every process that has run a lane, and of the replicas, by so much."""
        for name, seconds in (("clock-lanes", lanes_s), ("clock-ingest", ingest_s)):
            scratch = self.var / "planted" / "clock.new"
            scratch.write_text(str(seconds))
            scratch.replace(scratch.with_name(name))

    def ingest_pids(self) -> set[int]:
        return {self.replicas.pid(name) for name in REPLICAS}

    def standby_is_ready(self) -> bool:
        """Return True if a standby application waits; it removes the name of its FIFO when it is ready."""
        lines = self._keeper_log.read_text(errors="replace").splitlines()
        ready = sum("standby started" in line for line in lines) - sum("standby took over" in line for line in lines)
        return ready == 1 and not list((self.var / "run" / "standby").iterdir())

    # -- whom to kill ----------------------------------------------------------------------------------------------

    def is_running(self) -> bool:
        """Return True if the cell's application has a process that is not known to have ended."""
        running = self.files.running(self.cluster.cell)
        return running is not None and bool(running.pid)

    def driver_pid(self) -> int:
        """Return the process id of the JVM that spark-submit became."""
        running = self.files.running(self.cluster.cell)
        assert running is not None
        assert running.pid
        return running.pid

    def python_driver_pid(self) -> int:
        """Return the process id of the Python process that runs the cell driver."""
        for child in psutil.Process(self.driver_pid()).children():
            with contextlib.suppress(psutil.Error):  # a child that is gone, or a zombie that Java has yet to reap
                if any("cell.py" in word for word in child.cmdline()):
                    return child.pid
        raise LookupError("the JVM has no Python driver at this moment")

    def lane_pid(self, writer: str) -> int:
        """Return the process id of a lane's Python worker, by its heartbeat; wait for a dead one to return."""

        def lives() -> bool:
            self.heartbeats.refresh()
            beat = self.heartbeats.latest.get(writer)
            return beat is not None and psutil.pid_exists(beat.pid)

        until(lives, f"{writer} lives", 90)
        return self.heartbeats.latest[writer].pid

    def forget_lane_crashes(self) -> None:
        """Have each lane restart at once after its next crash: one that has crashed several times waits up to 8 s."""
        for note in (self.var / "data" / "lanes").iterdir():
            note.unlink()

    def close(self) -> None:
        """End everything in order, and kill what is left."""
        running = self.files.running(self.cluster.cell)
        self.files.withdraw(self.cluster.cell)
        self._keeper.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._keeper.wait(60)
        if self._keeper.poll() is None:
            self._keeper.kill()
        if running is not None:
            signal_all(members(running.incarnation), signal.SIGKILL)
        self.replicas.close()
        for watcher in (self.offsets, self.heartbeats, self.books, self.receiver, self.broker):
            watcher.stop() if isinstance(watcher, Broker) else watcher.close()


@contextlib.contextmanager
def running_plane(var: Path, *, standby: bool = False) -> Iterator[DataPlane]:
    """Run a data plane with its cell, and end it in any case."""
    plane = DataPlane(var, standby=standby)
    try:
        plane.wait_ready()
        plane.start_cell()
        yield plane
    finally:
        plane.close()
