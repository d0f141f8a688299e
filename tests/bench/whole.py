"""End to end, from POST to the response of the receiver: delay by rate, throughput, sustainable rate and CPU time.

Everything is measured on the Spark application of a cell, as a customer's events pass it, and then on the same lanes in
plain processes. With a rate, the delay counts from the moment at which the rate required the event.
"""

import resource
import statistics
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from controlplane.compute.processes import members
from dataplane.names import LANE_KINDS
from loadgen.measured import LoadOrder, LoadResult
from tests.bench.received import ReceivedLog
from tests.bench.report import RUNS, Line
from tests.bench.stand import Stand, receiver_on_any_port, run_load, run_load_with_refusals
from tests.support.cluster import KEY, PIPE
from tests.support.data_plane import REPLICAS, DataPlane
from tests.support.series import p95

RUN_S: Final = 10.0
WARM_UP_S: Final = 10.0
DELIVERED_S: Final = 900.0  # for the backlog of a rate that cannot be sustained
RATES: Final[Mapping[float, tuple[float, float]]] = {  # events/s: p50 and p95 that are needed, in ms
    200: (3, 5),
    1_000: (4, 8),
    2_000: (5, 12),
    3_000: (6, 15),
    4_000: (8, 20),
}
CLOSED_EVENTS: Final = 60_000
COLD_S, COLD_PER_S, COLD_P95_MS = 60.0, 200.0, 15.0
SUSTAINED_S, SUSTAINED_P95_MS, SUSTAINED_NEED = 60.0, 50.0, 6_000.0
LOWEST, HIGHEST, STEP = 250.0, 12_000.0, 250.0  # rates between which the sustainable one is searched
OPEN_CONNECTIONS: Final = 256  # more than the requests in flight, so that a rate does not wait for a connection


