"""Spark configuration that Delta needs at start, for every process that starts Spark. Not part of any lane."""

from typing import Final

LAKE_CONF: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # a table's log is small: two tasks read it, not fifty
    "spark.sql.session.timeZone": "UTC",
}
