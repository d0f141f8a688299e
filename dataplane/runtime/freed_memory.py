"""Return freed memory to the operating system.

The C library (glibc) keeps the pages of freed blocks: after a backlog, a lane keeps its peak, two to four times what it
uses, for as long as it runs. `malloc_trim` returns these pages; it takes 5 to 20 ms for an ordinary lane, and 0.3 s for
a backlog of 200 MB.
"""

import ctypes
import os
from pathlib import Path
from typing import Final

EVERY_S: Final = 60.0
KEPT_BYTES: Final = 8 * 1024 * 1024  # growth that is not worth the time of a call
_STATM: Final = Path("/proc/self/statm")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # None with other C libraries


class FreedMemory:
    """Memory of this process: compares it with the least that it ever had after a call, once a minute."""

    def __init__(self) -> None:
        self._due_s = 0.0
        self._least = 0

    def give_back(self, now_s: float) -> bool:
        """Return freed memory if there may be much of it; return True if it did. Call it when there is time to."""
        if now_s < self._due_s or _trim is None:
            return False
        self._due_s = now_s + EVERY_S
        if private_bytes() <= self._least + KEPT_BYTES:
            return False
        _trim(0)
        after = private_bytes()
        self._least = min(self._least or after, after)
        return True


def private_bytes() -> int:
    """Return the bytes of memory that this process shares with no file."""
    _, resident, shared, *_ = map(int, _STATM.read_text().split())
    return (resident - shared) * _PAGE
