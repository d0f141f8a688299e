"""An archive of the classes that Spark loads at its start, so that its JVM maps them instead of reading and verifying.

With one a driver that was killed is back in half the time. The JVM checks that an archive is its own and of these jars,
and goes on without one that is not, or is not there (JEP 350).
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

OPTIONS: Final = "SPARK_SUBMIT_OPTS"  # what spark-submit gives its JVM beside the options of its command line
_NAME: Final = "spark-classes"
_LIMIT_S: Final = 180  # a start and an end of Spark, beside all else that starts


def archive_of(java: Path) -> Path:
    """Where it lies: in the environment whose jars it is of, one for each Java."""
    real = java.resolve()
    key = hashlib.sha256(f"{real} {real.stat().st_mtime_ns} {spark_home()}".encode()).hexdigest()[:16]
    return Path(sys.prefix) / f"{_NAME}-{key}.jsa"


def with_archive(java: Path, env: Mapping[str, str]) -> dict[str, str]:
    """What the environment of spark-submit has to say for the archive to be used; it need not be there yet."""
    return {OPTIONS: f"{env.get(OPTIONS, '')} -XX:SharedArchiveFile={archive_of(java)}".lstrip()}


def ensure_archive(java: Path, env: Mapping[str, str]) -> None:
    """Make it unless it is there: a quarter of a minute of two cores, during which whoever else wants it waits.

    Where it cannot be made that is said, and Spark starts as slowly as without.
    """
    place = archive_of(java)
    if place.exists() or not os.access(place.parent, os.W_OK):
        return
    with locked(place.with_suffix(".lock")):
        if place.exists():  # made while we waited
            return
        print("archiving Spark's classes, so that it starts in half the time from now on ...", flush=True)
        if trouble := _make(place, env):
            print(f"Spark's classes could not be archived, it starts without: {trouble}", file=sys.stderr, flush=True)


def _make(place: Path, env: Mapping[str, str]) -> str:
    """What went wrong, if anything."""
    scratch = place.with_suffix(".part")
    home = spark_home()
    # The archive is written when the JVM ends, which spark-submit waits for.
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
        scratch.rename(place)
    except subprocess.CalledProcessError as exc:
        return str(exc.stderr)[-300:]
    except (OSError, subprocess.TimeoutExpired) as exc:
        return str(exc)
    finally:
        scratch.unlink(missing_ok=True)
    for other in set(place.parent.glob(f"{_NAME}-*.jsa")) - {place}:  # of a Java or a Spark that was here before
        other.unlink(missing_ok=True)
    return ""