class MeasuredCell(ABC):
    """A cell with its pipe, and its processes by part: `parts` returns the pids of each."""

    port: int
    env: Mapping[str, str]
    received: ReceivedLog
    name: str

    @abstractmethod
    def parts(self) -> dict[str, list[int]]:
        """Return the pids of all processes by part: Kafka, ingest, lanes, the rest of the application, receiver."""

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU time so far by part; that of the senders which have ended, too."""
        times = {part: sum(map(_cpu_s, pids)) for part, pids in self.parts().items()}
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return times | {"sender": ended.ru_utime + ended.ru_stime}

    def run(
        self,
        count: int,
        *,
        rate: float | None = None,
        batch: int = 1,
        connections: int = 64,
        may_be_refused: bool = False,
    ) -> "LoadRun":
        """Run a load and wait until all ACKed events are delivered. Raises LoadRefusedError, TimeoutError."""
        self.received.empty()
        before = self.cpu_s()
        order = LoadOrder(f"http://127.0.0.1:{self.port}", KEY, batch, connections, count, rate)
        result = (run_load_with_refusals if may_be_refused else run_load)(order, self.env)
        ended_ns, deadline = time.time_ns(), time.monotonic() + DELIVERED_S
        while missing := len(result.sent.keys() - self.received.times().keys()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{missing} of {len(result.sent)} are not delivered")
            time.sleep(0.2)
        received, acked = self.received.times(), len(result.sent)
        cpu_us = {part: (spent - before.get(part, 0.0)) / acked * 1e6 for part, spent in self.cpu_s().items()}
        return LoadRun(result, {name: received[name] for name in result.sent}, ended_ns, cpu_us)


class LoadRun(NamedTuple):
    """One load. `cpu_us`: CPU time for an event by part."""

    load: LoadResult
    received: Mapping[str, int]
    ended_ns: int
    cpu_us: Mapping[str, float]

    def delays_ms(self) -> list[float]:
        """Return the delays from the sender to the receiver."""
        return [(self.received[name] - at_ns) / 1e6 for name, at_ns in self.load.sent.items()]

    def p50_ms(self) -> float:
        """Return the median delay."""
        return statistics.median(self.delays_ms())

    def p95_ms(self) -> float:
        """Return the 95th percentile of the delays."""
        return p95(self.delays_ms())

    def acked_per_s(self) -> float:
        """Return the events that ingest ACKed per second."""
        return len(self.load.sent) / self.load.seconds

    def delivered_per_s(self) -> float:
        """Return the events delivered per second, from the first request to the last delivery."""
        return len(self.load.sent) / ((max(self.received.values()) - min(self.load.sent.values())) / 1e9)

    def drained_s(self) -> float:
        """Return the time from the last ACK to the last delivery; 0 if the last delivery was earlier."""
        return max(0.0, (max(self.received.values()) - self.ended_ns) / 1e9)


class PlainCell(MeasuredCell):
    """Lanes in plain processes, and one ingest replica."""

    name = "plain processes"

    def __init__(self, at: Stand, running: ExitStack) -> None:
        at.pipe()
        self.port, self.env, self.received = at.port, at.env, at.received
        at.cluster.publish_cell()
        lanes = {kind: running.enter_context(at.running("-m", "tests.bench.lane", kind)).pid for kind in LANE_KINDS}
        self._parts = {"Kafka": [at.box.pid("kafka")], "ingest": [running.enter_context(at.ingest()).pid]}
        self._parts |= _lanes_by_part(lanes.items())
        self._parts["receiver"] = [running.enter_context(at.receiver()).pid]

    def parts(self) -> dict[str, list[int]]:
        """Return the pids by part."""
        return self._parts


class SparkCell(MeasuredCell):
    """Lanes in the Spark application of the cell, and two ingest replicas on one port."""

    name = "Spark"

    def __init__(self, plane: DataPlane, received: ReceivedLog, receiver_pid: int) -> None:
        self.port, self.env, self.received = plane.port, plane.process_env, received
        self._plane, self._receiver_pid = plane, receiver_pid

    def parts(self) -> dict[str, list[int]]:
        """Return the pids by part; those of the application that run no lane are its driver and JVM."""
        plane = self._plane
        plane.heartbeats.refresh()
        running = plane.files.running(plane.cluster.cell)
        application = {process.pid for process in members(running.incarnation)} if running is not None else set()
        beats = plane.heartbeats.latest.values()
        lanes = _lanes_by_part((beat.kind, beat.pid) for beat in beats if beat.pid in application)
        rest = application - set(chain.from_iterable(lanes.values()))
        replicas = [plane.replicas.pid(name) for name in REPLICAS]
        own = {"Kafka": [plane.broker.pid()], "ingest": replicas, "driver and JVM": list(rest)}
        return own | lanes | {"receiver": [self._receiver_pid]}


def _lanes_by_part(lanes: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    parts: dict[str, list[int]] = {"process lanes": [], "transmit and retry lanes": []}
    for kind, pid in lanes:
        parts["process lanes" if kind.startswith("process") else "transmit and retry lanes"].append(pid)
    return parts


@contextmanager
def spark_cell(folder: Path) -> Iterator[MeasuredCell]:
    """Yield a cell whose application has just started: nothing has warmed it up."""
    plane = DataPlane(folder / "var")
    try:
        received = ReceivedLog(folder / "received.log")
        received.empty()
        with receiver_on_any_port(received.path, plane.process_env) as (receiver_pid, port):
            plane.wait_ready()
            plane.add_pipe(PIPE, {"crm": {"url": f"http://127.0.0.1:{port}/hook"}})
            plane.start_cell()
            yield SparkCell(plane, received, receiver_pid)
    finally:
        plane.close()


def bench_whole(at: Stand) -> list[Line]:
    """Measure a cell on Spark, then the same lanes in plain processes."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, spark_cell(Path(folder)) as cell:
        cold = cell.run(int(COLD_PER_S * COLD_S), rate=COLD_PER_S, connections=OPEN_CONNECTIONS).p95_ms()
        lines = [_needed(f"Spark, first minute after its start, {COLD_PER_S:g}/s, p95", "ms", [cold], COLD_P95_MS)]
        lines += _measure(cell)
    with ExitStack() as running:
        return [*lines, *_measure(PlainCell(at, running))]


