"""Streaming and bulk execution on Spark compared: a backlog, the delay of single events, and CPU time per event.

The cell is started after the events of the backlog are stored. The rates are those of the output topic, from its first
to its last record; CPU time is that of all processes of the application.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from dataplane.names import output_topic
from dataplane.spec.document import Execution
from loadgen.measured import LoadOrder
from tests.bench.replay import FILL_PER_S, WAIT_S, sum_of_application
from tests.bench.report import RUNS, Line
from tests.bench.stand import FIVE_STEPS, run_load
from tests.support.cluster import key_of
from tests.support.data_plane import DataPlane, running_plane
from tests.support.neighbours import plain_delays_ms
from tests.support.patience import until
from tests.support.replay_campaign import end_of, records
from tests.support.series import p95

EXECUTIONS: Final[tuple[Execution, ...]] = ("streaming", "bulk")
FEED: Final = "feed"
BACKLOG: Final = 100_000
STEADY_PER_S: Final = 500
STEADY_S: Final = 20.0
DELAYS_S: Final = 20.0


class Round(NamedTuple):
    """Figures of one execution. `catch_up_s`: from the start of the cell until the backlog is on the topic."""

    rate: float
    catch_up_s: float
    p50_ms: float
    p95_ms: float
    cpu_us: float


def bench_bulk(_at: object) -> list[Line]:
    """Measure both executions in turn, several times."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as var, running_plane(Path(var)) as plane:
        for execution in EXECUTIONS:
            plane.cluster.make_output_topic(execution, FEED)
            plane.add_pipe(execution, {FEED: {"type": "topic"}}, normalize=FIVE_STEPS, execution=execution)
            single = f"single-{execution}"
            plane.add_pipe(single, {"crm": {"url": plane.receiver.url(f"/{single}")}}, execution=execution)
        rounds = [(_round(plane, "streaming", number), _round(plane, "bulk", number)) for number in range(RUNS)]
    streaming, bulk = [one for one, _ in rounds], [other for _, other in rounds]

    def line(name: str, unit: str, field: str) -> list[Line]:
        bases = [getattr(one, field) for one in streaming]
        return [
            Line(f"streaming: {name}", unit, bases),
            Line(f"bulk: {name}", unit, [getattr(one, field) for one in bulk], bases),
        ]

    return [
        *line("backlog through 5 steps to a topic", "events/s", "rate"),
        *line("start of the cell to the end of the backlog", "s", "catch_up_s"),
        *line("p50 of single events, 50/s", "ms", "p50_ms"),
        *line("p95 of single events, 50/s", "ms", "p95_ms"),
        *line(f"CPU of the application at {STEADY_PER_S}/s", "us/event", "cpu_us"),
    ]


def _round(plane: DataPlane, execution: Execution, number: int) -> Round:
    topic = output_topic(execution, FEED)
    plane.drain_cell()
    _load(plane, execution, BACKLOG, FILL_PER_S)
    first, began_ms = end_of(plane, topic), time.time_ns() / 1e6
    plane.start_cell()
    until(lambda: end_of(plane, topic) >= first + BACKLOG, "the backlog is on the topic", WAIT_S)
    stored_ms = [m.timestamp()[1] for m in records(plane, topic, 1) if m.offset() >= first]
    plain_delays_ms(plane.port, plane.receiver, 2 * number + 1_000, 2.0, f"single-{execution}")  # warm-up
    delays = plain_delays_ms(plane.port, plane.receiver, 2 * number + 1, DELAYS_S, f"single-{execution}")
    before_s, steady = _cpu_s(plane), int(STEADY_PER_S * STEADY_S)
    end = end_of(plane, topic) + steady
    _load(plane, execution, steady, STEADY_PER_S)
    until(lambda: end_of(plane, topic) >= end, "the steady events are on the topic", WAIT_S)
    return Round(
        rate=BACKLOG / ((max(stored_ms) - min(stored_ms)) / 1_000),
        catch_up_s=(max(stored_ms) - began_ms) / 1_000,
        p50_ms=statistics.median(delays),
        p95_ms=p95(delays),
        cpu_us=(_cpu_s(plane) - before_s) / steady * 1e6,
    )


def _load(plane: DataPlane, pipe: str, count: int, rate: float) -> None:
    url = f"http://127.0.0.1:{plane.port}"
    order = LoadOrder(url, key_of(pipe), batch=100, connections=8, count=count, rate=rate)
    run_load(order, plane.process_env)


def _cpu_s(plane: DataPlane) -> float:
    """Return the CPU time of all processes of the application so far."""
    return sum_of_application(plane, lambda process: process.cpu_times().user + process.cpu_times().system)
