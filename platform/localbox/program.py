"""One program of the box as data: its command, its readiness probe, its stop signal."""

import signal
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path

from msgspec import Struct

Probe = Callable[[], str | None]  # None: ready; else why not yet


class StartStage(IntEnum):
    """Start order. Programs stop in reverse order: sources of work before the programs that do it, services last."""

    SERVICES = 0
    SETUP = 1
    CONTROL = 2
    COMPUTE = 3
    INGEST = 4
    DEMO = 5


class Program(Struct, frozen=True):
    """A process that the box keeps alive, a one-shot step, or (without a command) a service that others run.

    after:        names of programs that must be ready, or done, before this one starts
    prepare:      run before the first start only, in a thread: make data directories, get jars
    probe:        called repeatedly after the start until it returns None
    stop_signal:  the signal that asks for an orderly exit
    stop_grace_s: seconds that this exit may take
    patient:      the box starts without it if it does not become ready, and it is restarted for ever
    """

    name: str
    stage: StartStage
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
    patient: bool = False


def in_order(programs: Sequence[Program]) -> list[Program]:
    """Sort the programs by stage, else as listed. Raises ValueError if one waits for a program that is not listed."""
    names = {program.name for program in programs}
    for program in programs:
        if missing := set(program.after) - names:
            raise ValueError(f"{program.name}: waits for {sorted(missing)}, which are not in the list")
    return sorted(programs, key=lambda program: program.stage)
