"""How a cell's application is started: the spark-submit command, its environment, its log."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from controlplane.compute.port import Desired
from controlplane.compute.processes import INCARNATION_VARIABLE
from controlplane.compute.releases import PACKAGE, Releases
from controlplane.compute.standalone import cluster_conf
from dataplane.runtime.lake_conf import LAKE_CONF

LOG_BYTES: Final = 32 * 1024 * 1024


class SparkLauncher(Struct, frozen=True):
    """Starts applications with the running interpreter's own PySpark.

    jars: the directory of Spark's jars for Kafka and the lake, which only Structured Streaming queries need
    """

    var: Path
    jars: Path | None = None

    def start(self, desired: Desired, incarnation: str) -> "subprocess.Popen[bytes]":
        """Start one incarnation in a session of its own, so that a Ctrl-C meant for the keeper does not reach it.

        Raises OSError, ReleaseError among them, if that cannot be done.
        """
        with _open_log(self.var / "log" / f"cell-{desired.cell}.log") as log:
            return subprocess.Popen(
                self.command(desired, incarnation),
                cwd=self.var,  # not the checkout: workers would import from it instead of from the release
                env=self._environment(desired, incarnation),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def command(self, desired: Desired, incarnation: str) -> list[str]:
        """The whole command line; the application is told its cell, epoch and incarnation."""
        releases = Releases(self.var)
        conf = {
            "spark.app.name": f"penstock-{desired.cell}",
            "spark.scheduler.mode": "FAIR",  # lanes run side by side, each in its own pool
            "spark.speculation": "false",  # a second copy of a lane is a rebalance, not a rescue
            "spark.python.worker.reuse": "true",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.memory": "512m",
        }
        conf |= cluster_conf(desired.master, incarnation) | (LAKE_CONF if self.jars else {})
        flags = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
        named = ["--cell", desired.cell, "--epoch", str(desired.epoch), "--incarnation", incarnation]
        jars = ",".join(map(str, sorted(self.jars.glob("*.jar")))) if self.jars else ""
        code = ["--py-files", str(releases.archive(desired.release)), *(["--jars", jars] if jars else [])]
        program = [str(spark_home() / "bin" / "spark-submit"), "--master", desired.master, *flags, *code]
        return [*program, str(releases.application(desired.release)), *named]

    def _environment(self, desired: Desired, incarnation: str) -> dict[str, str]:
        env = dict(os.environ)
        env |= {
            INCARNATION_VARIABLE: incarnation,
            "PENSTOCK_VAR": str(self.var),
            # the release, too: the worker in which Spark plans a stateful query is not given --py-files
            "PYTHONPATH": os.pathsep.join([str(Releases(self.var).archive(desired.release)), *_foreign_path()]),
            "SPARK_HOME": str(_home_without_zip(self.var / "spark-home")),
            "SPARK_LOCAL_DIRS": str(self.var / "spark"),
            "PYSPARK_PYTHON": sys.executable,  # or workers start whatever `python3` is
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        if desired.master.startswith("local"):
            env.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        return env


def _foreign_path() -> list[str]:
    """PYTHONPATH without any other data plane: the application runs its release."""
    entries = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return [entry for entry in entries if not (Path(entry) / PACKAGE).is_dir()]


def spark_home() -> Path:
    """Where the running interpreter's PySpark lies. Raises RuntimeError if it has none."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("pyspark is not installed for this interpreter")
    return Path(spec.origin).parent


def _home_without_zip(home: Path) -> Path:
    """Spark's home, less `python`: so workers import the installed PySpark, which is compiled, and not its zip.

    Compiling that took each Python worker a second of CPU, and Spark waits 10 s at most for one that plans a query.
    """
    home.mkdir(parents=True, exist_ok=True)
    for entry in spark_home().iterdir():
        link = home / entry.name
        if entry.name != "python" and link.resolve() != entry.resolve():  # new, or of a PySpark that has moved
            link.unlink(missing_ok=True)
            link.symlink_to(entry)
    return home


def _open_log(path: Path) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_suffix(".1.log"))
    return path.open("ab")
