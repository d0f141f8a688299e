"""Compute that only remembers: for tests of whoever asks."""

from controlplane.compute.port import Desired, Observation


class MemoryCompute:
    """Keeps the wishes of one process in a dictionary."""

    def __init__(self) -> None:
        self._desired: dict[str, Desired] = {}

    def submit(self, desired: Desired) -> None:
        """Remember it."""
        self._desired[desired.cell] = desired

    def stop(self, cell: str) -> None:
        """Forget it."""
        self._desired.pop(cell, None)

    def observe(self, cell: str) -> Observation:
        """Nothing ever runs here."""
        return Observation(self._desired.get(cell), None)
