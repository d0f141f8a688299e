"""An archive of the classes that a Java program loads at its start: the JVM maps them instead of reading and verifying.

With it Spark and Kafka start in half the time, also after a kill. The JVM checks that an archive was made by the same
JVM from these jars, and starts without an archive that was not, or is absent (JEP 350).
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from localbox.jars import locked


class ClassArchive(Struct, frozen=True):
    """Archive of one program's classes. `program`: its name in messages."""

    program: str
    path: Path

    @property
    def option(self) -> str:
        """The JVM's option to use the archive, which need not exist yet."""
        return f"-XX:SharedArchiveFile={self.path}"

    def ensure(self, record: Callable[[str], None]) -> None:
        """Make the archive unless it exists: 10 to 15 s of two cores, during which other processes that need it wait.

        `record` starts the program with an option of the JVM, which then writes the archive at its exit, and ends it.
        A failure is printed, and the program then starts as slowly as without an archive.
        """
        if self.path.exists() or not os.access(self.path.parent, os.W_OK):
            return
        with locked(self.path.with_suffix(".lock")):
            if self.path.exists():  # made while we waited
                return
            print(f"archiving {self.program}'s classes, so that it starts in half the time from now on ...", flush=True)
            if error := self._make(record):
                message = f"{self.program}'s classes could not be archived, it starts without: {error}"
                print(message, file=sys.stderr, flush=True)

    def _make(self, record: Callable[[str], None]) -> str:
        """Make the archive; return the error, "" if there was none."""
        scratch = self.path.with_suffix(".part")
        try:
            record(f"-XX:ArchiveClassesAtExit={scratch}")
            scratch.rename(self.path)
        except subprocess.CalledProcessError as exc:
            return str(exc.stderr)[-300:]
        except (OSError, subprocess.TimeoutExpired) as exc:
            return str(exc)
        finally:
            scratch.unlink(missing_ok=True)
        name = self.path.stem.rpartition("-")[0]
        for other in set(self.path.parent.glob(f"{name}-*.jsa")) - {self.path}:  # of earlier jars, or an earlier Java
            other.unlink(missing_ok=True)
        return ""


def archive_in(folder: Path, *, program: str, java: Path, jars: Path) -> ClassArchive:
    """Return the archive of the program of these jars, one for each Java and folder of jars."""
    real = java.resolve()
    key = hashlib.sha256(f"{real} {real.stat().st_mtime_ns} {jars}".encode()).hexdigest()[:16]
    return ClassArchive(program, folder / f"{program.lower()}-classes-{key}.jsa")
