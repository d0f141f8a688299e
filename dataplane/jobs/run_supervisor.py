"""Supervisor of a cell's runs of one kind: a thread of the driver carries them out as short Spark jobs.

A driver that replaces a killed one continues from the stored progress; only the job in progress is repeated.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final, Generic, TypeVar

from confluent_kafka import KafkaException
from pyspark import RDD, InheritableThread
from pyspark.sql import SparkSession

from dataplane.jobs.group_offsets import GroupOffsets
from dataplane.jobs.ledger_reporter import QueryLedgerReporter
from dataplane.jobs.run_queue import R, RunQueue
from dataplane.retrier.redriver import place_reader
from dataplane.runtime.settings import DataPlaneSettings
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, Record

log = logging.getLogger("runs")
T = TypeVar("T")

TURN_S: Final = 0.5
LONGEST_JOB_S: Final = 120.0  # a task works for 2 s, but may wait for an executor or a broker


class RunSupervisor(ABC, Generic[R]):
    """Carries out the runs of the driver's cell while there are any; the driver polls it twice a second.

    At most one job runs at a time. It takes the task slots that lanes and queries leave free, at most MOST_TASKS.
    """

    kind: ClassVar[str]  # of job groups, and of the FAIR pool

    def __init__(self, spark: SparkSession, settings: DataPlaneSettings, table: ControlTable, cell: str) -> None:
        self._context, self._settings, self._table, self._cell_name = spark.sparkContext, settings, table, cell
        self._records: dict[str, R] = {}  # changed by the driver's thread, copied by the other
        self._over: set[str] = set()  # runs that this driver has ended
        self._cell: CellRecord | None = None
        self._slots = 0
        self._ending = threading.Event()
        self._job_began_s = 0.0  # 0 while no job runs
        self._job_tasks = 0
        self._thread: threading.Thread | None = None
        table.on_change(self._on_record)

    @property
    def tasks(self) -> int:
        """Return the task slots that the job in progress takes."""
        return self._job_tasks

    def poll(self, cell: CellRecord, slots: int) -> None:
        """Start the thread if there is work, with the task slots that are free now. Cancel a job that takes too long.

        Call it only when the control table has been read to its end: a run is refused if its plan is missing.
        """
        self._cell, self._slots = cell, slots
        if self._job_began_s and time.monotonic() - self._job_began_s > LONGEST_JOB_S:
            log.warning("cancelling a job of a %s after %g s", self.kind, LONGEST_JOB_S)
            self._context.cancelJobGroup(self._group)
        is_running = self._thread is not None and self._thread.is_alive()
        if self._records and not is_running and not self._ending.is_set():
            self._thread = InheritableThread(target=self._run)
            self._thread.daemon = True
            self._thread.start()

    def make_room(self, slots: int) -> None:
        """Cancel the job in progress if it takes more task slots than lanes leave; a smaller one follows."""
        if self._job_tasks > slots:
            log.info("cancelling a job of a %s: lanes need its task slots", self.kind)
            self._context.cancelJobGroup(self._group)

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

    @abstractmethod
    def _as_run(self, record: Record) -> tuple[str, R] | None:
        """Return the id and record of a run of this kind; None for other records."""

    @abstractmethod
    def _queue(self, reporter: QueryLedgerReporter, reader: Any, offsets: GroupOffsets) -> RunQueue[R, Any]:
        """Return the queue of the runs. `reader`: consumer for assigned partitions."""

    @property
    def _group(self) -> str:
        return f"{self._cell_name}/{self.kind}"

    def _on_record(self, record: Record) -> None:
        """Note a run of the cell; one that ended is of interest only if this driver has seen it running."""
        found = self._as_run(record)
        if found is None:
            return
        run, request = found
        if request.cell != self._cell_name or run in self._over:
            return
        if request.state != "ended" or run in self._records:
            self._records[run] = request

    def _run(self) -> None:
        """Take turns until all runs have ended, or the driver ends."""
        self._context.setLocalProperty("spark.scheduler.pool", self.kind)
        reporter = QueryLedgerReporter(self._settings.kafka, self._cell_name, self.kind)
        reader = place_reader(self._settings.kafka)
        offsets = GroupOffsets(self._settings.kafka)
        queue = self._queue(reporter, reader, offsets)
        try:
            while self._records and not self._ending.is_set() and self._cell is not None:
                took_turn = False
                try:
                    took_turn = queue.turn(self._cell, dict(self._records), self._slots)
                except KafkaException as exc:
                    log.warning("cannot read the progress of each %s: %s", self.kind, exc)
                for run in queue.ended:
                    self._over.add(run)
                    self._records.pop(run, None)
                if not took_turn:
                    self._ending.wait(TURN_S)
        finally:
            offsets.close()
            reader.close()
            reporter.close()

    def _collect(self, run: str, tasks: int, job: Callable[[], RDD[T]]) -> list[T]:
        """Run a Spark job and return its results.

        job:   returns the RDD to collect
        tasks: that run at the same time
        """
        self._context.setJobGroup(self._group, f"{self.kind} {run}")
        self._job_began_s, self._job_tasks = time.monotonic(), tasks
        try:
            rdd = job()
            try:
                found: list[T] = rdd.collect()
                return found
            finally:
                rdd._jrdd.rdd().cleanShuffleDependencies(False)  # else the files stay until a collection of garbage
        finally:
            self._job_began_s, self._job_tasks = 0.0, 0
