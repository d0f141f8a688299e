"""Noisy neighbour: p95 latency of a tenant's plain events; runs with a quiet box, a busy core and a flood alternate.

The runs with a busy core show what the machine alone costs: a program outside Penstock uses one core, as the flood's
slow lane does. On a machine of two cores, isolation cannot be better than that.
"""

import time
from contextlib import ExitStack
from typing import Final

from dataplane.names import LANE_KINDS
from dataplane.tables.records import QuotaRecord
from loadgen.scripted import Receiver
from tests.bench.report import RUNS, Line
from tests.bench.stand import Stand
from tests.support.cluster import key_of
from tests.support.neighbours import QUOTA, STEPS, plain_delays_ms
from tests.support.series import p95

RUN_S: Final = 10.0
SETTLE_S: Final = 4.0  # the cost of a flood's first messages is not known yet
DRAIN_S: Final = 180.0
_BUSY: Final = "while True: pass"


def bench_neighbour(at: Stand) -> list[Line]:
    """One tenant at ten times its quota with four steps of 3.5 ms, and another tenant in the same partitions."""
    receiver = Receiver()
    for pipe, tenant, steps in (("flood", "ten_flood", STEPS), ("plain", "ten_plain", [])):
        crm = {"crm": {"url": receiver.url(f"/{pipe}")}}
        at.cluster.add_pipe(pipe, key_of(pipe), crm, tenant=tenant, normalize=steps)
    at.cluster.publish(QuotaRecord("ten_flood", at.cluster.version(), events_per_s=QUOTA))
    at.cluster.publish_cell()
    with at.ingest(), ExitStack() as lanes:
        for kind in LANE_KINDS:
            lanes.enter_context(at.running("-m", "tests.bench.lane", kind, at.cluster.cell))
        _plain(at, receiver, 0)
        rounds = []
        for number in range(RUNS):
            quiet = _plain(at, receiver, 4 * number + 1)
            with at.running("-c", _BUSY):
                busy = _plain(at, receiver, 4 * number + 2)
            with at.running("-m", "tests.bench.flood", str(at.port), key_of("flood")):
                _plain(at, receiver, 4 * number + 3, SETTLE_S)
                flooded = _plain(at, receiver, 4 * number + 4)
            rounds.append((quiet, busy, flooded))
            _drain(at)
    receiver.close()
    quiet_ms, busy_ms, flooded_ms = (list(values) for values in zip(*rounds, strict=True))
    flood = Line("p95 with a tenant at 10 x its quota", "ms", flooded_ms, quiet_ms, "within 20 %")
    flood.met = (flood.ratio or 0) <= 1.2
    return [
        flood,
        Line("the same, against one busy core", "ms", flooded_ms, busy_ms),
        Line("p95 with a program on one core", "ms", busy_ms, quiet_ms),
    ]


def _plain(at: Stand, receiver: Receiver, run: int, seconds: float = RUN_S) -> float:
    """Send plain events, wait until all are received and return their p95 in ms."""
    return p95(plain_delays_ms(at.port, receiver, run, seconds))


def _drain(at: Stand) -> None:
    """Wait until the slow lane has processed the backlog of the flood."""
    topic = at.cluster.topics["process-slow"].name
    deadline = time.monotonic() + DRAIN_S
    while at.committed("process-slow", topic) < at.ends(topic):
        if time.monotonic() > deadline:
            raise TimeoutError("the backlog of the flood was not processed")
        time.sleep(0.5)
