"""Repeated kills of the whole application of a cell, each time while it works."""

import os
import signal

from tests.support.data_plane import DataPlane
from tests.support.patience import until


class Killer:
    """Killer of the application that delivers to a path of the receiver."""

    def __init__(self, plane: DataPlane, path: str) -> None:
        self._plane, self._path = plane, path
        self._delivered = 0

    def kill(self) -> None:
        """Wait for a delivery to the path since the last kill, then SIGKILL the application's JVM."""
        got = self._plane.receiver.got[self._path]
        until(lambda: len(got) > self._delivered, f"a message comes to {self._path}", 240)
        until(self._plane.is_running, "the application is back", 240)  # perhaps by the previous application
        os.kill(self._plane.driver_pid(), signal.SIGKILL)
        self._delivered = len(got)
