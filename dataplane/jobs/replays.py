"""Supervisor of a cell's replays: a thread of the driver runs them as short Spark jobs, next to the lanes.

A driver that replaces a killed one continues from the stored progress, and produces only the copies of the job in
progress twice.
"""

import logging
import threading
import time
from typing import Final

from confluent_kafka import KafkaException
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from dataplane.jobs.ledger_reporter import QueryLedgerReporter
from dataplane.jobs.replay_queue import KIND, ReplayQueue
from dataplane.jobs.replay_task import run_replay_task
from dataplane.jobs.transmit_offsets import TransmitOffsets
from dataplane.replay.result import TaskResult
from dataplane.replay.task import ReplayTask
from dataplane.retrier.redriver import place_reader
from dataplane.runtime.settings import DataPlaneSettings
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, Record, ReplayRecord

log = logging.getLogger("replays")

TURN_S: Final = 0.5
LONGEST_JOB_S: Final = 120.0  # a task works for 2 s, but may wait for an executor or a broker


class ReplaySupervisor:
    """Runs the replays of the driver's cell while there are any; the driver polls it twice a second.

    At most one job runs at a time. It takes the task slots that lanes and queries leave free, at most MOST_TASKS.
    """

    def __init__(self, spark: SparkSession, settings: DataPlaneSettings, table: ControlTable, cell: str) -> None:
        self._context, self._settings, self._table, self._cell_name = spark.sparkContext, settings, table, cell
        self._records: dict[str, ReplayRecord] = {}  # changed by the driver's thread, copied by the other
        self._over: set[str] = set()  # replays that this driver has ended
        self._cell: CellRecord | None = None
        self._slots = 0
        self._ending = threading.Event()
        self._job_began_s = 0.0  # 0 while no job runs
        self._thread: threading.Thread | None = None
        table.on_change(self._on_record)

    def poll(self, cell: CellRecord, slots: int) -> None:
        """Start the thread if there is work, with the task slots that are free now. Cancel a job that takes too long.

        Call it only when the control table has been read to its end: a replay is refused if its plan is missing.
        """
        self._cell, self._slots = cell, slots
        if self._job_began_s and time.monotonic() - self._job_began_s > LONGEST_JOB_S:
            log.warning("cancelling a job of a replay after %g s", LONGEST_JOB_S)
            self._context.cancelJobGroup(self._group)
        is_running = self._thread is not None and self._thread.is_alive()
        if self._records and not is_running and not self._ending.is_set():
            self._thread = InheritableThread(target=self._run)
            self._thread.daemon = True
            self._thread.start()

    def begin_stop(self) -> None:
        """Start no more jobs."""
        self._ending.set()

    def stop(self, seconds: float) -> None:
        """Wait up to `seconds` for the job in progress, then cancel it; the next driver repeats it."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(max(0.0, seconds))
            if self._thread.is_alive():
                self._context.cancelJobGroup(self._group)

    @property
    def _group(self) -> str:
        return f"{self._cell_name}/{KIND}"

    def _on_record(self, record: Record) -> None:
        """Note a replay of the cell; one that ended is of interest only if this driver has seen it running."""
        if not isinstance(record, ReplayRecord) or record.cell != self._cell_name or record.replay in self._over:
            return
        if record.state != "ended" or record.replay in self._records:
            self._records[record.replay] = record

    def _run(self) -> None:
        """Take turns until all replays have ended, or the driver ends."""
        self._context.setLocalProperty("spark.scheduler.pool", KIND)
        reporter = QueryLedgerReporter(self._settings.kafka, self._cell_name, KIND)
        reader = place_reader(self._settings.kafka)
        offsets, keys = TransmitOffsets(self._settings.kafka, reader), self._settings.fernet_keys
        queue = ReplayQueue(self._table, keys, reporter, reader, self._run_tasks, offsets=offsets)
        try:
            while self._records and not self._ending.is_set() and self._cell is not None:
                took_turn = False
                try:
                    took_turn = queue.turn(self._cell, dict(self._records), self._slots)
                except KafkaException as exc:
                    log.warning("cannot read the progress of replays: %s", exc)
                for replay in queue.ended:
                    self._over.add(replay)
                    self._records.pop(replay, None)
                if not took_turn:
                    self._ending.wait(TURN_S)
        finally:
            offsets.close()
            reader.close()
            reporter.close()

    def _run_tasks(self, tasks: list[ReplayTask]) -> list[TaskResult]:
        """Run the tasks at the same time, as one Spark job."""
        self._context.setJobGroup(self._group, f"replay {tasks[0].record.replay}")
        self._job_began_s = time.monotonic()
        try:
            found: list[TaskResult] = (
                self._context.parallelize(tasks, len(tasks)).mapPartitions(run_replay_task).collect()
            )
            return found
        finally:
            self._job_began_s = 0.0
