"""The compute port: how the control plane asks for a cell's application. It states a wish; somebody else keeps it.

Nothing here starts or watches a process: whoever keeps the application alive (the keeper in the box, `supervise` on
Spark standalone, Kubernetes' restart policy) does so while the control plane is dead.
"""

from typing import Protocol

from msgspec import Struct


class ComputeError(Exception):
    """The place that was asked does not answer, or refuses: ask again later."""


class Desired(Struct, frozen=True):
    """The application a cell should have: one for each (cell, epoch), on the Spark master at this URL.

    release: the build that it runs (controlplane.compute.releases)
    """

    cell: str
    epoch: int
    master: str
    release: str


class Running(Struct, frozen=True):
    """An application that was started: its process (with its start time, as pids are used again) and incarnation."""

    cell: str
    epoch: int
    incarnation: str
    pid: int
    created: float
    starts: int
    master: str = ""
    release: str = ""


class Observation(Struct, frozen=True):
    """What was asked for and what was last started, as far as the adapter knows."""

    desired: Desired | None
    running: Running | None


class Compute(Protocol):
    """One adapter a kind of place; every method may be called again with the same arguments at any time.

    Each may raise ComputeError.
    """

    def submit(self, desired: Desired) -> None:
        """Ask for this application; an older epoch of the cell drains and ends first."""
        ...

    def stop(self, cell: str) -> None:
        """Ask for no application of this cell."""
        ...

    def observe(self, cell: str) -> Observation:
        """What is asked for and what runs."""
        ...
