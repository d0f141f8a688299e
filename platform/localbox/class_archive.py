"""An archive of the classes that Spark loads at its start, so that its JVM maps them instead of reading and verifying.

With it a killed driver restarts in half the time. The JVM checks that an archive was made by the same JVM from these
jars, and starts without an archive that was not, or is absent (JEP 350).
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from localbox import class_training
from localbox.jars import locked, spark_home

OPTIONS: Final = "SPARK_SUBMIT_OPTS"  # options that spark-submit passes to its JVM, besides those of its command line
_NAME: Final = "spark-classes"
_LIMIT_S: Final = 180  # for a start and an end of Spark, while all other programs start


def archive_of(java: Path) -> Path:
    """Return the archive's path: in the environment whose jars it was made from, one for each Java."""
    real = java.resolve()
    key = hashlib.sha256(f"{real} {real.stat().st_mtime_ns} {spark_home()}".encode()).hexdigest()[:16]
    return Path(sys.prefix) / f"{_NAME}-{key}.jsa"


def with_archive(java: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which spark-submit uses the archive, which need not exist yet."""
    return {OPTIONS: f"{env.get(OPTIONS, '')} -XX:SharedArchiveFile={archive_of(java)}".lstrip()}


def ensure_archive(java: Path, env: Mapping[str, str]) -> None:
    """Make the archive unless it exists: 15 s of two cores, during which other processes that need it wait.

    A failure is printed, and Spark then starts as slowly as without an archive.
    """
    archive = archive_of(java)
    if archive.exists() or not os.access(archive.parent, os.W_OK):
        return
    with locked(archive.with_suffix(".lock")):
        if archive.exists():  # made while we waited
            return
        print("archiving Spark's classes, so that it starts in half the time from now on ...", flush=True)
        if error := _make(archive, env):
            print(f"Spark's classes could not be archived, it starts without: {error}", file=sys.stderr, flush=True)


def _make(archive: Path, env: Mapping[str, str]) -> str:
    """Make the archive; return the error, "" if there was none."""
    scratch = archive.with_suffix(".part")
    home = spark_home()
    # The JVM writes the archive at its exit, for which spark-submit waits.
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    given = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", OPTIONS: f"-XX:ArchiveClassesAtExit={scratch}"}
    given |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    try:
        subprocess.run(
            [*command, class_training.__file__],
            env={**env, **given},
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=_LIMIT_S,
        )
        scratch.rename(archive)
    except subprocess.CalledProcessError as exc:
        return str(exc.stderr)[-300:]
    except (OSError, subprocess.TimeoutExpired) as exc:
        return str(exc)
    finally:
        scratch.unlink(missing_ok=True)
    for other in set(archive.parent.glob(f"{_NAME}-*.jsa")) - {archive}:  # of an earlier Java or Spark
        other.unlink(missing_ok=True)
    return ""
