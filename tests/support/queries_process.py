"""A cell's queries alone, without lanes, in a separate process that a test kills and restarts."""

import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from dataplane.jobs import lake_writer
from dataplane.jobs.dedup import DedupQuery
from dataplane.jobs.lake import LakeQuery
from dataplane.jobs.queries import Query, QuerySupervisor
from dataplane.jobs.windows import WindowsQuery
from dataplane.runtime.lake_conf import LAKE_CONF
from dataplane.runtime.settings import settings_from
from dataplane.tables.control import ControlReader

QUERIES: Final[dict[str, Callable[[], Query]]] = {"lake": LakeQuery, "dedup": DedupQuery, "windows": WindowsQuery}
COMPACT_EVERY: Final = 3  # batches, so that a test does not wait for twenty


def main() -> None:
    """Run `queries_process.py <cell> <query>...`: everything else comes from the environment."""
    cell_name, *names = sys.argv[1:]
    jars = os.environ["PENSTOCK_SPARK_JARS"]
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    lake_writer.COMPACT_EVERY = COMPACT_EVERY
    logging.getLogger("py4j").setLevel(logging.WARNING)
    builder = SparkSession.builder.master("local[4]").appName("queries")
    builder = builder.config("spark.jars", ",".join(map(str, Path(jars).glob("*.jar"))))
    for name, value in {**LAKE_CONF, "spark.ui.enabled": "false", "spark.scheduler.mode": "FAIR"}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    settings = settings_from(os.environ)
    reader = ControlReader(settings.kafka)
    keeper = QuerySupervisor(spark, settings, reader.table, [QUERIES[name]() for name in names])
    while True:
        reader.refresh()
        if cell := reader.table.cell(cell_name):
            keeper.poll(cell, "here")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
