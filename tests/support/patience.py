"""Time limits of tests that extend on a busy machine: time spent waiting for a CPU counts for less.

The kernel reports how long something waited for a CPU (`/proc/pressure/cpu`). On an idle machine, or with a kernel
without that report, limits apply as written.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

MOST_STRETCH: Final = 4.0
_PRESSURE: Final = Path("/proc/pressure/cpu")


class Patience:
    """Time limit in seconds that begins now."""

    def __init__(self, limit_s: float = math.inf) -> None:
        self._limit_s = limit_s
        self._began_s, self._began_waited_s = time.monotonic(), _waited_s()

    @property
    def stretch(self) -> float:
        """Return how many times longer an operation may last than on an idle machine: 1 to MOST_STRETCH."""
        elapsed_s = time.monotonic() - self._began_s
        free_s = elapsed_s - (_waited_s() - self._began_waited_s)
        return MOST_STRETCH if free_s * MOST_STRETCH <= elapsed_s else max(1.0, elapsed_s / free_s)

    @property
    def counted_s(self) -> float:
        """Return the seconds since the beginning that count."""
        return (time.monotonic() - self._began_s) / self.stretch

    @property
    def is_over(self) -> bool:
        """Return True if the limit has passed."""
        return self.counted_s >= self._limit_s


def until(
    truth: Callable[[], object],
    what: str = "the condition holds",
    limit_s: float = 60.0,
    *,
    seen: Callable[[], object] | None = None,
) -> float:
    """Wait until `truth` holds; return the counted seconds (see Patience). `seen`: the state to report if not."""
    patience = Patience(limit_s)
    while not truth():
        if patience.is_over:
            pytest.fail(f"not within {limit_s:g} s: {what}" + (f"; instead: {seen()}" if seen else ""))
        time.sleep(0.1)
    return patience.counted_s


def step_until(
    truth: Callable[[], object], step: Callable[[], None] = lambda: None, limit_s: float = 15, *, every_s: float = 0.02
) -> None:
    """Call `step` until the condition holds."""
    patience = Patience(limit_s)
    while not truth():
        assert not patience.is_over, "the condition did not hold in time"
        step()
        time.sleep(every_s)


def _waited_s() -> float:
    """Return the seconds since the machine started in which at least one thread waited for a CPU."""
    try:
        some = _PRESSURE.read_text().splitlines()[0]
    except OSError:
        return 0.0
    return int(some.rpartition("total=")[2]) / 1e6
