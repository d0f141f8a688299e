"""The compute port, through which the control plane states the desired application of a cell.

An adapter starts and watches no process: the keeper, which also submits to Spark standalone, or Kubernetes' restart
policy keeps the application alive, also while the control plane is down.
"""

from typing import Protocol

from msgspec import Struct


class ComputeError(Exception):
    """The compute platform does not respond, or refuses the request; retry later."""


class DesiredApplication(Struct, frozen=True):
    """The application that a cell should have: one for each (cell, epoch), on the Spark master at this URL.

    release: the build that it runs (controlplane.compute.releases)
    """

    cell: str
    epoch: int
    master: str
    release: str


class RunningApplication(Struct, frozen=True):
    """An application that was started: its process and its incarnation, which that process has in its environment."""

    cell: str
    epoch: int
    incarnation: str
    pid: int
    starts: int
    master: str = ""
    release: str = ""


class ComputeObservation(Struct, frozen=True):
    """The desired application and the one last started, as far as the adapter knows."""

    desired: DesiredApplication | None
    running: RunningApplication | None


class Compute(Protocol):
    """Port with one adapter per compute platform. All methods are idempotent, and may raise ComputeError."""

    def submit(self, desired: DesiredApplication) -> None:
        """Ask for this application; one of an older epoch drains and ends first."""
        ...

    def stop(self, cell: str) -> None:
        """Ask for no application of this cell."""
        ...

    def observe(self, cell: str) -> ComputeObservation:
        """Return the desired and the running application."""
        ...
