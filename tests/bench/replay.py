"""Replay of many events to a topic by the cell's driver on Spark: rate, memory, and the p95 of live events meanwhile.

The live events belong to another pipe of the cell, whose destination is an HTTP receiver. Each round measures them
before, during and after a replay of the same events. PENSTOCK_REPLAY_EVENTS sets the number of events.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from controlplane.compute.processes import members
from dataplane.names import REPLAY_ID_PREFIX, output_topic
from loadgen.measured import LoadOrder
from tests.bench.report import RUNS, Line
from tests.bench.stand import run_load
from tests.support.data_plane import DataPlane, running_plane
from tests.support.neighbours import plain_delays_ms
from tests.support.patience import until
from tests.support.replay_campaign import end_of, history_of, records
from tests.support.series import p95
from tests.support.sizes import REPLAY_EVENTS

PIPE, FEED = "replayed", "feed"
RUN_S: Final = 10.0
PART_S: Final = 2.0  # of live events, after which the replay may have ended
FILL_PER_S: Final = 20_000.0  # below the quota of the pipe's tenant
RATE_PER_S: Final = 100_000.0  # the highest quota
WAIT_S: Final = 1_800.0
SAMPLE_S: Final = 2.0  # a sample reads the environment of every process


class Round(NamedTuple):
    """One replay. `grown_mb`: memory that the application's processes took in addition, at the most."""

    rate: float
    before_ms: float
    during_ms: float
    after_ms: float
    grown_mb: float


def bench_replay(_at: object) -> list[Line]:
    """Replay all events several times, with live events before, during and after each time."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as var, running_plane(Path(var)) as plane:
        since_us = _fill(plane)
        plain_delays_ms(plane.port, plane.receiver, 0, RUN_S)  # warm-up
        rounds = [_round(plane, since_us, number) for number in range(RUNS)]
    rate = Line("replay to a topic", "events/s", [one.rate for one in rounds], need="30 k/s")
    rate.met = rate.median >= 30_000
    before_ms, during_ms = [one.before_ms for one in rounds], [one.during_ms for one in rounds]
    live = Line("p95 of live events during a replay", "ms", during_ms, before_ms, "within 10 %")
    live.met = (live.ratio or 0) <= 1.1
    return [
        rate,
        live,
        Line("the same, after the replay", "ms", [one.after_ms for one in rounds], before_ms),
        Line("memory that a replay takes", "MB", [one.grown_mb for one in rounds]),
    ]


def _fill(plane: DataPlane) -> int:
    """Add both pipes, send the events and wait for their delivery; return the time before (microseconds)."""
    plane.cluster.make_output_topic(PIPE, FEED)
    key = plane.add_pipe(PIPE, {FEED: {"type": "topic"}})
    plane.add_pipe("plain", {"crm": {"url": plane.receiver.url("/plain")}}, tenant="ten_plain")
    since_us = time.time_ns() // 1_000
    order = LoadOrder(
        f"http://127.0.0.1:{plane.port}", key, batch=100, connections=8, count=REPLAY_EVENTS, rate=FILL_PER_S
    )
    run_load(order, plane.process_env)
    until(lambda: end_of(plane, output_topic(PIPE, FEED)) >= REPLAY_EVENTS, "the originals are stored", WAIT_S)
    return since_us


def _round(plane: DataPlane, since_us: int, number: int) -> Round:
    before_ms = p95(plain_delays_ms(plane.port, plane.receiver, 1_000 * number + 1, RUN_S))
    replay, topic = f"{REPLAY_ID_PREFIX}{number}", output_topic(PIPE, FEED)
    first, delays = end_of(plane, topic), []
    with _peak_mb(plane) as peak:
        until_us = plane.cluster.publish_replay(replay, PIPE, [FEED], since_us, RATE_PER_S)
        part = 2
        while end_of(plane, topic) < first + REPLAY_EVENTS:
            delays += plain_delays_ms(plane.port, plane.receiver, 1_000 * number + part, PART_S)
            part += 1
            if part * PART_S > WAIT_S:
                raise TimeoutError(f"the replay reached {history_of(plane, replay)[-1:]}")
    until(lambda: history_of(plane, replay)[-1].progress.done, "the end of the replay", WAIT_S)
    last_ms = max(m.timestamp()[1] for m in records(plane, topic, 1) if m.offset() >= first)
    progress = history_of(plane, replay)[-1].progress
    if (progress.asked, progress.error) != (REPLAY_EVENTS, ""):
        raise RuntimeError(f"the replay ended with {progress}")
    after_ms = p95(plain_delays_ms(plane.port, plane.receiver, 1_000 * number + 999, RUN_S))
    rate = REPLAY_EVENTS / (last_ms / 1_000 - until_us / 1_000_000)
    return Round(rate, before_ms, p95(sorted(delays)), after_ms, max(peak) - peak[0])


@contextmanager
def _peak_mb(plane: DataPlane) -> Iterator[list[float]]:
    """Sample the resident memory of all processes of the application while the block runs."""
    samples, ending = [_rss_mb(plane)], threading.Event()

    def sample() -> None:
        while not ending.wait(SAMPLE_S):
            samples.append(_rss_mb(plane))

    thread = threading.Thread(target=sample, name="memory")
    thread.start()
    try:
        yield samples
    finally:
        ending.set()
        thread.join()


def _rss_mb(plane: DataPlane) -> float:
    return sum_of_application(plane, lambda process: float(process.memory_info().rss)) / 1e6


def sum_of_application(plane: DataPlane, figure: Callable[[psutil.Process], float]) -> float:
    """Return the sum of a figure over all processes of the application that still run."""
    running = plane.files.running(plane.cluster.cell)
    total = 0.0
    for process in members(running.incarnation) if running is not None else ():
        try:
            total += figure(process)
        except psutil.Error:
            continue
    return total
