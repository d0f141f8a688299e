"""The lake's query: what transmit lanes put on the cell's `lake` topic becomes rows of Delta tables, each once."""

from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from dataplane.jobs.lake_writer import LakeWriter
from dataplane.jobs.queries import Start
from dataplane.names import Purpose
from dataplane.plan.queries import is_asked
from dataplane.spec import PipeSpec

MOST_RECORDS: Final = 50_000  # of a batch: their headers pass through the driver, their bodies do not


class LakeQuery:
    """One for all lake destinations of a cell. A lost checkpoint costs nothing: tables know what they hold."""

    name = "lake"
    reads: Purpose = "lake"
    may_forget = True
    tasks = 2

    def __init__(self) -> None:
        self._writer: LakeWriter | None = None

    def asked_by(self, spec: PipeSpec) -> bool:
        """Whether one of its destinations is a lake."""
        return is_asked(self.name, spec)

    def start(self, spark: SparkSession, start: Start) -> Any:
        """From the checkpoint, or from where the journal says."""
        settings = start.settings
        writer = self._writer = LakeWriter(spark, start.cell, settings, start.table)
        options = {
            "kafka.bootstrap.servers": settings.kafka,
            "subscribe": start.cell.topics[self.reads].name,
            "startingOffsets": start.starting,
            "includeHeaders": "true",
            "maxOffsetsPerTrigger": str(MOST_RECORDS),
            "failOnDataLoss": "true",
            "kafka.fetch.max.wait.ms": "100",
        }
        records: DataFrame = spark.readStream.format("kafka").options(**options).load()
        written = records.writeStream.foreachBatch(writer.write).queryName(self.name)
        every = f"{int(settings.lake_every_s * 1_000)} milliseconds"
        return written.option("checkpointLocation", start.checkpoint).trigger(processingTime=every).start()

    def close(self) -> None:
        """It has ended."""
        self._writer = None
