"""Shadow runs of a cell as Spark jobs (dataplane.jobs.run_supervisor)."""

from functools import partial
from typing import Any, ClassVar, Final

from dataplane.jobs.group_offsets import GroupOffsets
from dataplane.jobs.ledger_reporter import QueryLedgerReporter
from dataplane.jobs.run_supervisor import RunSupervisor
from dataplane.jobs.shadow_queue import KIND, ShadowEffects, ShadowQueue
from dataplane.jobs.shadow_task import shadow_rdd
from dataplane.kafka_errors import raise_first_error
from dataplane.shadow.job import PartComparison, PartRead, ShadowJob
from dataplane.tables.records import CellRecord, Record, ShadowRecord

ASK_S: Final = 10.0


class ShadowSupervisor(RunSupervisor[ShadowRecord]):
    """Runs the shadow runs of the driver's cell. A repeated job counts once."""

    kind: ClassVar[str] = KIND

    def _as_run(self, record: Record) -> tuple[str, ShadowRecord] | None:
        return (record.shadow, record) if isinstance(record, ShadowRecord) else None

    def _queue(self, reporter: QueryLedgerReporter, reader: Any, offsets: GroupOffsets) -> ShadowQueue:
        effects = ShadowEffects(self._run_job, partial(_processed, offsets))
        return ShadowQueue(self._table, self._settings.fernet_keys, reporter, reader, effects)

    def _run_job(self, job: ShadowJob, tasks: int) -> list[PartRead | PartComparison]:
        return self._collect(job.record.shadow, tasks, lambda: shadow_rdd(self._context, job, tasks))


def _processed(offsets: GroupOffsets, cell: CellRecord) -> dict[int, int]:
    """Return the offsets that process lanes have committed, by partition of ingest. Raises KafkaException."""
    found = offsets.committed(cell, "process", cell.topics["ingest"], ASK_S)
    raise_first_error(found)
    return {one.partition: int(one.offset) for one in found}
