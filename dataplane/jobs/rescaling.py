"""Change of the number of state partitions of a stopped query, in a copy of its checkpoint that then replaces it.

Spark redistributes the state of the last complete batch and skips an unfinished one, so the query reads that one's
input again; this is harmless, because results do not depend on the limits of batches. Spark cannot resume an
interrupted redistribution, so it never works on the checkpoint itself: after a kill at any moment, the next start
finds the old checkpoint or the new one.
"""

import json
import logging
import os
import shutil
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingCheckpointManager

log = logging.getLogger("queries")

PARTITIONS: Final = "spark.sql.shuffle.partitions"
# The last three are those of a checkpoint that cannot be read; Spark decides whether it can start from it.
FAILURES: Final = (PySparkException, Py4JJavaError, OSError, IndexError, KeyError, ValueError)


def state_partitions(checkpoint: Path) -> int | None:
    """Return the number of partitions of the query's state; None before its first complete batch."""
    batches, complete = (_batches(checkpoint / name) for name in ("offsets", "commits"))
    if not complete:
        return None
    _version, conf, *_offsets = (checkpoint / "offsets" / str(max(batches))).read_text().splitlines()
    return int(json.loads(conf)["conf"][PARTITIONS])


def finish_replacement(checkpoint: Path) -> None:
    """Finish, or remove, what a killed `rescale` left. Call it before looking for the checkpoint. Raises OSError."""
    if not checkpoint.exists() and _aside(checkpoint, "rescaled").exists():
        _aside(checkpoint, "rescaled").rename(checkpoint)
    for left in ("rescaling", "rescaled", "replaced"):
        shutil.rmtree(_aside(checkpoint, left), ignore_errors=True)


def rescale(spark: SparkSession, checkpoint: Path, partitions: int) -> str:
    """Redistribute the state over this number of partitions; no effect if it has them, or before its first batch.

    The query must not run. Return why it failed, as text, "" if it did not: the query keeps the partitions that it has.
    Raises OSError if the checkpoint itself could not be put back; the query must not start then.
    """
    try:
        known = state_partitions(checkpoint)
        if known in (None, partitions):
            return ""
        log.info("rescaling %s from %s to %d state partitions", checkpoint.name, known, partitions)
        _rescale_copy(spark, checkpoint, partitions)
        checkpoint.rename(_aside(checkpoint, "replaced"))
        finish_replacement(checkpoint)
    except FAILURES as exc:
        log.error("%s keeps its state partitions: %s: %s", checkpoint.name, type(exc).__name__, str(exc)[:2_000])
        finish_replacement(checkpoint)  # removes the copy
        return f"{type(exc).__name__}: {str(exc)[:200]}"
    return ""


def _rescale_copy(spark: SparkSession, checkpoint: Path, partitions: int) -> None:
    copy = _aside(checkpoint, "rescaling")
    # Links suffice: Spark never changes a file of a checkpoint, it only adds, replaces and removes files.
    shutil.copytree(checkpoint, copy, copy_function=os.link)
    spark._jsparkSession.streams()  # creates the coordinator of state stores, which the tasks need
    manager = StreamingCheckpointManager(spark._jsparkSession.streamingCheckpointManager())
    manager.repartition(str(copy), partitions, enforce_exactly_once_sink=False)
    copy.rename(_aside(checkpoint, "rescaled"))


def _batches(log_directory: Path) -> list[int]:
    return [int(file.name) for file in log_directory.glob("[0-9]*") if file.name.isdigit()]


def _aside(checkpoint: Path, suffix: str) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.{suffix}")
