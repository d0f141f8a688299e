"""The launcher port of the keeper, through which it starts applications."""

import subprocess
from pathlib import Path
from typing import Protocol

from controlplane.compute.port import DesiredApplication


class ApplicationLauncher(Protocol):
    """Starts one incarnation of an application, with PENSTOCK_INCARNATION in its environment."""

    def start(
        self, desired: DesiredApplication, incarnation: str, standby: Path | None = None
    ) -> "subprocess.Popen[bytes]":
        """Start it in a session of its own; with `standby`, it waits at this FIFO."""
        ...
