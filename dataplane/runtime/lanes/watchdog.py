"""Watchdog: end a process whose loop hangs, with a stack dump, so that its supervisor restarts it."""

import faulthandler
import os
import sys
import threading
import time
from typing import Final

STANDSTILL_S: Final = 60.0
EXIT_STANDSTILL: Final = 70


class Watchdog:
    """Watchdog thread: the process exits with EXIT_STANDSTILL after `limit_s` seconds without `pat()`."""

    def __init__(self, limit_s: float = STANDSTILL_S) -> None:
        self._limit_s = limit_s
        self._patted = time.monotonic()
        self._off = threading.Event()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def pat(self) -> None:
        """Report one pass of the loop."""
        self._patted = time.monotonic()

    def close(self) -> None:
        """Stop watching."""
        self._off.set()

    def _watch(self) -> None:
        while not self._off.wait(1.0):
            if time.monotonic() - self._patted > self._limit_s:
                faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
                os._exit(EXIT_STANDSTILL)
