"""`python -m tests.bench [name ...]`: run the benchmarks, print each result, write var/bench/bench.json."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localbox.settings import ROOT
from tests.bench import lookups
from tests.bench.bulk import bench_bulk
from tests.bench.delivery import bench_isolation, bench_outage, bench_parked
from tests.bench.gate import bench_gate
from tests.bench.idle import bench_idle
from tests.bench.language import LARGER, SIMPLE, median_us
from tests.bench.neighbour import bench_neighbour
from tests.bench.own import bench_own
from tests.bench.replay import bench_replay
from tests.bench.report import RUNS, Line, alternate, show, write
from tests.bench.rest import bench_rest
from tests.bench.scale import bench_scale
from tests.bench.stand import EVENT, FIVE_STEPS, STEPS, Stand, stand
from tests.bench.table_queries import bench_table_queries
from tests.bench.threads import bench_threads
from tests.bench.whole import bench_whole
from tests.guardian import guard

EVENTS = 100_000
SENDS = 30_000


def raw(at: Stand, what: str, *words: object) -> float:
    """Run a raw baseline in a separate process and return its result."""
    command = [sys.executable, "-m", "tests.bench.raw", what, *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, env=at.env, check=True, capture_output=True, text=True)
    return float(done.stdout)


def bench_ingest(at: Stand) -> list[Line]:
    """Ingest in batches of 100 against the bare producer, and single events without a baseline."""
    at.pipe()
    topic = at.cluster.topics["ingest"].name
    with at.ingest():
        values, bases = alternate(
            lambda: EVENTS / at.load(count=EVENTS, batch=100, connections=8).seconds,
            lambda: raw(at, "produce", at.cluster.kafka, topic, EVENTS),
        )
        singles = [SENDS / at.load(count=SENDS, connections=64).seconds for _ in range(RUNS)]
    batches = Line("ingest, batches of 100", "events/s", values, bases, "50 % of the bare producer")
    batches.met = (batches.ratio or 0) >= 0.5
    single = Line("ingest, singles", "events/s", singles, need="15 k/s")
    single.met = single.median >= 15_000
    return [batches, single]


def bench_process(at: Stand) -> list[Line]:
    """Process lane, two steps, ledger and lag on, against the bare consume-produce loop over the same records."""
    return [_process(at, "process, 2 steps, ledger and lag on", STEPS, 0.6)]


def bench_steps(at: Stand) -> list[Line]:
    """Process lane, five steps and a predicate, ledger and lag on, against the same loop."""
    return [_process(at, "process, 5 steps and a predicate, ledger on", FIVE_STEPS, 0.4)]


def _process(at: Stand, name: str, steps: list[dict[str, Any]], need: float) -> Line:
    at.pipe(steps)
    ingest, scratch = at.cluster.topics["ingest"].name, at.cluster.topics["held"].name

    def baseline() -> float:
        with at.ingest():
            at.load(count=EVENTS, batch=100, connections=8)
        return raw(at, "consume-produce", at.cluster.kafka, ingest, scratch, EVENTS, at.cluster.partitions)

    def measure() -> float:
        waiting = at.ends(ingest) - at.committed("process", ingest)
        return at.run_lane("process", ingest, waiting).rate

    values, bases = alternate(measure, baseline)
    line = Line(name, "events/s", values, bases, f"{need:.0%} of the bare loop".replace("%", " %"))
    line.met = (line.ratio or 0) >= need
    return line


def bench_ledger(at: Stand) -> list[Line]:
    """Process lane with ledger and lags against one without them, over as many records of the same kind."""
    at.pipe(STEPS)
    topic = at.cluster.topics["ingest"].name

    def measure(*more: str) -> float:
        with at.ingest():
            at.load(count=EVENTS, batch=100, connections=8)
        return at.run_lane("process", topic, EVENTS, *more).rate

    values, bases = alternate(measure, lambda: measure("uncounted"))
    line = Line("process, ledger and lag on against off", "events/s", values, bases, "85 % of it without")
    line.met = (line.ratio or 0) >= 0.85
    return [line]


def bench_language(_at: Stand) -> list[Line]:
    """Evaluate expressions over one event, in this process."""
    body = json.loads(EVENT)
    simple = Line("a simple predicate", "us", [median_us(text, body) for text in SIMPLE], need="under 3 us")
    simple.met = simple.median < 3
    return [simple, Line("a larger expression", "us", [median_us(text, body) for text in LARGER])]


def bench_transmit(at: Stand) -> list[Line]:
    """Transmit lane, signature, ledger and attempts on, against the bare libcurl loop to the same receiver."""
    at.pipe()
    egress = at.cluster.topics["egress"].name

    def prepare() -> None:
        with at.ingest():
            at.load(count=SENDS, batch=100, connections=8)
        at.run_lane("process", at.cluster.topics["ingest"].name, SENDS)

    def baseline() -> float:
        prepare()
        with at.receiver():
            return raw(at, "post", f"http://127.0.0.1:{at.receiver_port}/hook", SENDS)

    def measure() -> float:
        waiting = at.ends(egress) - at.committed("transmit", egress)
        with at.receiver():
            return at.run_lane("transmit", egress, waiting).rate

    values, bases = alternate(measure, baseline)
    line = Line(
        "transmit, signed, ledger and attempts on", "requests/s", values, bases, "30 % of the bare libcurl loop"
    )
    line.met = (line.ratio or 0) >= 0.3
    return [line]


def bench_lookups(_at: Stand) -> list[Line]:
    """Million-row table in the host's store: time of a look-up with decoding, and time to the first look-up."""
    figures = [lookups.measure() for _ in range(RUNS)]
    p99 = Line("look-up in 1 M rows, p99", "us", [run.p99_us for run in figures], need="under 50 us")
    p99.met = p99.median < 50
    warm = Line("1 M rows, restart to the first look-up", "s", [run.warm_s for run in figures], need="under 10 s")
    warm.met = warm.median < 10
    return [
        Line("look-up in 1 M rows, p50", "us", [run.p50_us for run in figures]),
        p99,
        warm,
        Line("1 M rows into the store, without Kafka", "s", [run.load_s for run in figures]),
    ]


BENCHES: dict[str, Callable[[Stand], list[Line]]] = {
    "ingest": bench_ingest,
    "gate": bench_gate,
    "process": bench_process,
    "steps": bench_steps,
    "ledger": bench_ledger,
    "language": bench_language,
    "transmit": bench_transmit,
    "lookups": bench_lookups,
    "table-queries": bench_table_queries,
    "whole": bench_whole,
    "threads": bench_threads,
    "own": bench_own,
    "isolation": bench_isolation,
    "neighbour": bench_neighbour,
    "parked": bench_parked,
    "outage": bench_outage,
    "idle": bench_idle,
    "replay": bench_replay,
    "scale": bench_scale,
    "bulk": bench_bulk,
}
ALONE: dict[str, Callable[[], list[Line]]] = {"rest": bench_rest}  # no other broker may run


def _measured(name: str) -> list[Line]:
    if name in ALONE:
        return ALONE[name]()
    with stand() as at:
        return BENCHES[name](at)


def main() -> None:
    """Run the named benchmarks, or all."""
    guard()
    lines: list[Line] = []
    for name in sys.argv[1:] or [*BENCHES, *ALONE]:
        for line in _measured(name):
            print(show(line), flush=True)  # noqa: T201
            lines.append(line)
    path = write(lines, Path("var/bench"))
    print(f"written to {path}")  # noqa: T201


if __name__ == "__main__":
    main()
