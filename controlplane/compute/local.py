"""Compute in the box: desired applications are files, and the keeper on this host starts them."""

from pathlib import Path

from controlplane.compute.files import ComputeFiles, StateFileError
from controlplane.compute.port import ComputeObservation, DesiredApplication


class LocalCompute:
    """Compute adapter for the files under PENSTOCK_VAR."""

    def __init__(self, var: Path) -> None:
        self._files = ComputeFiles(var)

    def submit(self, desired: DesiredApplication) -> None:
        """Write the desired application, unless it is there already."""
        if self.observe(desired.cell).desired != desired:
            self._files.request(desired)

    def stop(self, cell: str) -> None:
        """Remove the desired application."""
        self._files.withdraw(cell)

    def observe(self, cell: str) -> ComputeObservation:
        """Read both files; a malformed file counts as none, so that the next submit replaces it."""
        try:
            desired = self._files.desired(cell)
        except StateFileError:
            desired = None
        try:
            running = self._files.running(cell)
        except StateFileError:
            running = None
        return ComputeObservation(desired, running)
