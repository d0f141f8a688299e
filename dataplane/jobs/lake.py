"""The lake query: writes each message of the cell's `lake` topic, which transmit lanes fill, once to a Delta table."""

from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from dataplane.jobs.lake_writer import LakeWriter
from dataplane.jobs.queries import QueryStart
from dataplane.kafka_java import spark_kafka_options
from dataplane.names import Purpose
from dataplane.plan.queries import needs_query
from dataplane.spec import PipeSpec

MOST_RECORDS: Final = 50_000  # of a batch: their headers pass through the driver, their bodies do not


class LakeQuery:
    """The lake query of a cell, for all lake destinations. A lost checkpoint costs nothing: tables know their rows."""

    name = "lake"
    reads: Purpose = "lake"
    may_forget = True
    has_state = False
    tasks = 2

    def is_needed_by(self, spec: PipeSpec) -> bool:
        """Return True if the spec has a lake destination."""
        return needs_query(self.name, spec)

    def start(self, spark: SparkSession, start: QueryStart) -> Any:
        """Start the query from its checkpoint, or else from the journal's offsets."""
        settings = start.settings
        writer = LakeWriter(spark, start.cell, settings, start.table)
        options = spark_kafka_options(settings.kafka) | {
            "subscribe": start.cell.topics[self.reads].name,
            "startingOffsets": start.starting,
            "includeHeaders": "true",
            "maxOffsetsPerTrigger": str(MOST_RECORDS),
            "failOnDataLoss": "true",
            "kafka.fetch.max.wait.ms": "100",
        }
        records: DataFrame = spark.readStream.format("kafka").options(**options).load()
        written = records.writeStream.foreachBatch(writer.write).queryName(self.name)
        interval = f"{int(settings.lake_every_s * 1_000)} milliseconds"
        return written.option("checkpointLocation", start.checkpoint).trigger(processingTime=interval).start()

    def close(self) -> None:
        """Do nothing: the query opens no Kafka client."""
