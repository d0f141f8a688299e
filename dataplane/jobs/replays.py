"""Replays of a cell as Spark jobs: one task for each range of a job (dataplane.jobs.run_supervisor)."""

from typing import Any, ClassVar

from pyspark import RDD

from dataplane.jobs.group_offsets import GroupOffsets
from dataplane.jobs.ledger_reporter import QueryLedgerReporter
from dataplane.jobs.replay_queue import KIND, ReplayQueue
from dataplane.jobs.replay_task import run_replay_task
from dataplane.jobs.run_supervisor import RunSupervisor
from dataplane.jobs.transmit_offsets import TransmitOffsets
from dataplane.replay.result import TaskResult
from dataplane.replay.task import ReplayTask
from dataplane.tables.records import Record, ReplayRecord


class ReplaySupervisor(RunSupervisor[ReplayRecord]):
    """Runs the replays of the driver's cell. A repeated job produces its copies twice, with the same ids."""

    kind: ClassVar[str] = KIND

    def _as_run(self, record: Record) -> tuple[str, ReplayRecord] | None:
        return (record.replay, record) if isinstance(record, ReplayRecord) else None

    def _queue(self, reporter: QueryLedgerReporter, reader: Any, offsets: GroupOffsets) -> ReplayQueue:
        keys, lanes = self._settings.fernet_keys, TransmitOffsets(offsets, reader)
        return ReplayQueue(self._table, keys, reporter, reader, self._run_tasks, offsets=lanes)

    def _run_tasks(self, tasks: list[ReplayTask]) -> list[TaskResult]:
        """Run the tasks at the same time, as one Spark job."""

        def job() -> RDD[TaskResult]:
            return self._context.parallelize(tasks, len(tasks)).mapPartitions(run_replay_task)

        return self._collect(tasks[0].record.replay, len(tasks), job)
