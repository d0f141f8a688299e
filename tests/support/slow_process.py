"""A process lane and its slow lane in memory, with the topics between them: read, run, store and commit."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.ledger.meta import META_HEADER, read_meta
from dataplane.names import LaneKind, Purpose
from dataplane.process import work
from dataplane.process.work import ProcessWork
from dataplane.runtime.lanes.window import AckWindow
from dataplane.runtime.lookups import Lookups
from dataplane.tables.records import CellRecord, PipeRecord
from tests.support.memory_lane import MemoryLane, MemoryMessage
from tests.support.process_lane import arrived, plan

PIPES = {"dear": "t", "plain": "u"}  # and the tenant of each
Log = defaultdict[int, list[MemoryMessage]]


class Half:
    """Lane that reads a log; another one replaces it when it is killed."""

    def __init__(self, kind: LaneKind, var: Path, log: Log, stored: Any) -> None:
        self.kind: LaneKind = kind
        self._var, self._log, self._stored = var, log, stored
        self.committed: defaultdict[int, int] = defaultdict(int)
        self.notes: dict[int, str] = {}
        self.ran: list[str] = []
        self.open()

    def open(self) -> None:
        """Start a lane, which continues from the committed offsets."""
        lane = self.lane = MemoryLane(self.kind, self._var)
        lane.cell = CellRecord("c1", 1, 1, {"process": 1, "process-slow": 1}, lane.cell.topics)
        lane.table.apply(lane.cell)
        for pipe, tenant in PIPES.items():
            lane.table.apply(PipeRecord(pipe, 1, tenant, pipe, "c1", "active", [(1, 100)]))
            record = plan()
            lane.table.apply(type(record)(pipe, 1, record.spec))
        lane.work = ProcessWork(lane, Lookups(Path(mkdtemp(dir=self._var))))
        self._sent = 0
        self._due: list[tuple[str, Any, dict[str, Any]]] = []  # produced and not stored yet
        self._read = dict(self.committed)
        lane.notes = dict(self.notes)
        if self.kind == "process":
            for partition in range(4):
                lane.recall(partition, self.notes.get(partition, ""))

    def read(self, most: int) -> None:
        """Run one pass of the loop over at most `most` unread messages of each partition."""
        batch: list[MemoryMessage] = []
        for partition, messages in self._log.items():
            begin = self._read.get(partition, 0)
            batch += messages[begin : begin + most]
            self._read[partition] = min(len(messages), begin + most)
        for message in batch:
            slot = message.partition()
            self.lane.windows.setdefault(slot, AckWindow(message.offset())).take(message.offset())
        self.lane.work.process(batch)
        self.lane.work.poll()

    def store(self, purpose: Purpose | None = None) -> None:
        """Store what it produced; of one topic only, if another topic is unavailable meanwhile."""
        outbox = self.lane.producer
        self._due += outbox.sent[self._sent :]
        self._sent = len(outbox.sent)
        name = self.lane.cell.topics[purpose].name if purpose is not None else ""
        stored = [record for record in self._due if name in ("", record[0])]
        self._due = [record for record in self._due if name not in ("", record[0])]
        for topic, _, record in stored:
            self._stored(topic, record)
        owing = {id(token) for _, token, _ in self._due}
        waiting, outbox.waiting = outbox.waiting, [token for token in outbox.waiting if id(token) in owing]
        for token in waiting:
            if id(token) not in owing:
                self.lane.work.on_delivery(token)

    def commit(self) -> None:
        """Commit the settled offsets with the notes."""
        for slot, window in self.lane.windows.items():
            self.committed[slot] = window.prefix
            if self.kind == "process":
                self.notes[slot] = self.lane.notes[slot] = self.lane.note(slot, window.prefix)

    def revoke(self, partitions: Iterable[int], *, stored: bool = True) -> None:
        """Revoke as `Lane._revoked`: records in flight may be stored or not at the last commit."""
        self.lane.work.on_revoked(partitions)
        self._end_with(stored)

    def drain(self, *, stored: bool = True) -> None:
        """Drain as `Lane._drain`: records in flight may be stored or not at the last commit."""
        self.lane.work.on_drain_timeout()
        self._end_with(stored)

    def _end_with(self, stored: bool) -> None:
        self.lane.work.poll()
        if stored:
            self.store()
        self.commit()

    def assign(self, partition: int) -> None:
        """Assign a partition that was revoked."""
        self.lane.windows.pop(partition, None)
        self._read[partition] = self.committed[partition]
        self.lane.recall(partition, self.notes.get(partition, ""))

    def kill(self, stored: int) -> None:
        """Kill the lane in the middle of its work: so many of its records are still stored."""
        for topic, _, record in [*self._due, *self.lane.producer.sent[self._sent :]][:stored]:
            self._stored(topic, record)
        self.open()


class TwoLanes:
    """Keyed messages of two pipes of two tenants; `egress` has the deliveries in the order of storage."""

    def __init__(self, var: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000.0
        self._cpu_ns = 0
        clock = SimpleNamespace(
            monotonic=lambda: self.now_s,
            monotonic_ns=lambda: int(self.now_s * 1e9),
            thread_time_ns=lambda: self._cpu_ns,
            time_ns=lambda: int(self.now_s * 1e9),
        )
        monkeypatch.setattr(work, "time", clock)
        self.ingest: Log = defaultdict(list)
        self.diverted: Log = defaultdict(list)
        self.egress: list[tuple[str, bytes, int]] = []  # pipe, key, number
        self.facts: list[Any] = []
        self.sent: dict[tuple[str, bytes], int] = defaultdict(int)
        self.cost_ms = dict.fromkeys(PIPES, 0.01)
        self.main = Half("process", var, self.ingest, self._store)
        self.slow = Half("process-slow", var, self.diverted, self._store)
        self._wire()

    def _wire(self) -> None:
        """Give each run its configured cost, and let the slow lane report the progress of the slow topic."""
        for half in (self.main, self.slow):
            runner = half.lane.work._runner
            if not hasattr(runner, "untimed"):
                runner.untimed = runner.run
                runner.run = self._timed(half, runner.untimed)
        detours = self.main.lane.work._detours
        detours._slow = SimpleNamespace(progress=self._progress, close=lambda: None)

    def _timed(self, half: Half, run: Any) -> Any:
        def timed(group: Any, items: list[Any], *more: Any) -> Any:
            self._cpu_ns += int(len(items) * self.cost_ms[group.pipe] * 1e6)
            self.now_s += len(items) * self.cost_ms[group.pipe] / 1e3
            half.ran += [group.pipe] * len(items)
            return run(group, items, *more)

        return timed

    def _progress(self, partition: int) -> tuple[int, int] | None:
        return self.slow.committed[partition], len(self.diverted[partition])

    def _store(self, topic: str, record: dict[str, Any]) -> None:
        topics = self.main.lane.cell.topics
        if topic == topics["process-slow"].name:
            log = self.diverted[record["partition"]]
            log.append(
                MemoryMessage(record["partition"], len(log), record["value"], record["headers"], record["key"], topic)
            )
        elif topic == topics["egress"].name:
            meta = read_meta(record["headers"])
            key = (record["key"] or b"\0").split(b"\0", 1)[1]
            self.egress.append((meta.pipe, key, int(record["value"])))

    # -- what happens ----------------------------------------------------------------------------------------------

    def send(self, pipe: str, key: bytes, count: int = 1) -> None:
        """Send events with rising numbers in this key."""
        partition = key[-1] % 4
        for _ in range(count):
            number = self.sent[pipe, key]
            self.sent[pipe, key] += 1
            offset = len(self.ingest[partition])
            body = b"%d" % number
            self.ingest[partition].append(arrived(offset, body, partition=partition, pipe=pipe, key=key))

    def passes(self, times: int = 1, most: int = 100) -> None:
        """Run both lanes: read, run, store and commit, as their loops do."""
        for _ in range(times):
            for half in (self.main, self.slow):
                half.read(most)
                half.store()
                half.commit()
            self.now_s += 0.05

    def kill(self, half: Half, stored: int) -> None:
        """Kill one lane (see `Half.kill`)."""
        half.kill(stored)
        self._wire()

    def states(self, pipe: str = "dear") -> set[str]:
        """Return the states of the pipe's detour over all partitions."""
        detour = self.main.lane.work._detours._detours.get(pipe)
        return {way.state.value for way in detour.ways.values()} if detour is not None else set()

    def finish(self, limit: int = 2_000) -> None:
        """Run both lanes until everything that was sent is delivered."""
        for _ in range(limit):
            self.passes()
            if set(self.expected()) <= set(self.egress):
                return
        raise AssertionError(f"not delivered: {sorted(set(self.expected()) - set(self.egress))[:10]}")

    def expected(self) -> list[tuple[str, bytes, int]]:
        """Return every event that was sent, once."""
        return [(pipe, key, number) for (pipe, key), count in self.sent.items() for number in range(count)]

    def overtaken(self) -> list[tuple[str, bytes, int]]:
        """Return the events that first arrived before one that was sent earlier with their key."""
        next_: dict[tuple[str, bytes], int] = defaultdict(int)
        wrong = []
        for pipe, key, number in self.egress:
            if number == next_[pipe, key]:
                next_[pipe, key] += 1
            elif number > next_[pipe, key]:
                wrong.append((pipe, key, number))
        return wrong


def marks(message: MemoryMessage) -> dict[str, bytes]:
    """Return the headers but for our own."""
    return {name: value for name, value in message.headers() if name != META_HEADER}
