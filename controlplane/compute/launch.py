"""Starts a cell's application: the spark-submit command, its environment, its log."""

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from controlplane.compute.installed import foreign_path, home_without_zip, spark_home
from controlplane.compute.pods import MASTER, PodContext, spark_conf
from controlplane.compute.port import DesiredApplication
from controlplane.compute.processes import INCARNATION_VARIABLE
from controlplane.compute.releases import WORKER_DAEMON, ReleaseStore
from controlplane.compute.standalone import cluster_conf
from dataplane.runtime.lake_conf import LAKE_CONF

# Spark's default, and the options by which its Kafka clients sign in.
REDACTED: Final = "(?i)secret|password|token|access[.]?key|jaas|keystore"
# The driver's initial heap is in memory from the start: filling it for hours looks like a leak. By default its size is
# a 64th of the machine's memory.
INITIAL_HEAP: Final = "-Xms128m -XX:+AlwaysPreTouch -XX:GCTimeRatio=4"
LOG_BYTES: Final = 32 * 1024 * 1024


class SparkLauncher(Struct, frozen=True):
    """Launcher of applications with the running interpreter's own PySpark.

    jars:  directory of Spark's jars for Kafka and the lake, which only Structured Streaming queries need
    pod:   the pod of this process, if any; applications then write to its output, and their executors are pods
    spare: spare executors of each application on a cluster
    """

    var: Path
    jars: Path | None = None
    pod: PodContext | None = None
    spare: int = 0

    def start(
        self, desired: DesiredApplication, incarnation: str, standby: Path | None = None
    ) -> "subprocess.Popen[bytes]":
        """Start one incarnation in a session of its own, so that a Ctrl-C meant for the keeper does not reach it.

        With `standby`, it waits at this FIFO.

        Raises OSError (ReleaseError included) if that fails.
        """
        path = self.var / "log" / f"cell-{desired.cell}.log"
        # The application of a standby is writing to the file.
        with nullcontext() if self.pod else _open_log(path, rotates=standby is None) as log:
            return subprocess.Popen(
                [*self.command(desired, incarnation), *(["--standby", str(standby)] if standby else [])],
                cwd=self.var,  # not the checkout: workers would import from it instead of from the release
                env=self._environment(desired, incarnation),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def command(self, desired: DesiredApplication, incarnation: str) -> list[str]:
        """Return the command line; it passes cell, epoch and incarnation. Raises ReleaseError and OSError."""
        releases = ReleaseStore(self.var)
        archive = releases.archive(desired.release)
        conf = {
            "spark.app.name": f"penstock-{desired.cell}",
            "spark.scheduler.mode": "FAIR",  # lanes run in parallel, each in its own pool
            "spark.speculation": "false",  # a second copy of a lane would cause a rebalance
            "spark.python.worker.reuse": "true",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.memory": "512m",
            "spark.driver.defaultJavaOptions": INITIAL_HEAP,
            "spark.redaction.regex": REDACTED,
        }
        conf |= cluster_conf(desired.master, incarnation, self.spare) | self._in_pods(desired, incarnation)
        conf |= LAKE_CONF if self.jars else {}
        if not desired.master.startswith(MASTER) and releases.has_worker_daemon(desired.release):
            conf["spark.python.daemon.module"] = WORKER_DAEMON
            if not desired.master.startswith("local"):
                # An executor copies --py-files into its working folder, in which it starts the daemon.
                conf["spark.executorEnv.PYTHONPATH"] = archive.name
        flags = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
        named = ["--cell", desired.cell, "--epoch", str(desired.epoch), "--incarnation", incarnation]
        jars = ",".join(map(str, sorted(self.jars.glob("*.jar")))) if self.jars else ""
        code = ["--py-files", str(archive), *(["--jars", jars] if jars else [])]
        program = [str(spark_home() / "bin" / "spark-submit"), "--master", desired.master, *flags, *code]
        return [*program, str(releases.application(desired.release)), *named]

    def _in_pods(self, desired: DesiredApplication, incarnation: str) -> dict[str, str]:
        """Return the extra settings for a master whose executors are pods. Raises OSError outside of a pod."""
        if not desired.master.startswith(MASTER):
            return {}
        if self.pod is None:
            raise OSError(f"master: {desired.master} has executors only for drivers that run in its pods")
        return spark_conf(desired.cell, incarnation, self.pod)

    def _environment(self, desired: DesiredApplication, incarnation: str) -> dict[str, str]:
        env = dict(os.environ)
        path = foreign_path(env.get("PYTHONPATH", ""))
        env |= {
            INCARNATION_VARIABLE: incarnation,
            "PENSTOCK_VAR": str(self.var),
            # includes the release: the worker in which Spark plans a stateful query does not get --py-files
            "PYTHONPATH": os.pathsep.join([str(ReleaseStore(self.var).archive(desired.release)), *path]),
            "SPARK_HOME": str(home_without_zip(self.var / "spark-home")),
            "SPARK_LOCAL_DIRS": str(self.var / "spark"),
            "PYSPARK_PYTHON": sys.executable,  # otherwise workers run the first `python3` on PATH
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        if desired.master.startswith("local"):
            env.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        return env


def _open_log(path: Path, *, rotates: bool) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    if rotates and path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_suffix(".1.log"))
    return path.open("ab")
