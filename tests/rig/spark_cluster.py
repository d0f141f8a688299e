"""A Spark standalone cluster on this host: a master and workers, which a test may kill."""

import json
import subprocess
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from controlplane.compute.installed import spark_home
from controlplane.compute.standalone import EXECUTOR_MB, master_command, worker_command
from localbox.ports import free_ports
from tests.rig.plane import until

HOST: Final = "127.0.0.1"
CORES: Final = 8  # of a worker: each alone has room for every lane of the test
OVERHEAD_MB: Final = 384


class SparkCluster:
    """`env` is what executors get: the workers hand theirs on."""

    def __init__(self, var: Path, env: Mapping[str, str], workers: int) -> None:
        port, self._web_port = free_ports(2)
        self.master = f"spark://{HOST}:{port}"
        self._var, self._env = var, {**env, "SPARK_LOCAL_IP": HOST}
        var.mkdir(parents=True)
        command = master_command(spark_home(), host=HOST, port=port, web_port=self._web_port)
        self._processes = {"master": self._start("master", command)}
        until(self._answers, "Spark's master answers", 60)
        for number in range(workers):
            name = f"worker-{number}"
            memory_mb = CORES * (EXECUTOR_MB + OVERHEAD_MB)
            command = worker_command(
                spark_home(), self.master, host=HOST, cores=CORES, memory_mb=memory_mb, work=var / name
            )
            self._processes[name] = self._start(name, command)
        until(lambda: len(self.workers()) == workers, f"{workers} workers are with the master", 60)

    def workers(self) -> list[dict[str, Any]]:
        """The master's view of those that live."""
        return [worker for worker in self._state()["workers"] if worker["state"] == "ALIVE"]

    def cores_used(self) -> int:
        """By executors, all workers together."""
        return sum(int(worker["coresused"]) for worker in self.workers())

    def kill_worker(self, number: int) -> None:
        """SIGKILL: its executors leave when they see that it is gone."""
        self._processes[f"worker-{number}"].kill()

    def close(self) -> None:
        """End what is left."""
        for process in reversed(self._processes.values()):
            process.terminate()
        for process in self._processes.values():
            process.wait(30)

    def _answers(self) -> bool:
        try:
            return bool(self._state())
        except OSError:
            return False

    def _state(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://{HOST}:{self._web_port}/json/", timeout=5) as answer:
            state: dict[str, Any] = json.load(answer)
        return state

    def _start(self, name: str, command: list[str]) -> "subprocess.Popen[bytes]":
        with (self._var / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=self._var, env=self._env, stdout=log, stderr=log, start_new_session=True
            )
