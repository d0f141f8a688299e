"""The cell driver, submitted with spark-submit: keeps the cell's lanes running as Spark jobs of one task each.

The driver holds no messages and no offsets: a kill at any moment costs at most the sends in flight.
"""

import argparse
import logging
import os
import random
import select
import time
from functools import partial
from pathlib import Path
from typing import Final

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from dataplane.jobs.bulk import BulkQuery
from dataplane.jobs.dedup import DedupQuery
from dataplane.jobs.driver_decisions import STABLE_S, LaneName, back_off_s, driver_decision, free_slots
from dataplane.jobs.idle_executors import IdleExecutors
from dataplane.jobs.lake import LakeQuery
from dataplane.jobs.lanes import run_lane
from dataplane.jobs.queries import Query, QuerySupervisor
from dataplane.jobs.replays import ReplaySupervisor
from dataplane.jobs.sequence import SequenceQuery
from dataplane.jobs.shadows import ShadowSupervisor
from dataplane.jobs.windows import WindowsQuery
from dataplane.names import LANE_KINDS
from dataplane.runtime.kafka import lane_producer
from dataplane.runtime.lanes.context import LaneIdentity
from dataplane.runtime.producers.replaceable import ReplaceableProducer
from dataplane.runtime.settings import settings_from
from dataplane.runtime.telemetry.heartbeat import HeartbeatSender
from dataplane.runtime.telemetry.logs import log_as_json
from dataplane.tables.control import ControlReader, snapshot_path
from dataplane.tables.optional_files import OptionalFiles
from dataplane.tables.records import CellRecord

log = logging.getLogger("cell")

TURN_S: Final = 0.5
CATCH_UP_S: Final = 10.0
QUERIES_END_S: Final = 10.0
QUERIES: Final[tuple[Query, ...]] = (DedupQuery(), WindowsQuery(), LakeQuery(), SequenceQuery(), BulkQuery())
END_S: Final = 35.0  # a lane drains for 25 s and reports for 5 s


class LaneJob:
    """One lane as a Spark job in a thread of the driver, in its own job group and FAIR pool."""

    def __init__(self, spark: SparkSession, identity: LaneIdentity) -> None:
        self.identity = identity
        self.outcome = ""
        self.started = time.monotonic()
        self._context = spark.sparkContext
        self.thread = InheritableThread(target=self._run)
        self.thread.daemon = True
        self.thread.start()

    @property
    def group(self) -> str:
        """The lane's Spark job group, which `cancel` cancels."""
        return f"{self.identity.cell}/{self.identity.writer}"

    def cancel(self) -> None:
        """Cancel the lane's Spark job without a drain."""
        self._context.cancelJobGroup(self.group)

    def _run(self) -> None:
        try:
            self._context.setJobGroup(self.group, f"lane {self.group}")
            self._context.setLocalProperty("spark.scheduler.pool", self.identity.writer)
            lanes = self._context.parallelize([self.identity], 1)
            self.outcome = lanes.mapPartitions(run_lane).collect()[0]
        except Exception as exc:  # any Spark error: the lane has ended and the driver restarts it
            self.outcome = f"failed({type(exc).__name__})"
            log.warning("lane %s: %s", self.group, str(exc)[:2_000])


