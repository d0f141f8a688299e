"""The cell driver, submitted with spark-submit: keeps the cell's lanes running as Spark jobs of one task each.

It holds no message and no offset: killing it at any moment costs at most the sends in flight.
"""

import argparse
import logging
import os
import random
import time
from functools import partial
from typing import Final

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from dataplane.jobs.dedup import DedupQuery
from dataplane.jobs.lake import LakeQuery
from dataplane.jobs.lanes import run_lane
from dataplane.jobs.queries import Query, QueryKeeper
from dataplane.jobs.wanted import STABLE_S, LaneName, back_off_s, decide
from dataplane.jobs.windows import WindowsQuery
from dataplane.names import LANE_KINDS
from dataplane.runtime.heartbeat import Pulse
from dataplane.runtime.kafka import lane_producer
from dataplane.runtime.lane import LaneIdentity
from dataplane.runtime.logs import log_as_json
from dataplane.runtime.replaceable import ReplaceableProducer
from dataplane.runtime.settings import settings_from
from dataplane.tables.control import ControlReader, snapshot_path
from dataplane.tables.optional_files import OptionalFiles

log = logging.getLogger("cell")

TURN_S: Final = 0.5
QUERIES_END_S: Final = 10.0
QUERIES: Final[tuple[Query, ...]] = (DedupQuery(), WindowsQuery(), LakeQuery())
END_S: Final = 35.0  # a lane drains for 25 s and accounts for 5


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
        """Spark's job group, to cancel it by."""
        return f"{self.identity.cell}/{self.identity.writer}"

    def cancel(self) -> None:
        """End the lane's task whatever it is doing."""
        self._context.cancelJobGroup(self.group)

    def _run(self) -> None:
        try:
            self._context.setJobGroup(self.group, f"lane {self.group}")
            self._context.setLocalProperty("spark.scheduler.pool", self.identity.writer)
            lanes = self._context.parallelize([self.identity], 1)
            self.outcome = lanes.mapPartitions(run_lane).collect()[0]
        except Exception as exc:  # whatever Spark throws: the lane is gone and is started again
            self.outcome = f"failed({type(exc).__name__})"
            log.warning("lane %s: %s", self.group, str(exc)[:2_000])


class Driver:
    """Twice a second: what is wanted, what runs, what to start; and a heartbeat."""

    def __init__(self, cell: str, epoch: int, incarnation: str) -> None:
        self._settings = settings_from()
        self._cell, self._epoch, self._incarnation = cell, epoch, incarnation
        self._spark = SparkSession.builder.appName(f"penstock-{cell}").getOrCreate()
        self._spark.sparkContext.setLogLevel("WARN")
        self._slots = slots_of(self._spark)
        self._files = OptionalFiles()
        self._reader = ControlReader(self._settings.kafka, snapshot_path(self._settings.var), self._files)
        self._producer = ReplaceableProducer(partial(lane_producer, self._settings.kafka, f"{cell}-driver"))
        self._pulse = Pulse(
            self._producer, cell=cell, writer="driver", kind="driver", epoch=epoch, incarnation=incarnation
        )
        self._queries = QueryKeeper(self._spark, self._settings, self._reader.table, QUERIES)
        self._parent = os.getppid()
        self._jobs: dict[LaneName, LaneJob] = {}
        self._failures: dict[LaneName, int] = {}
        self._not_before: dict[LaneName, float] = {}

    def run(self) -> None:
        """Until the control table asks for the end."""
        while True:
            self._leave_if_orphaned()
            self._reader.refresh()
            self._reap()
            decision = decide(
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
                self._queries.turn(cell, self._incarnation)
            if self._pulse.due():
                self._beat(decision.refused)
            self._producer.poll(0)
            time.sleep(TURN_S)
        self._end()

    def _beat(self, detail: str) -> None:
        failing = {
            f"{kind}-{number}": times + 1
            for (kind, number), times in self._failures.items()
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
        """Lanes that ended: a drained one may come back at once, a failed one after a pause."""
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
        """The lanes read the same records and drain; whoever has not ended in time is cancelled."""
        log.info("ending: %d lanes drain", len(self._jobs))
        deadline = time.monotonic() + END_S
        self._queries.stop(QUERIES_END_S)
        while self._jobs and time.monotonic() < deadline:
            self._leave_if_orphaned()
            self._reap()
            time.sleep(0.1)
        for job in self._jobs.values():
            job.cancel()
        self._pulse.beat("drained", self._reader.table.offset)
        self._producer.flush(2)
        self._reader.close()
        self._spark.stop()

    def _leave_if_orphaned(self) -> None:
        """The JVM that started us is gone (killed, or SIGTERM to spark-submit): nothing can be done from here."""
        if os.getppid() != self._parent:
            log.error("the JVM is gone; leaving")
            os._exit(75)


def slots_of(spark: SparkSession) -> int:
    """How many tasks may run at once: those of a local master, or of all executors that a cluster may give us."""
    conf = spark.sparkContext.getConf()
    if conf.get("spark.dynamicAllocation.enabled") == "true":
        return int(conf.get("spark.dynamicAllocation.maxExecutors")) * int(conf.get("spark.executor.cores"))
    return int(spark.sparkContext.defaultParallelism)


def main(argv: list[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="cell.py", description=__doc__)
    parser.add_argument("--cell", required=True)
    parser.add_argument("--epoch", type=int, required=True)
    parser.add_argument("--incarnation", required=True)
    arguments = parser.parse_args(argv)
    log_as_json(cell=arguments.cell, lane="driver")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    Driver(arguments.cell, arguments.epoch, arguments.incarnation).run()


if __name__ == "__main__":
    main()
