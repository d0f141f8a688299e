"""One program of the box as data: how to start it, how to know that it is ready, how to stop it."""

import signal
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path

from msgspec import Struct

Probe = Callable[[], str | None]  # None: ready; else why not yet


class Stage(IntEnum):
    """Start order. Stopping goes the other way: what brings work stops before what does it, services last."""

    SERVICES = 0
    SETUP = 1
    CONTROL = 2
    COMPUTE = 3
    INGEST = 4
    DEMO = 5


class Program(Struct, frozen=True):
    """A process the box keeps alive, a one-shot step, or (no command) a service that somebody else runs.

    after:    names of programs that must be ready, or done, before this one starts
    prepare:  run before the first start only, on a thread: make data directories, get jars
    probe:    asked again and again after the start until it says None
    stop:     the signal that asks for an orderly end, and how many seconds it may take
    """

    name: str
    stage: Stage
    command: tuple[str, ...] | None
    after: tuple[str, ...] = ()
    env: dict[str, str] = {}
    user: str | None = None
    cwd: Path | None = None
    one_shot: bool = False
    prepare: Callable[[], None] | None = None
    probe: Probe | None = None
    version: Callable[[], str] | None = None
    port: int | None = None
    stop_signal: int = signal.SIGTERM
    stop_grace_s: float = 10.0


def in_order(programs: Sequence[Program]) -> list[Program]:
    """By stage, otherwise as listed. Raises ValueError if a program waits for one that is not there."""
    names = {program.name for program in programs}
    for program in programs:
        if missing := set(program.after) - names:
            raise ValueError(f"{program.name}: waits for {sorted(missing)}, which are not in the list")
    return sorted(programs, key=lambda program: program.stage)
