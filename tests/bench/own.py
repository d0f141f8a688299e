"""Own time: CPU time of our part of a hop per message, without Kafka, HTTP and libcurl, and the functions using it.

Each hop's own objects carry real messages in memory; records are stored, and requests answered, on the next poll.
The remaining time is that of one thread, which only our code can reduce. The result is the tenth percentile of
many short passes: on a machine that also does other work, most of the others were interrupted.
"""

import asyncio
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
import uvloop
from confluent_kafka import Message

from dataplane.ingest.stamp import message_id
from dataplane.ledger.breakdown import Slice
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.ledger.stopwatch import stamp
from dataplane.ledger.units import MINUTE_US
from dataplane.names import WIRE_VERSION
from dataplane.plan import compile_plan
from dataplane.process.sequence import SequenceTaps
from dataplane.process.work import ProcessWork
from dataplane.replay.task import ReplayTaskRun
from dataplane.runtime.garbage import collect_rarely
from dataplane.runtime.lanes.lane import BATCH
from dataplane.runtime.lanes.window import AckWindow
from dataplane.runtime.lookups import NoLookupTables, TenantRows
from dataplane.runtime.producers.tracked_producer import TrackedProducer
from dataplane.transmit.http.sender import HttpResponse
from loadgen.measured import EVENT
from tests.bench.memory_ingest import BATCH as INGEST_BATCH
from tests.bench.memory_ingest import CONNECTIONS, POSTS, REQUESTS, Loopback, MemoryIngest
from tests.bench.report import Line
from tests.bench.stand import FIVE_STEPS, STEPS
from tests.bench.threads import mock_cluster
from tests.support import process_lane, replaying, transmitting
from tests.support.memory_lane import MemoryLane

PASSES: Final = 400  # the kernel samples at most every 4 ms
TASK_BATCHES: Final = 4
TASKS: Final = 25
SAMPLE_S: Final = 0.001
KEY: Final = b"ada@example.com"
TOLD: Final = 12  # functions reported per hop
Passes = Iterator[tuple[float, int]]  # thread CPU seconds, messages


class Sampler:
    """Sampling profiler by CPU time: counts the function that the thread is in; a C call counts for its caller."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()

    def _note(self, _number: int, frame: FrameType | None) -> None:
        assert frame is not None
        code = frame.f_code
        self.found[f"{Path(code.co_filename).stem}.{code.co_name}"] += 1

    @contextmanager
    def on(self) -> Iterator[None]:
        """Sample while the block runs."""
        signal.signal(signal.SIGPROF, self._note)
        signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


class EchoSender(transmitting.MemorySender):
    """Sender that answers 204 to every request on the next poll."""

    def poll(self, wait_s: float) -> Iterator[HttpResponse]:
        begun, self.begun, self.requests = self.begun, [], []
        assert wait_s < 1
        for token in begun:
            yield HttpResponse(token, 204, 0, "", "", False, total_us=500)


def _batch(first: int, key: bytes | None, **more: Any) -> list[Message]:
    """Return messages of one partition as the preceding hop wrote them."""
    made = []
    if more:  # written by a process lane in one batch
        more["stopwatch"] = stamp(Slice.TRANSMIT_QUEUE, time.time_ns() // 1_000, [0, 0, 0, 300, 0, 0, 20])
    for number in range(first, first + BATCH):
        now_us = time.time_ns() // 1_000
        id_ = message_id(now_us, os.urandom(10).hex()[:19])
        position = number if more else 0
        came_us = now_us - 3_000 - number % 700
        meta = MessageMeta(
            WIRE_VERSION, id_, "p", 1, "shop", came_us, came_us, now_us // MINUTE_US, position=position, **more
        )
        meta.stored_ms = (came_us + 1_500) // 1_000 if more else 0
        headers = [(META_HEADER, encode_meta(meta)), ("content-type", b"application/json")]
        made.append(Message(partition=0, offset=number, key=key, value=bytes(bytearray(EVENT)), headers=headers))
    return made


def _carry(lane: MemoryLane, sampler: Sampler, key: bytes | None = None, **more: Any) -> Passes:
    """Process a batch, poll until it is settled, then continue with the next one."""
    lane.producer = TrackedProducer(Loopback(2 * BATCH))  # type: ignore[assignment]
    if isinstance(lane.work, ProcessWork):  # its taps have the lane's first producer
        lane.work._runner._sequence = SequenceTaps(lane.producer, lane.cell.topics["sequence"].name)
    window = lane.windows[0] = AckWindow(0)
    for number in range(PASSES):
        messages = _batch(number * BATCH, key, **more)
        with sampler.on():
            begun_s = time.thread_time()
            window.take_all([message.offset() for message in messages], list(map(len, messages)))
            lane.work.process(messages)
            while window.unsettled:
                lane.work.poll()
                for token in lane.producer.collect():  # type: ignore[attr-defined]
                    lane.work.on_delivery(token)
            del messages
            yield time.thread_time() - begun_s, BATCH
        lane.facts.take()
        lane.lags.take()


def process(steps: list[dict[str, Any]], **source: str) -> Callable[[Path, Sampler], Passes]:
    """Return the passes of a process lane with these steps. `source`: fields of the source."""

    def passes(var: Path, sampler: Sampler) -> Passes:
        lane = process_lane.opened(var, process_lane.plan(normalize=steps, sources={"shop": source}))
        yield from _carry(lane, sampler, KEY if "key" in source else None)

    return passes


def transmit(var: Path, sampler: Sampler) -> Passes:
    """Yield the passes of a transmit lane with one destination, signed."""
    with pytest.MonkeyPatch.context() as patch:
        transmitting.without_kafka(patch)
        patch.setattr("dataplane.transmit.work.HttpSender", EchoSender)
        lane, _, _ = transmitting.opened(var, transmitting.destination(concurrency=BATCH))
    yield from _carry(lane, sampler, destination="crm")


def ingest(var: Path, sampler: Sampler) -> Passes:
    """Yield the passes of an ingest replica without HTTP: batches of 100."""
    body = b"[" + b",".join([EVENT] * INGEST_BATCH) + b"]"
    yield from _take(var, sampler, body, INGEST_BATCH, MemoryIngest.requests, REQUESTS * INGEST_BATCH)


def ingest_singles(var: Path, sampler: Sampler) -> Passes:
    """Yield the passes of ingest's HTTP application without its HTTP server: single events."""
    yield from _take(var, sampler, EVENT, 1, MemoryIngest.posts, CONNECTIONS * POSTS)


