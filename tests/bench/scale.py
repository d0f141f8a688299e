"""Benchmarks of a growing deployment: executors, partitions of a lane, and pipes on the control topic.

Each executor of the first part gets a share of a core (control group `cpu`, version 1, as root): so the slope of one,
two and four executors can be measured on a machine of two cores, whose rest is left for the broker.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

import psutil

from dataplane.names import Purpose
from dataplane.tables.control import ControlReader, ControlTable
from tests.bench.idle import IDLE, publish_idle
from tests.bench.report import Line
from tests.bench.stand import STEPS, Stand, fill
from tests.support.cluster import PIPE, Cluster
from tests.support.data_plane import DataPlane
from tests.support.patience import until
from tests.support.spark_cluster import SparkCluster, executor_of

EXECUTORS: Final = (1, 2, 4)
SHARE: Final = 0.15  # of a core, for each executor
EXECUTOR_EVENTS: Final = 600_000
MEASURED_S: Final = 6.0
SETTLED_S: Final = 3.0  # after a change, before the measurement
UP_S: Final = 240.0
PARTITIONS: Final = (4, 100, 1_000)
PARTITION_EVENTS: Final = 60_000
READS: Final = 3
WIDE: Final[tuple[Purpose, ...]] = ("ingest", "egress")


def bench_scale(at: Stand) -> list[Line]:
    """Measure the three parts; the first on a cell and a Spark cluster of its own."""
    return [*_executors(), *_partitions(at), *_control_topic(at)]


# -- executors ---------------------------------------------------------------------------------------------------------


def _executors() -> list[Line]:
    """Process lanes on one, two and four executors of a Spark cluster, over a backlog."""
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        spark = running.enter_context(closing(SparkCluster(folder / "spark")))
        plane = running.enter_context(closing(DataPlane(folder / "var", partitions=8, master=spark.master)))
        spark.start_workers(1, plane.process_env)
        plane.wait_ready()
        plane.add_pipe(PIPE, {"crm": {"url": "http://127.0.0.1:1/hook"}}, normalize=STEPS)
        plane.start_cell()
        rates = [_rate_of(plane, count) for count in EXECUTORS]
    lines = []
    for count, rate in zip(EXECUTORS, rates, strict=True):
        name = f"process lanes on {count} executors of {SHARE:g} core each"
        lines.append(Line(name, "events/s", [rate], [count * rates[0]], "80 % of as many times one of them"))
        lines[-1].met = (lines[-1].ratio or 0) >= 0.8
    return lines


def _rate_of(plane: DataPlane, lanes: int) -> float:
    """Return the events per second of so many process lanes, each on its own executor, without other lanes."""
    plane.cluster.publish_cell(process=lanes, transmit=0, transmit_retry=0, retrier=0)
    since_us = time.time_ns() // 1_000
    writers = [f"process-{number}" for number in range(lanes)]

    def run() -> bool:
        plane.heartbeats.refresh()
        beats = [plane.heartbeats.latest.get(writer) for writer in writers]
        found = [beat for beat in beats if beat is not None and beat.state == "running" and beat.at_us > since_us]
        return len(found) == lanes and sum(len(beat.partitions) for beat in found) == plane.partitions

    until(run, f"{lanes} process lanes run", UP_S)
    executors = [executor_of(plane.heartbeats.latest[writer].pid) for writer in writers]
    with _limited(executors):
        fill(plane.cluster, EXECUTOR_EVENTS)
        time.sleep(SETTLED_S)
        began, before = time.perf_counter(), plane.records_on("egress")
        time.sleep(MEASURED_S)
        ended, after = time.perf_counter(), plane.records_on("egress")
    left = plane.records_on("ingest") - after
    if left <= 0:
        raise RuntimeError("the backlog was too small: the lanes were done before the end of the measurement")
    until(lambda: plane.records_on("egress") >= plane.records_on("ingest"), "the rest is processed", UP_S)
    return (after - before) / (ended - began)


@contextmanager
def _limited(executors: Iterable[int]) -> Iterator[None]:
    """Give each executor, with its Python workers, a share of a core. Raises OSError without the right to do so."""
    root = Path("/sys/fs/cgroup/cpu")
    groups = {pid: root / f"penstock-bench-{os.getpid()}-{pid}" for pid in executors}
    try:
        for pid, group in groups.items():
            group.mkdir()
            period_us = int((group / "cpu.cfs_period_us").read_text())
            (group / "cpu.cfs_quota_us").write_text(str(int(period_us * SHARE)))
            executor = psutil.Process(pid)
            for process in (executor, *executor.children(recursive=True)):
                (group / "cgroup.procs").write_text(str(process.pid))
        yield
    finally:
        for group in filter(Path.exists, groups.values()):
            for process_id in (group / "cgroup.procs").read_text().split():
                (root / "cgroup.procs").write_text(process_id)
            group.rmdir()


# -- partitions --------------------------------------------------------------------------------------------------------


class WideCluster(Cluster):
    """Cell whose ingest and egress topics have many partitions, and its other topics four."""

    def _partitions_of(self, purpose: Purpose) -> int:
        return self.partitions if purpose in WIDE else min(4, super()._partitions_of(purpose))


def _partitions(at: Stand) -> list[Line]:
    """One process lane that reads all partitions of its cell."""
    own = at.cluster
    lines: list[Line] = []
    try:
        for count in PARTITIONS:
            at.cluster = WideCluster(own.kafka, f"wide{count}", count)
            at.cluster.make_cell_topics(("process",))
            at.pipe(STEPS)
            fill(at.cluster, PARTITION_EVENTS)
            rate, rss_mb = at.run_lane("process", at.cluster.topics["ingest"].name, PARTITION_EVENTS)
            name = f"a process lane with {count:,} partitions"
            base = lines[0].values if lines else [rate]
            lines.append(Line(name, "events/s", [rate], base, "70 % of the rate with 4"))
            lines[-1].met = (lines[-1].ratio or 0) >= 0.7
            lines.append(Line(f"{name}, memory", "MB", [rss_mb]))
    finally:
        at.cluster = own
    return lines


# -- control topic -----------------------------------------------------------------------------------------------------


def _control_topic(at: Stand) -> list[Line]:
    """Cost of 10,000 pipes to a process that starts: read from Kafka, and from the snapshot of its host."""
    at.pipe(STEPS)
    publish_idle(at, IDLE)
    read_s, load_s, grown_mb = [], [], []
    snapshot = at.box.var / "control.json"
    process = psutil.Process()
    for _ in range(READS):
        before = process.memory_info().rss
        began = time.perf_counter()
        with closing(ControlReader(at.cluster.kafka)) as reader:
            reader.catch_up(UP_S)
            read_s.append(time.perf_counter() - began)
            if len(reader.table) < 2 * IDLE:
                raise RuntimeError(f"only {len(reader.table)} records were read in {UP_S:g} s")
            grown_mb.append((process.memory_info().rss - before) / 1e6)
            reader.table.save(snapshot)
        began, table = time.perf_counter(), ControlTable()
        table.load(snapshot)
        load_s.append(time.perf_counter() - began)
    name = f"control table of {IDLE:,} pipes"
    lines = [
        Line(f"{name}, read from Kafka", "s", read_s, need="under 5 s"),
        Line(f"{name}, loaded from the snapshot", "s", load_s, need="under 2 s"),
    ]
    lines[0].met, lines[1].met = statistics.median(read_s) < 5, statistics.median(load_s) < 2
    return [
        *lines,
        Line(f"{name}, memory of a process", "MB", [max(grown_mb)]),
        Line(f"{name}, snapshot", "MB", [snapshot.stat().st_size / 1e6]),
    ]