class Driver:
    """Loop of the cell driver: twice a second it compares desired lanes with running ones, and sends heartbeats."""

    def __init__(self, cell: str, epoch: int, incarnation: str) -> None:
        self._settings = settings_from()
        self._cell, self._epoch, self._incarnation = cell, epoch, incarnation
        self._spark = SparkSession.builder.appName(f"penstock-{cell}").getOrCreate()
        self._spark.sparkContext.setLogLevel("WARN")
        self._slots = slots_of(self._spark)
        self._files = OptionalFiles()
        self._reader = ControlReader(self._settings.kafka, snapshot_path(self._settings.var), self._files)
        self._producer = ReplaceableProducer(partial(lane_producer, self._settings.kafka, f"{cell}-driver"))
        self._pulse = HeartbeatSender(
            self._producer, cell=cell, writer="driver", kind="driver", epoch=epoch, incarnation=incarnation
        )
        self._queries = QuerySupervisor(self._spark, self._settings, self._reader.table, QUERIES)
        self._replays = ReplaySupervisor(self._spark, self._settings, self._reader.table, cell)
        self._shadows = ShadowSupervisor(self._spark, self._settings, self._reader.table, cell)
        self._idle_executors = IdleExecutors(self._spark.sparkContext)
        self._parent = os.getppid()
        self._jobs: dict[LaneName, LaneJob] = {}
        self._failures: dict[LaneName, int] = {}
        self._not_before: dict[LaneName, float] = {}

    def stand_by(self, fifo: Path) -> bool:
        """Wait at the keeper's FIFO with everything ready; return True for a byte, False if the keeper has closed it.

        The FIFO's name is removed when all is ready.
        """
        try:
            descriptor = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:  # the keeper has ended this standby meanwhile
            return False
        try:
            self._spark.sparkContext.parallelize([0], 1).count()  # starts the daemon of Python workers
            self._reader.catch_up(CATCH_UP_S)
            while (read := self._read(descriptor)) is None:
                fifo.unlink(missing_ok=True)
                self._leave_if_orphaned()
                self._reader.refresh()
                self._producer.poll(0)
                select.select([descriptor], [], [], TURN_S)
        finally:
            os.close(descriptor)
        return bool(read)

    @staticmethod
    def _read(descriptor: int) -> bytes | None:
        """Return a byte, b"" if no keeper has the FIFO open, or None. `select` misses a keeper that was never there."""
        try:
            return os.read(descriptor, 1)
        except BlockingIOError:
            return None

    def close(self) -> None:
        """Close the reader of the control table, and end the Spark session."""
        self._reader.close()
        self._spark.stop()

    def run(self) -> None:
        """Keep lanes and queries running until the control table asks the application to end."""
        while True:
            self._leave_if_orphaned()
            self._reader.refresh()
            self._reap()
            decision = driver_decision(
                cell=self._reader.table.cell(self._cell),
                stop=self._reader.table.stop(self._cell),
                epoch=self._epoch,
                incarnation=self._incarnation,
                running=self._jobs.keys(),
                not_before=self._not_before,
                now=time.monotonic(),
                slots=self._slots - self._queries.tasks(self._cell),
            )
            if decision.end:
                break
            for lane in decision.start:
                self._start(lane)
            if cell := self._reader.table.cell(self._cell):
                self._queries.poll(cell, self._incarnation)
                self._poll_runs(cell)
            runs = self._replays.tasks + self._shadows.tasks
            self._idle_executors.poll(len(self._jobs) + self._queries.tasks(self._cell) + runs)
            if self._pulse.due():
                self._beat(decision.refused)
            self._producer.poll(0)
            time.sleep(TURN_S)
        self._end()

    def _poll_runs(self, cell: CellRecord) -> None:
        """Poll replays and shadow runs with the free slots; shadow runs get those that replays leave."""
        if self._reader.at_end:
            free = free_slots(self._slots, self._queries.tasks(self._cell), cell, self._jobs.keys())
            self._replays.poll(cell, free)
            self._shadows.make_room(free)  # a job may take a minute or more, and a new lane would wait for it
            self._shadows.poll(cell, free - self._replays.tasks)

    def _beat(self, detail: str) -> None:
        failing = {
            f"{kind}-{number}": count + 1
            for (kind, number), count in self._failures.items()
            if (job := self._jobs.get((kind, number))) is None or time.monotonic() - job.started <= STABLE_S
        }
        self._pulse.beat(
            "running",
            self._reader.table.offset,
            detail="; ".join(filter(None, (detail, self._files.trouble))),
            queries=self._queries.states,
            failures=failing,
            lane_kinds=LANE_KINDS,
            failing_files=self._files.failing,
        )

    def _start(self, lane: LaneName) -> None:
        kind, number = lane
        identity = LaneIdentity(self._cell, kind, number, self._epoch, self._incarnation)
        log.info("starting lane %s", identity.writer)
        self._jobs[lane] = LaneJob(self._spark, identity)

    def _reap(self) -> None:
        """Remove ended lanes; a drained lane may restart at once, a failed one after a back-off."""
        for lane, job in list(self._jobs.items()):
            if job.thread.is_alive():
                continue
            del self._jobs[lane]
            log.info("lane %s ended: %s", job.identity.writer, job.outcome)
            if job.outcome == "drained" or time.monotonic() - job.started > STABLE_S:
                self._failures.pop(lane, None)
            failures = self._failures[lane] = self._failures.get(lane, -1) + 1
            pause_s = back_off_s(failures, random.random()) if failures else 0.0  # noqa: S311
            self._not_before[lane] = time.monotonic() + pause_s

    def _end(self) -> None:
        """Wait for the lanes, which read the same control records and drain; cancel those that exceed END_S."""
        log.info("ending: %d lanes drain", len(self._jobs))
        deadline = time.monotonic() + END_S
        until_s = time.monotonic() + QUERIES_END_S
        self._replays.begin_stop()
        self._shadows.begin_stop()
        self._queries.stop(QUERIES_END_S)
        self._replays.stop(until_s - time.monotonic())
        self._shadows.stop(until_s - time.monotonic())
        while self._jobs and time.monotonic() < deadline:
            self._leave_if_orphaned()
            self._reap()
            time.sleep(0.1)
        for job in self._jobs.values():
            job.cancel()
        self._pulse.beat("drained", self._reader.table.offset)
        self._producer.flush(2)
        self.close()

    def _leave_if_orphaned(self) -> None:
        """Exit if the JVM that started this process has exited (killed, or SIGTERM to spark-submit)."""
        if os.getppid() != self._parent:
            log.error("the JVM has exited; the driver exits too")
            os._exit(75)


def slots_of(spark: SparkSession) -> int:
    """Return how many tasks may run at once: a local master's, or those of all executors that a cluster may grant."""
    conf = spark.sparkContext.getConf()
    if conf.get("spark.dynamicAllocation.enabled") == "true":
        return int(conf.get("spark.dynamicAllocation.maxExecutors")) * int(conf.get("spark.executor.cores"))
    return int(spark.sparkContext.defaultParallelism)


def main(argv: list[str] | None = None) -> None:
    """Run the driver of one cell until it is asked to end."""
    parser = argparse.ArgumentParser(prog="cell.py", description=__doc__)
    parser.add_argument("--cell", required=True)
    parser.add_argument("--epoch", type=int, required=True)
    parser.add_argument("--incarnation", required=True)
    parser.add_argument("--standby", type=Path, metavar="FIFO", help="wait there until the keeper writes a byte")
    arguments = parser.parse_args(argv)
    log_as_json(cell=arguments.cell, lane="driver")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    driver = Driver(arguments.cell, arguments.epoch, arguments.incarnation)
    if arguments.standby and not driver.stand_by(arguments.standby):
        driver.close()
        return
    driver.run()


if __name__ == "__main__":
    main()
