"""Compute adapter in memory, for tests of controllers."""

from controlplane.compute.port import ComputeObservation, DesiredApplication


class MemoryCompute:
    """Compute adapter that stores the desired applications of one process in a dictionary."""

    def __init__(self) -> None:
        self._desired: dict[str, DesiredApplication] = {}

    def submit(self, desired: DesiredApplication) -> None:
        """Store the desired application."""
        self._desired[desired.cell] = desired

    def stop(self, cell: str) -> None:
        """Remove the desired application."""
        self._desired.pop(cell, None)

    def observe(self, cell: str) -> ComputeObservation:
        """Return the desired application; none ever runs here."""
        return ComputeObservation(self._desired.get(cell), None)
