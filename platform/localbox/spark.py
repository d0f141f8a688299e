"""Prepares Spark on this machine: its jars, and the archive of its classes."""

from localbox.class_archive import ensure_archive, with_archive
from localbox.jars import SPARK, ensure_jars
from localbox.java import find_java
from localbox.settings import BoxSettings


def ensure_spark_jars(settings: BoxSettings) -> None:
    """Get Spark's jars, unless they are there. Raises BoxError."""
    ensure_jars(SPARK, java=find_java(settings.env), cache=settings.cache, env=settings.env)


def ensure_spark(settings: BoxSettings) -> None:
    """Get the jars and archive the classes; the first start does not wait for the archive. Raises BoxError."""
    ensure_spark_jars(settings)
    ensure_archive(find_java(settings.env), settings.env)


def spark_env(settings: BoxSettings) -> dict[str, str]:
    """Return the variables that processes that start Spark need in addition to the box's environment."""
    return {"PENSTOCK_SPARK_JARS": str(SPARK.place(settings.cache))} | with_archive(
        find_java(settings.env), settings.env
    )
