"""The files through which the local adapter and the keeper communicate: desired and started applications.

compute/<cell>.json is the desired application, compute/running/<cell>.json the application that the keeper started;
compute/ingest/replicas.json is a request to the box's supervisor. Each file is replaced as a whole, so a reader sees
the old or the new one, whenever the writer crashes.
"""

import os
import re
from pathlib import Path
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from controlplane.compute.port import DesiredApplication, RunningApplication

CELL_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,19}")
T = TypeVar("T")


class StateFileError(Exception):
    """A file exists but cannot be decoded; a reader must not treat that as absence."""


class DesiredReplicas(Struct, frozen=True):
    """Desired number of ingest replicas, at least one, and their releases.

    release:   the build that they run (controlplane.compute.releases); "": that of the installed code
    canary:    the build that only the first replica runs; "": the same as the others
    installed: the build of the installed code when the supervisor started; a supervisor of other code ignores the rest
    """

    count: Annotated[int, Meta(ge=1)]
    release: str = ""
    canary: str = ""
    installed: str = ""

    def release_of(self, number: int) -> str:
        """Return the release of a replica; they are numbered from 1 on."""
        return (self.canary if number == 1 else "") or self.release


class ComputeFiles:
    """Reader and writer of these files under PENSTOCK_VAR."""

    def __init__(self, var: Path) -> None:
        self._folder = var / "compute"
        self._running = self._folder / "running"
        self._replicas = self._folder / "ingest" / "replicas.json"

    def cells(self) -> list[str]:
        """Return the cells that have either file."""
        found = {path.stem for folder in (self._folder, self._running) for path in folder.glob("*.json")}
        return sorted(cell for cell in found if CELL_NAME.fullmatch(cell))

    def desired(self, cell: str) -> DesiredApplication | None:
        """Return the desired application, or None. Raises StateFileError."""
        return _read(self._folder / f"{cell}.json", DesiredApplication)

    def running(self, cell: str) -> RunningApplication | None:
        """Return the application started last, or None. Raises StateFileError."""
        return _read(self._running / f"{cell}.json", RunningApplication)

    def request(self, desired: DesiredApplication) -> None:
        """Ask for an application. Raises ValueError if the cell's name is malformed."""
        _write(self._folder / f"{_checked(desired.cell)}.json", desired)

    def withdraw(self, cell: str) -> None:
        """Ask for no application of the cell."""
        (self._folder / f"{_checked(cell)}.json").unlink(missing_ok=True)

    def replicas(self) -> DesiredReplicas | None:
        """Return the desired ingest replicas; None if none were requested. Raises StateFileError."""
        return _read(self._replicas, DesiredReplicas)

    def request_replicas(self, desired: DesiredReplicas) -> None:
        """Ask for these ingest replicas."""
        _write(self._replicas, desired)

    def started(self, running: RunningApplication) -> None:
        """Store the application that was started."""
        _write(self._running / f"{_checked(running.cell)}.json", running)

    def ended(self, cell: str) -> None:
        """Store that no application of the cell runs."""
        (self._running / f"{_checked(cell)}.json").unlink(missing_ok=True)


def _checked(cell: str) -> str:
    if not CELL_NAME.fullmatch(cell):
        raise ValueError(f"cell: needs 1-20 of a-z, 0-9 and '-', got {cell!r}")
    return cell


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as exc:
        raise StateFileError(f"{path}: {exc}") from exc


def _write(path: Path, value: DesiredApplication | RunningApplication | DesiredReplicas) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with scratch.open("wb") as file:
        file.write(msgspec.json.encode(value))
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
