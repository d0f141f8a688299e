"""The files through which the local adapter and the keeper meet: what should run, and what was started.

compute/<cell>.json is the wish, compute/running/<cell>.json what the keeper started; compute/ingest/replicas.json is a
wish, too, kept by the box's supervisor. Each is replaced as a whole, so a reader sees the old one or the new one,
whenever the writer dies.
"""

import os
import re
from pathlib import Path
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from controlplane.compute.port import Desired, Running

CELL_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,19}")
T = TypeVar("T")


class BrokenFileError(Exception):
    """A file is there but says nothing that can be used; whoever reads it must not take that for absence."""


class Replicas(Struct, frozen=True):
    """How many replicas of ingest are asked for, one at least."""

    count: Annotated[int, Meta(ge=1)]


class ComputeFiles:
    """Reads and writes these files under PENSTOCK_VAR."""

    def __init__(self, var: Path) -> None:
        self._wishes = var / "compute"
        self._running = self._wishes / "running"
        self._replicas = self._wishes / "ingest" / "replicas.json"

    def cells(self) -> list[str]:
        """Cells with either file."""
        found = {path.stem for folder in (self._wishes, self._running) for path in folder.glob("*.json")}
        return sorted(cell for cell in found if CELL_NAME.fullmatch(cell))

    def desired(self, cell: str) -> Desired | None:
        """The wish, or None if there is none. Raises BrokenFileError."""
        return _read(self._wishes / f"{cell}.json", Desired)

    def running(self, cell: str) -> Running | None:
        """What was started last, or None. Raises BrokenFileError."""
        return _read(self._running / f"{cell}.json", Running)

    def wish(self, desired: Desired) -> None:
        """Ask for an application."""
        _write(self._wishes / f"{_checked(desired.cell)}.json", desired)

    def unwish(self, cell: str) -> None:
        """Ask for none."""
        (self._wishes / f"{_checked(cell)}.json").unlink(missing_ok=True)

    def replicas(self) -> int | None:
        """How many replicas of ingest are asked for; None if nobody has. Raises BrokenFileError."""
        found = _read(self._replicas, Replicas)
        return found.count if found else None

    def wish_replicas(self, count: int) -> None:
        """Ask for so many replicas of ingest."""
        _write(self._replicas, Replicas(count))

    def started(self, running: Running) -> None:
        """Note what was started."""
        _write(self._running / f"{_checked(running.cell)}.json", running)

    def ended(self, cell: str) -> None:
        """Note that nothing runs."""
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
        raise BrokenFileError(f"{path}: {exc}") from exc


def _write(path: Path, value: Desired | Running | Replicas) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with scratch.open("wb") as file:
        file.write(msgspec.json.encode(value))
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
