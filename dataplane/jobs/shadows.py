"""Shadow runs of a cell as Spark jobs (dataplane.jobs.run_supervisor)."""

from typing import Any, ClassVar, Final

from confluent_kafka import Consumer, TopicPartition

from dataplane.jobs.ledger_reporter import QueryLedgerReporter
from dataplane.jobs.run_supervisor import RunSupervisor
from dataplane.jobs.shadow_queue import KIND, ShadowEffects, ShadowQueue
from dataplane.jobs.shadow_task import shadow_rdd
from dataplane.kafka_errors import raise_first_error
from dataplane.names import lane_group
from dataplane.shadow.job import PartComparison, PartRead, ShadowJob
from dataplane.tables.records import CellRecord, Record, ShadowRecord

ASK_S: Final = 10.0


class ShadowSupervisor(RunSupervisor[ShadowRecord]):
    """Runs the shadow runs of the driver's cell. A repeated job counts once."""

    kind: ClassVar[str] = KIND

    def _as_run(self, record: Record) -> tuple[str, ShadowRecord] | None:
        return (record.shadow, record) if isinstance(record, ShadowRecord) else None

    def _queue(self, reporter: QueryLedgerReporter, reader: Any) -> ShadowQueue:
        effects = ShadowEffects(self._run_job, self._committed)
        return ShadowQueue(self._table, self._settings.fernet_keys, reporter, reader, effects)

    def _run_job(self, job: ShadowJob, tasks: int) -> list[PartRead | PartComparison]:
        return self._collect(job.record.shadow, tasks, lambda: shadow_rdd(self._context, job, tasks))

    def _committed(self, cell: CellRecord) -> dict[int, int]:
        """Return the offsets that process lanes have committed, by partition of ingest. Raises KafkaException.

        The client belongs to the lanes' group, but does not join it and commits nothing.
        """
        ingest, group = cell.topics["ingest"], lane_group(cell.cell, "process")
        settings = {"bootstrap.servers": self._settings.kafka, "group.id": group, "enable.auto.commit": False}
        consumer = Consumer({**settings, "log_level": 3})
        try:
            asked = [TopicPartition(ingest.name, number) for number in range(ingest.partitions)]
            found = consumer.committed(asked, timeout=ASK_S)
        finally:
            consumer.close()
        raise_first_error(found)
        return {one.partition: int(one.offset) for one in found}
