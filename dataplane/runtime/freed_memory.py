"""Return freed memory to the operating system.

The C library (glibc) keeps the pages of freed blocks: after a backlog, a lane keeps its peak, two to four times what it
uses, for as long as it runs. `malloc_trim` returns these pages. It takes a few milliseconds, and up to 0.3 s after a
backlog of 200 MB.
"""

import ctypes
import os
from pathlib import Path
from typing import Final

EVERY_S: Final = 60.0
LONGEST_S: Final = 600.0
WORTH_BYTES: Final = 8 * 1024 * 1024
_STATM: Final = Path("/proc/self/statm")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # None with other C libraries


class FreedMemory:
    """Freed memory of this process. It is returned once a minute, and less often while that returns little."""

    def __init__(self) -> None:
        self._due_s = self._next_try_s = 0.0
        self._wait_s = EVERY_S
        self._after = 0

    def trim(self, now_s: float) -> bool:
        """Return freed memory if that is due, or if the process has grown since; return True if it tried.

        Call it when the process is idle.
        """
        if now_s < self._due_s or _malloc_trim is None:
            return False
        self._due_s = now_s + EVERY_S
        try:
            before = anonymous_bytes()
            if now_s < self._next_try_s and before < self._after + WORTH_BYTES:
                return False
            _malloc_trim(0)
            self._after = anonymous_bytes()
        except OSError:  # there is no /proc
            return False
        self._wait_s = EVERY_S if before - self._after >= WORTH_BYTES else min(2 * self._wait_s, LONGEST_S)
        self._next_try_s = now_s + self._wait_s
        return True


def anonymous_bytes() -> int:
    """Return the anonymous memory of this process, pages that it still shares with its parent included.

    Raises OSError without /proc.
    """
    _, resident, of_files, *_ = map(int, _STATM.read_text().split())
    return (resident - of_files) * _PAGE
