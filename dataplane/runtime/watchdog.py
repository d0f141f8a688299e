"""The watchdog: a loop that stands still is ended with a stack dump, so that whoever keeps it alive starts it anew."""

import faulthandler
import os
import sys
import threading
import time
from typing import Final

STANDSTILL_S: Final = 60.0
EXIT_STANDSTILL: Final = 70


class Watchdog:
    """`pat()` it on every pass; after STANDSTILL_S without one the process ends."""

    def __init__(self, limit_s: float = STANDSTILL_S) -> None:
        self._limit_s = limit_s
        self._patted = time.monotonic()
        self._off = threading.Event()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def pat(self) -> None:
        """The loop goes round."""
        self._patted = time.monotonic()

    def close(self) -> None:
        """Stop watching."""
        self._off.set()

    def _watch(self) -> None:
        while not self._off.wait(1.0):
            if time.monotonic() - self._patted > self._limit_s:
                faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
                os._exit(EXIT_STANDSTILL)
