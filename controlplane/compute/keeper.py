"""The keeper: holds the cells' applications to what compute/<cell>.json asks for.

It imports no Django and needs neither Postgres, Redis nor Celery: applications come back while the control plane is
dead. Run as `python -m controlplane.compute.keeper`; in a cell's pod with `--wish`, the one that there is.
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

from controlplane.compute.files import BrokenFileError, ComputeFiles
from controlplane.compute.kept import KeptCell, Launcher
from controlplane.compute.launch import SparkLauncher
from controlplane.compute.pods import pod_from
from controlplane.compute.port import Desired
from controlplane.compute.stopping import ask_to_stop
from dataplane.addresses import DEFAULT_KAFKA
from dataplane.runtime.board import Board, Reading

LOOK_S: Final = 0.25
log = structlog.get_logger(__name__)


class Keeper:
    """One KeptCell for each cell that is asked for or that still runs."""

    def __init__(self, files: ComputeFiles, launcher: Launcher, kafka: str) -> None:
        self._files = files
        self._launcher = launcher
        self._kafka = kafka
        self._cells: dict[str, KeptCell] = {}
        self._wishes: dict[str, Desired | None] = {}

    def look(self, now: float) -> None:
        """One round over all cells."""
        for cell in self._files.cells():
            if cell not in self._cells:
                self._cells[cell] = KeptCell(cell, self._files, self._launcher, self._ask, random.random)
        for cell, kept in self._cells.items():
            kept.step(self._wish(cell), now)

    def look_to_the_end(self, now: float) -> bool:
        """One round in which nothing is wanted any more; whether everything has ended."""
        for kept in self._cells.values():
            kept.step(None, now)
        return all(kept.running is None for kept in self._cells.values())

    def readings(self) -> list[Reading]:
        """How many applications are asked for, and how many run."""
        return [
            Reading("penstock_keeper_wanted_applications", sum(wish is not None for wish in self._wishes.values())),
            Reading("penstock_keeper_applications", sum(kept.running is not None for kept in self._cells.values())),
        ]

    def _wish(self, cell: str) -> Desired | None:
        """What is asked for; a file that cannot be read changes nothing."""
        try:
            self._wishes[cell] = self._files.desired(cell)
        except BrokenFileError as exc:
            log.warning("wish cannot be read", cell=cell, error=str(exc))
        return self._wishes.get(cell)

    def _ask(self, cell: str, incarnation: str) -> None:
        ask_to_stop(self._kafka, cell, incarnation)


class KeeperSettings(Struct, frozen=True):
    """Where things are, from the environment. `jars`: Spark's own for Kafka, if there are any."""

    kafka: str
    var: Path
    jars: Path | None


def settings_from_environment() -> KeeperSettings:
    """PENSTOCK_KAFKA, PENSTOCK_VAR and PENSTOCK_SPARK_JARS."""
    var = Path(os.environ.get("PENSTOCK_VAR", "var")).absolute()
    jars = os.environ.get("PENSTOCK_SPARK_JARS")
    return KeeperSettings(os.environ.get("PENSTOCK_KAFKA", DEFAULT_KAFKA), var, Path(jars) if jars else None)


def take_lock(var: Path) -> TextIO | None:
    """Be the one keeper of this directory, or None if another is; the lock ends with the process."""
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
    """Keep cells until SIGTERM or Ctrl-C; then stop them all, each by its record, and leave."""
    parser = argparse.ArgumentParser(prog="python -m controlplane.compute.keeper", description=__doc__)
    parser.add_argument("--wish", help="the application to keep, as JSON, when nobody else writes wishes here")
    wish = parser.parse_args(argv).wish
    settings = settings_from_environment()
    lock = take_lock(settings.var)
    if lock is None:
        log.error("another keeper is at work", var=str(settings.var))
        return 1
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    files = ComputeFiles(settings.var)
    if wish:
        files.wish(msgspec.json.decode(wish, type=Desired))
    launcher = SparkLauncher(settings.var, settings.jars, pod_from(os.environ))
    keeper = Keeper(files, launcher, settings.kafka)
    board = Board()
    board.reads(keeper.readings)
    board.serve()
    while not ending.wait(LOOK_S):
        keeper.look(time.monotonic())
    while not keeper.look_to_the_end(time.monotonic()):
        time.sleep(LOOK_S)
    lock.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
