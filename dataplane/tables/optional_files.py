"""Files that make a restart quicker and that nothing depends on: snapshots, verdicts, crash notes, look-up tables.

A disk that is full or read-only must not stop the work: what fails is noted, reported by whoever owns the notes, and
tried again on the next occasion.
"""

import logging
import time
from typing import Final

from msgspec import Struct

CALM_S: Final = 10.0  # without a failure; on a disk that is nearly full some writes succeed between others
STALE_S: Final = 60.0  # a failure that nothing has repeated says nothing of the disk as it is now
log = logging.getLogger(__name__)


class _Failure(Struct):
    why: str
    at_s: float
    is_mended: bool = False  # the last attempt succeeded


class OptionalFiles:
    """Which kinds of files of this process cannot be used now. One line in the log for each change."""

    def __init__(self) -> None:
        self._failures: dict[str, _Failure] = {}

    @property
    def failing(self) -> int:
        """How many kinds of files cannot be used."""
        self._forget_mended()
        return len(self._failures)

    @property
    def trouble(self) -> str:
        """What fails and why, in words that stay the same while it lasts; "" if nothing does."""
        self._forget_mended()
        return "; ".join(f"{what}: {failure.why}" for what, failure in sorted(self._failures.items()))

    def attempt(self, what: str) -> "Attempt":
        """Do something with files of this kind. An OSError is noted until attempts have succeeded for a while."""
        return Attempt(self, what)

    def failed(self, what: str, why: str) -> None:
        """Note that files of this kind cannot be used."""
        if what not in self._failures:
            log.error("going on without %s: %s", what, why)
        self._failures[what] = _Failure(why, time.monotonic())

    def succeeded(self, what: str) -> None:
        """Note that files of this kind were used."""
        if what in self._failures:
            self._failures[what].is_mended = True

    def _forget_mended(self) -> None:
        for what, failure in list(self._failures.items()):
            if time.monotonic() - failure.at_s >= (CALM_S if failure.is_mended else STALE_S):
                del self._failures[what]
                log.warning("%s can be used again", what)


class Attempt:
    """A block that goes on behind its end after an OSError, which is noted; anything else is raised."""

    __slots__ = ("_files", "_what")

    def __init__(self, files: OptionalFiles, what: str) -> None:
        self._files, self._what = files, what

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, failure: BaseException | None, _trace: object) -> bool:
        """Note how it went."""
        if isinstance(failure, OSError):
            self._files.failed(self._what, failure.strerror or str(failure) or type(failure).__name__)
            return True
        if failure is None:
            self._files.succeeded(self._what)
        return False
