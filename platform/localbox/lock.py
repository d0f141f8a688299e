"""The lock of a box: its supervisor has it while the box runs, a backup or a restore while nothing may start."""

import fcntl
import os
from typing import IO

from localbox.settings import BoxSettings


class box_lock:  # noqa: N801 reads as a function
    """Context manager that keeps others from running the box; enters with None if another process does."""

    def __init__(self, settings: BoxSettings) -> None:
        settings.run.mkdir(parents=True, exist_ok=True)
        self._path = settings.run / "lock"

    def __enter__(self) -> IO[str] | None:
        self._file = self._path.open("a")
        os.set_inheritable(self._file.fileno(), False)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        return self._file

    def __exit__(self, *_: object) -> None:
        self._file.close()