def _take(
    var: Path,
    sampler: Sampler,
    body: bytes,
    events: int,
    one_pass: Callable[[MemoryIngest], Coroutine[Any, Any, None]],
    events_of_pass: int,
) -> Passes:
    with mock_cluster([]) as (cluster, _):  # a broker for its clients to connect to, without traffic
        run = MemoryIngest(var, cluster.kafka, "application/json", body, events)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            for _ in range(PASSES):
                with sampler.on():
                    begun_s = time.thread_time()
                    runner.run(one_pass(run))
                    yield time.thread_time() - begun_s, events_of_pass
                run.end_pass()
        run.close()


class LogOfBatches:
    """Consumer of one partition that returns prepared messages, a batch at a time."""

    def __init__(self, batches: list[list[Message]]) -> None:
        self._batches = batches

    def assign(self, _partitions: list[Any]) -> None:
        """Begin at the first batch."""

    def consume(self, _limit: int, _wait_s: float) -> list[Message]:
        """Return the next batch."""
        return self._batches.pop(0)


def replay_task(steps: list[dict[str, Any]]) -> Callable[[Path, Sampler], Passes]:
    """Return the passes of a replay's tasks with these steps; a pass is a task of TASK_BATCHES batches."""

    def passes(_var: Path, sampler: Sampler) -> Passes:
        record, spec = replaying.replay(since_us=0, until_us=1 << 62), process_lane.plan(normalize=steps).spec
        task, plan = replaying.task_of(record, spec, TASK_BATCHES * BATCH), compile_plan(spec)
        rows = TenantRows(NoLookupTables(), "t")
        for _ in range(TASKS):
            consumer = LogOfBatches([_batch(number * BATCH, KEY) for number in range(TASK_BATCHES)])
            producer = Loopback(TASK_BATCHES * BATCH)
            with pytest.MonkeyPatch.context() as patch, sampler.on():
                patch.setattr("dataplane.replay.task.TASK_S", 600.0)  # the thread's own time is measured
                begun_s = time.thread_time()
                result = ReplayTaskRun(task, plan, consumer, producer, rows).run()
                yield time.thread_time() - begun_s, TASK_BATCHES * BATCH
            assert result.units == {"crm": TASK_BATCHES * BATCH}, result

    return passes


HOPS: Final[dict[str, Callable[[Path, Sampler], Passes]]] = {
    "process, 2 steps": process(STEPS),
    "process, 2 steps, with a sequence": process(STEPS, key="customer.email", sequence="order.id"),
    "process, 5 steps and a predicate": process(FIVE_STEPS),
    "ingest, batches of 100": ingest,
    "ingest, single events": ingest_singles,
    "transmit, signed": transmit,
    "replay, no steps": replay_task([]),
    "replay, 2 steps": replay_task(STEPS),
}


def own_us(hop: Callable[[Path, Sampler], Passes], sampler: Sampler) -> float:
    """Return microseconds per message: the tenth percentile of the passes."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as var:
        us = sorted(seconds / messages * 1e6 for seconds, messages in hop(Path(var), sampler))
    return us[len(us) // 10]


def bench_own(_at: object) -> list[Line]:
    """Measure each hop as a whole, then list the functions that use most of its time."""
    collect_rarely()
    lines = []
    for name, hop in HOPS.items():
        sampler = Sampler()
        lines.append(Line(f"own time, {name}", "us", [own_us(hop, sampler)]))
        whole = sampler.found.total()
        for function, count in sampler.found.most_common(TOLD):
            lines.append(Line(f"  {function}", "%", [100 * count / whole]))
    return lines
