"""A Spark standalone cluster on this host: a master and workers, which a test may kill."""

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import psutil

from controlplane.compute.installed import spark_home
from controlplane.compute.standalone import EXECUTOR_MB, master_command, worker_command
from localbox.end_processes import MARK
from localbox.ports import free_ports
from localbox.spark import spark_env
from localbox.testing import Box, box_folder
from tests.support.demo_traffic import DEMO
from tests.support.patience import until

HOST: Final = "127.0.0.1"
CORES: Final = 8  # of a worker: each one has room for every lane of the test
OVERHEAD_MB: Final = 384


class SparkCluster:
    """Cluster whose master starts at once, and its workers when their environment is known."""

    def __init__(self, var: Path) -> None:
        port, self._web_port = free_ports(2)
        self.master = f"spark://{HOST}:{port}"
        self._var = var
        self._processes: list[subprocess.Popen[bytes]] = []
        var.mkdir(parents=True)
        self._start("master", master_command(spark_home(), host=HOST, port=port, web_port=self._web_port), os.environ)
        until(self._answers, "Spark's master answers", 60)

    def start_workers(self, count: int, env: Mapping[str, str]) -> None:
        """Start workers that pass `env` to executors, and wait until the master knows them."""
        for number in range(count):
            name = f"worker-{number}"
            memory_mb = CORES * (EXECUTOR_MB + OVERHEAD_MB)
            command = worker_command(
                spark_home(), self.master, host=HOST, cores=CORES, memory_mb=memory_mb, work=self._var / name
            )
            self._start(name, command, env)
        until(lambda: len(self.workers()) == count, f"{count} workers are with the master", 60)

    def workers(self) -> list[dict[str, Any]]:
        """Return the living workers as the master sees them."""
        return [worker for worker in self._state()["workers"] if worker["state"] == "ALIVE"]

    def cores_used(self) -> int:
        """Return the cores that executors use on all workers together."""
        return sum(int(worker["coresused"]) for worker in self.workers())

    def kill_worker_of(self, pid: int) -> None:
        """SIGKILL the worker that this process runs on; its executors exit when they notice."""
        above = {parent.pid for parent in psutil.Process(pid).parents()}
        [worker] = [process for process in self._processes if process.pid in above]
        worker.kill()

    def close(self) -> None:
        """Stop the processes that are left."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
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

    def _start(self, name: str, command: list[str], env: Mapping[str, str]) -> None:
        env = {**env, "SPARK_LOCAL_IP": HOST}
        with (self._var / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(command, cwd=self._var, env=env, stdout=log, stderr=log, start_new_session=True)
        self._processes.append(process)


def executor_of(pid: int) -> int:
    """Return the process id of the executor that runs this lane."""
    [executor] = [
        one for one in psutil.Process(pid).parents() if "CoarseGrainedExecutorBackend" in " ".join(one.cmdline())
    ]
    return executor.pid


@contextmanager
def box_on_cluster(
    workers: int = 2, *, extra: tuple[str, ...] = DEMO, **settings: str
) -> Iterator[tuple[Box, SparkCluster]]:
    """Run a box with these programs in addition (the demo's) and variables, whose cells run on a cluster of its own."""
    with box_folder("cluster") as folder, closing(SparkCluster(folder / "spark")) as cluster:
        box = Box(folder / "var", extra=extra, env={"PENSTOCK_CELL_MASTER": cluster.master, **settings})
        # Workers are not part of the box: with its mark, it would end them at its start. Executors have their release.
        env = {name: value for name, value in box.env.items() if name not in (MARK, "PYTHONPATH")}
        cluster.start_workers(workers, env | spark_env(box.settings))
        with box:
            yield box, cluster
