"""Compute in the box: wishes are files, and the keeper on this host makes them true."""

from pathlib import Path

from controlplane.compute.files import BrokenFileError, ComputeFiles
from controlplane.compute.port import Desired, Observation


class LocalCompute:
    """The port over files under PENSTOCK_VAR."""

    def __init__(self, var: Path) -> None:
        self._files = ComputeFiles(var)

    def submit(self, desired: Desired) -> None:
        """Write the wish, unless it stands there already."""
        if self.observe(desired.cell).desired != desired:
            self._files.wish(desired)

    def stop(self, cell: str) -> None:
        """Remove the wish."""
        self._files.unwish(cell)

    def observe(self, cell: str) -> Observation:
        """Read both files; a broken wish counts as none, so that the next submit mends it."""
        try:
            desired = self._files.desired(cell)
        except BrokenFileError:
            desired = None
        try:
            running = self._files.running(cell)
        except BrokenFileError:
            running = None
        return Observation(desired, running)
