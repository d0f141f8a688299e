"""The keeper: keeps the cells' applications in the state that compute/<cell>.json asks for.

It imports no Django and needs neither Postgres, Redis nor Celery: applications are restarted while the control plane is
down. Run as `python -m controlplane.compute.keeper`; in a cell's pod with `--desired`, the desired application.
"""

import argparse
import fcntl
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Final, TextIO

import msgspec
import structlog
from msgspec import Struct

from controlplane.compute.cell_supervisor import CellSupervisor
from controlplane.compute.files import ComputeFiles, StateFileError
from controlplane.compute.launch import SparkLauncher
from controlplane.compute.launcher import ApplicationLauncher
from controlplane.compute.pods import pod_from
from controlplane.compute.port import DesiredApplication
from controlplane.compute.standalone import MOST_SPARE
from controlplane.compute.standby import Standby
from controlplane.compute.stopping import request_stop
from dataplane.addresses import DEFAULT_KAFKA
from dataplane.runtime.telemetry.metrics_registry import MetricReading, MetricsRegistry

LOOK_S: Final = 0.25
log = structlog.get_logger(__name__)


class ApplicationKeeper:
    """One CellSupervisor for each cell with a desired or a running application."""

    def __init__(
        self, files: ComputeFiles, launcher: ApplicationLauncher, kafka: str, standbys: Path | None = None
    ) -> None:
        """`standbys`: directory of standby applications' FIFOs; None for no standby applications."""
        self._standbys = standbys
        self._files = files
        self._launcher = launcher
        self._kafka = kafka
        self._cells: dict[str, CellSupervisor] = {}
        self._desired_by_cell: dict[str, DesiredApplication | None] = {}

    def step(self, now: float) -> None:
        """Take one step for each cell. `now` is monotonic."""
        for cell in self._files.cells():
            if cell not in self._cells:
                standby = Standby(cell, self._standbys, self._launcher) if self._standbys else None
                self._cells[cell] = CellSupervisor(
                    cell, self._files, self._launcher, self._ask, random.random, standby=standby
                )
        for cell, supervisor in self._cells.items():
            supervisor.step(self._desired(cell), now)

    def step_to_the_end(self, now: float) -> bool:
        """Take one step towards stopping for each cell; return True if all applications have ended."""
        for supervisor in self._cells.values():
            supervisor.step(None, now)
        return all(supervisor.is_idle for supervisor in self._cells.values())

    def readings(self) -> list[MetricReading]:
        """Return the numbers of desired, running and ready standby applications."""
        return [
            MetricReading(
                "penstock_keeper_wanted_applications",
                sum(desired is not None for desired in self._desired_by_cell.values()),
            ),
            MetricReading(
                "penstock_keeper_applications", sum(cell.running is not None for cell in self._cells.values())
            ),
            MetricReading(
                "penstock_keeper_standby_applications", sum(cell.has_standby for cell in self._cells.values())
            ),
        ]

    def _desired(self, cell: str) -> DesiredApplication | None:
        """Return the desired application; a file that cannot be read leaves it unchanged."""
        try:
            self._desired_by_cell[cell] = self._files.desired(cell)
        except StateFileError as exc:
            log.warning("desired application cannot be read", cell=cell, error=str(exc))
        return self._desired_by_cell.get(cell)

    def _ask(self, cell: str, incarnation: str) -> None:
        request_stop(self._kafka, cell, incarnation)


class KeeperSettings(Struct, frozen=True):
    """Addresses and directories, from the environment.

    jars:    directory of Spark's jars for Kafka, if any
    standby: True to keep a standby application for each cell whose master is local
    spare:   spare executors of each cell on a cluster
    """

    kafka: str
    var: Path
    jars: Path | None
    standby: bool
    spare: int


def settings_from_environment() -> KeeperSettings:
    """Read the settings from variables whose names begin with PENSTOCK_, as .env.example describes them.

    Raises ValueError, naming the variable, for a value that cannot be used.
    """
    var = Path(os.environ.get("PENSTOCK_VAR", "var")).absolute()
    jars = os.environ.get("PENSTOCK_SPARK_JARS")
    standby = os.environ.get("PENSTOCK_STANDBY_APPLICATIONS") or "false"
    if standby not in ("true", "false"):
        raise ValueError(f"PENSTOCK_STANDBY_APPLICATIONS: needs true or false, got {standby!r}")
    spare = os.environ.get("PENSTOCK_SPARE_EXECUTORS") or "0"
    if not spare.isdecimal() or int(spare) > MOST_SPARE:
        raise ValueError(f"PENSTOCK_SPARE_EXECUTORS: needs a number from 0 to {MOST_SPARE}, got {spare!r}")
    kafka = os.environ.get("PENSTOCK_KAFKA", DEFAULT_KAFKA)
    return KeeperSettings(kafka, var, Path(jars) if jars else None, standby == "true", int(spare))


def take_lock(var: Path) -> TextIO | None:
    """Lock this directory for one keeper; return None if another has it. The process's exit releases the lock."""
    path = var / "compute" / "keeper.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def main(argv: list[str] | None = None) -> int:
    """Keep the cells' applications until SIGTERM or Ctrl-C; then stop each by its stop record, and exit."""
    parser = argparse.ArgumentParser(prog="python -m controlplane.compute.keeper", description=__doc__)
    parser.add_argument("--desired", help="the desired application as JSON, if no controller writes files here")
    desired = parser.parse_args(argv).desired
    settings = settings_from_environment()
    lock = take_lock(settings.var)
    if lock is None:
        log.error("another keeper is running", var=str(settings.var))
        return 1
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    files = ComputeFiles(settings.var)
    if desired:
        files.request(msgspec.json.decode(desired, type=DesiredApplication))
    launcher = SparkLauncher(settings.var, settings.jars, pod_from(os.environ), settings.spare)
    standbys = settings.var / "run" / "standby" if settings.standby else None
    keeper = ApplicationKeeper(files, launcher, settings.kafka, standbys)
    registry = MetricsRegistry()
    registry.reads(keeper.readings)
    registry.serve()
    while not ending.wait(LOOK_S):
        keeper.step(time.monotonic())
    while not keeper.step_to_the_end(time.monotonic()):
        time.sleep(LOOK_S)
    lock.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