def _measure(cell: MeasuredCell) -> list[Line]:
    cell.run(int(1_000 * WARM_UP_S), rate=1_000, connections=OPEN_CONNECTIONS)
    lines: list[Line] = []
    for rate in RATES:
        lines += _at_rate(cell, rate)
    lines += _closed(cell, "singles", batch=1, connections=64, acked=18_000, delivered=12_000)
    lines += _closed(cell, "batches of 100", batch=100, connections=8, acked=150_000, delivered=30_000)
    highest = highest_that_holds(lambda rate: _is_sustained(cell, rate), LOWEST, HIGHEST, STEP)
    sustained = Line(f"{cell.name}, sustainable rate", "events/s", [highest], need=f"{SUSTAINED_NEED:,.0f}/s")
    sustained.met = highest >= SUSTAINED_NEED
    return [*lines, sustained]


def _at_rate(cell: MeasuredCell, rate: float) -> list[Line]:
    runs = [cell.run(int(rate * RUN_S), rate=rate, connections=OPEN_CONNECTIONS) for _ in range(RUNS)]
    p50_need, p95_need = RATES[rate]
    name = f"{cell.name}, {rate:,.0f}/s"
    parts = [Line(f"{name}, CPU of {part}", "us/event", [run.cpu_us[part] for run in runs]) for part in runs[0].cpu_us]
    return [
        _needed(f"{name}, p50", "ms", [run.p50_ms() for run in runs], p50_need),
        _needed(f"{name}, p95", "ms", [run.p95_ms() for run in runs], p95_need),
        *parts,
    ]


def _closed(
    cell: MeasuredCell, name: str, *, batch: int, connections: int, acked: float, delivered: float
) -> list[Line]:
    """As fast as the ACKs allow. acked, delivered: the rates that are needed."""
    runs = [cell.run(CLOSED_EVENTS, batch=batch, connections=connections) for _ in range(RUNS)]
    name = f"{cell.name}, {name}"
    lines = [
        Line(f"{name}, ACKed", "events/s", [run.acked_per_s() for run in runs], need=f"{acked:,.0f}/s"),
        Line(f"{name}, delivered", "events/s", [run.delivered_per_s() for run in runs], need=f"{delivered:,.0f}/s"),
    ]
    lines[0].met, lines[1].met = lines[0].median >= acked, lines[1].median >= delivered
    return [*lines, _needed(f"{name}, delivered after the last ACK", "s", [run.drained_s() for run in runs], 1.0)]


def _is_sustained(cell: MeasuredCell, rate: float) -> bool:
    run = cell.run(int(rate * SUSTAINED_S), rate=rate, connections=OPEN_CONNECTIONS, may_be_refused=True)
    return not run.load.refused and run.p95_ms() < SUSTAINED_P95_MS


def highest_that_holds(holds: Callable[[float], bool], lowest: float, highest: float, step: float) -> float:
    """Return the highest multiple of `step` from `lowest` to `highest` that holds, by bisection; 0 if none does.

    The sustainable throughput of Karimov et al., "Benchmarking Distributed Stream Data Processing Systems" (ICDE 2018):
    the highest rate that a system keeps up with without a growing delay.
    """
    below, above = int(lowest // step) - 1, int(highest // step) + 1
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if holds(middle * step) else (below, middle)
    return below * step if below * step >= lowest else 0.0


def _needed(name: str, unit: str, values: Sequence[float], need: float) -> Line:
    line = Line(name, unit, list(values), need=f"under {need:g} {unit}")
    line.met = line.median < need
    return line


def _cpu_s(pid: int) -> float:
    try:
        spent = psutil.Process(pid).cpu_times()
    except psutil.Error:  # it has ended
        return 0.0
    return spent.user + spent.system
