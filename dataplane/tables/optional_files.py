"""Optional files, which only speed up a restart: snapshots, verdicts, crash notes, look-up tables.

A full or read-only disk must not stop the work: a failure is recorded, reported in the process's heartbeat or metrics,
and the operation is tried again on the next occasion.
"""

import logging
import time
from typing import Final

from msgspec import Struct

CALM_S: Final = 10.0  # without a failure until the files count as usable: on a nearly full disk some writes succeed
STALE_S: Final = 60.0  # a failure that was not repeated for so long is dropped: it says nothing about the disk now
log = logging.getLogger(__name__)


class _Failure(Struct):
    why: str
    at_s: float
    has_recovered: bool = False  # the last attempt succeeded


class OptionalFiles:
    """Kinds of optional files that this process cannot use now. Each change is logged once."""

    def __init__(self) -> None:
        self._failures: dict[str, _Failure] = {}

    @property
    def failing(self) -> int:
        """Return how many kinds of files cannot be used."""
        self._drop_recovered()
        return len(self._failures)

    @property
    def trouble(self) -> str:
        """Return a description of all failures, which is constant while they last; "" if there is none."""
        self._drop_recovered()
        return "; ".join(f"{what}: {failure.why}" for what, failure in sorted(self._failures.items()))

    def attempt(self, what: str) -> "OptionalWrite":
        """Return a context manager for work with files of this kind. It records and suppresses an OSError."""
        return OptionalWrite(self, what)

    def failed(self, what: str, why: str) -> None:
        """Record that files of this kind cannot be used."""
        if what not in self._failures:
            log.error("cannot use %s, continuing without: %s", what, why)
        self._failures[what] = _Failure(why, time.monotonic())

    def succeeded(self, what: str) -> None:
        """Record that files of this kind were used."""
        if what in self._failures:
            self._failures[what].has_recovered = True

    def _drop_recovered(self) -> None:
        for what, failure in list(self._failures.items()):
            if time.monotonic() - failure.at_s >= (CALM_S if failure.has_recovered else STALE_S):
                del self._failures[what]
                log.warning("%s can be used again", what)


class OptionalWrite:
    """Context manager that records and suppresses an OSError; other exceptions propagate."""

    __slots__ = ("_files", "_what")

    def __init__(self, files: OptionalFiles, what: str) -> None:
        self._files, self._what = files, what

    def __enter__(self) -> None:
        """Do nothing: only the end of the block matters."""

    def __exit__(self, _kind: object, failure: BaseException | None, _trace: object) -> bool:
        """Record the result of the block."""
        if isinstance(failure, OSError):
            self._files.failed(self._what, failure.strerror or str(failure) or type(failure).__name__)
            return True
        if failure is None:
            self._files.succeeded(self._what)
        return False
