"""Prepares Spark on this machine: its jars, and the archive of its classes."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from localbox import spark_training
from localbox.class_archive import ClassArchive, archive_in
from localbox.jars import SPARK, ensure_jars, spark_home
from localbox.java import find_java
from localbox.settings import BoxSettings

OPTIONS: Final = "SPARK_SUBMIT_OPTS"  # options that spark-submit passes to its JVM, besides those of its command line
_LIMIT_S: Final = 180  # for a start and an end of Spark, while all other programs start


def ensure_spark_jars(settings: BoxSettings) -> None:
    """Get Spark's jars, unless they are there. Raises BoxError."""
    ensure_jars(SPARK, java=find_java(settings.env), cache=settings.cache, env=settings.env)


def ensure_spark(settings: BoxSettings) -> None:
    """Get the jars and archive the classes; the first start does not wait for the archive. Raises BoxError."""
    ensure_spark_jars(settings)
    ensure_spark_archive(find_java(settings.env), settings.env)


def spark_env(settings: BoxSettings) -> dict[str, str]:
    """Return the variables that processes that start Spark need in addition to the box's environment."""
    return {"PENSTOCK_SPARK_JARS": str(SPARK.place(settings.cache))} | with_archive(
        find_java(settings.env), settings.env
    )


def spark_archive(java: Path) -> ClassArchive:
    """Return the archive, in the environment whose jars it was made from."""
    return archive_in(Path(sys.prefix), program="Spark", java=java, jars=spark_home())


def with_archive(java: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which spark-submit uses the archive, which need not exist yet."""
    return {OPTIONS: f"{env.get(OPTIONS, '')} {spark_archive(java).option}".lstrip()}


def ensure_spark_archive(java: Path, env: Mapping[str, str]) -> None:
    """Archive Spark's classes, unless they are archived already."""

    def record(option: str) -> None:
        home = spark_home()
        # The JVM writes the archive at its exit, for which spark-submit waits.
        command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--conf", "spark.ui.enabled=false"]
        given = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", OPTIONS: option}
        given |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        subprocess.run(
            [*command, spark_training.__file__],
            env={**env, **given},
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=_LIMIT_S,
        )

    spark_archive(java).ensure(record)
