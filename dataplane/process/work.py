"""The process lane's work: group by (pipe, revision), run the compiled plan stage by stage, produce egress and dead."""

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from confluent_kafka import Message

from dataplane.ledger.deadletter import Death, dead_headers
from dataplane.ledger.meta import META_HEADER, Headers, Meta, encode_meta
from dataplane.ledger.units import partition_base
from dataplane.names import transform_node
from dataplane.plan import Plan, StageError, compile_plan
from dataplane.process.run import Run
from dataplane.runtime.crashes import CRASHES_DETAIL, CRASHES_LANE
from dataplane.runtime.lane import BUSY_WAIT_S, IDLE_WAIT_S, Lane
from dataplane.runtime.outbox import ANY_PARTITION, TooLargeError

log = logging.getLogger(__name__)


class Item(msgspec.Struct):
    """One message on its way through the stages; `body` is what the last stage made of it.

    headers: as read; the first is ours, and is written anew before each send
    """

    meta: Meta
    message: Message
    headers: Headers
    body: bytes


_Group = tuple[str, int, int, int]  # pipe, revision, bucket, partition


class ProcessWork:
    """normalize, (enrich, route,) transform; one egress record for each destination due."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        topics = lane.cell.topics
        self._egress = topics["egress"]
        self._dead = topics["dead"].name
        self._generation = topics["ingest"].generation
        self._bases: dict[int, int] = {}
        self._plans: dict[tuple[str, int], Plan] = {}
        self._waiting: list[Item] = []  # for a plan that the control table does not hold yet

    def take(self, messages: Sequence[Message]) -> None:
        """Run everything whose plan is known; a message that cannot be read is dead at once."""
        items = []
        for message, meta, headers in self._lane.read_all(messages):
            meta.position = self._base(message.partition()) + message.offset()
            items.append(Item(meta, message, headers, message.value() or b""))
        self._run_all(items)

    def condemn(self, message: Message) -> None:
        """Dead at the first stage, unread."""
        for _, meta, headers in self._lane.read_all([message]):
            meta.position = self._base(message.partition()) + message.offset()
            run = Run(meta.pipe, meta.bucket, message.partition(), [message.offset()], [meta.position])
            run.through = []
            item = Item(meta, message, headers, message.value() or b"")
            self._bury(run, "normalize", item, StageError(CRASHES_LANE, CRASHES_DETAIL))
            self.acked(run)

    def turn(self) -> None:
        """Try again what waits for a plan."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._run_all(waiting)

    def _run_all(self, items: Iterable[Item]) -> None:
        groups: dict[_Group, list[Item]] = defaultdict(list)
        for item in items:
            meta = item.meta
            groups[meta.pipe, meta.revision, meta.bucket, item.message.partition()].append(item)
        for group, members in groups.items():
            self._run(group, members)

    def acked(self, token: Any) -> None:
        """A run's record is stored; the last one closes the run."""
        run: Run = token
        run.owed -= 1
        if not run.owed:
            run.close(self._lane.facts, self._lane.lags, _now_us())
            self._lane.settle_all(run.partition, run.offsets)

    def in_flight(self) -> int:
        """Nothing is under way but what the outbox holds: a message that waits for its plan is read again elsewhere."""
        return 0

    def patience_s(self) -> float:
        """Short while reports are due, because lag_out is taken at the report."""
        return BUSY_WAIT_S if self._lane.outbox.in_flight else IDLE_WAIT_S

    def report(self) -> None:
        """Nothing beside the audit record."""

    def forget(self, partitions: Iterable[int]) -> None:
        """What waits for a plan will be read by the new owner."""
        gone = set(partitions)
        self._waiting = [item for item in self._waiting if item.message.partition() not in gone]

    def give_back(self) -> None:
        """What waits for a plan stays uncommitted."""
        self._waiting = []

    def close(self) -> None:
        """Nothing is open."""

    def _base(self, partition: int) -> int:
        base = self._bases.get(partition)
        if base is None:
            base = self._bases[partition] = partition_base(self._generation, partition)
        return base

    def _plan(self, pipe: str, revision: int) -> Plan | None:
        record = self._lane.table.pipe(pipe)
        runs_as = record.run_as.get(revision, revision) if record else revision
        plan = self._plans.get((pipe, runs_as))
        if plan is None:
            known = self._lane.table.plan(pipe, runs_as)
            if known is not None:
                plan = self._plans[pipe, runs_as] = compile_plan(known.spec)
        return plan

    def _run(self, group: _Group, items: list[Item]) -> None:
        pipe, revision, bucket, partition = group
        plan = self._plan(pipe, revision)
        if plan is None:
            self._waiting.extend(items)
            return
        positions = [item.meta.position for item in items]
        run = Run(pipe, bucket, partition, [item.message.offset() for item in items], positions)
        times = [item.meta.event_time_us for item in items]
        self._mark(run, "normalize", "in", times)
        alive = self._normalize(run, plan, items)
        if len(alive) < len(items):
            times = [item.meta.event_time_us for item in alive]
            run.through = [item.meta.position for item in alive]
        self._mark(run, "normalize", "out", times)
        for destination in plan.destinations:
            self._mark(run, transform_node(destination), "in", times)
            self._transform(run, plan, destination, alive)
        self.acked(run)

    def _mark(self, run: Run, node: str, way: str, times: list[int]) -> None:
        if times:
            self._lane.lags.add_pass((run.pipe, node, run.bucket, way), _now_us(), times)

    def _normalize(self, run: Run, plan: Plan, items: list[Item]) -> list[Item]:
        stage, alive = plan.normalize, []
        if stage.is_idle:
            return items
        for item in items:
            try:
                item.body = stage(item.body)
            except StageError as exc:
                self._bury(run, "normalize", item, exc)
            else:
                alive.append(item)
        return alive

    def _transform(self, run: Run, plan: Plan, destination: str, items: list[Item]) -> None:
        """One egress record for each item. A hot loop.

        A message without a key must come to the same partition again, too: transmit remembers what it settled.
        """
        node, stage = transform_node(destination), plan.transform[destination]
        idle = stage.is_idle
        keyless = run.partition % self._egress.partitions
        departed, times = run.departed[destination], run.event_times[destination]
        prefix = f"{destination}\0".encode()
        run.owed += 1
        shipment = self._lane.outbox.shipment(self._egress.name, run)
        for item in items:
            meta, headers, key = item.meta, item.headers, item.message.key()
            meta.destination = destination
            headers[0] = (META_HEADER, encode_meta(meta))
            try:
                body = item.body if idle else stage(item.body)
                if key is None:
                    shipment.send(body, None, keyless, headers)
                else:
                    shipment.send(body, prefix + key, ANY_PARTITION, headers)
            except StageError as exc:
                self._bury(run, node, item, exc)
            except TooLargeError as exc:
                self._bury(run, node, item, StageError("too-large", str(exc)))
            else:
                departed.append(meta.position)
                times.append(meta.event_time_us)
        shipment.close()

    def _bury(self, run: Run, node: str, item: Item, why: StageError) -> None:
        """Dead with its cause; the original goes along unless it is too large for the topic itself."""
        log.warning("dead: pipe=%s revision=%s node=%s cause=%s", run.pipe, item.meta.revision, node, why)
        run.dead(node, why.cause, item.meta.position)
        headers = dead_headers(item.meta, item.headers, Death(node, why.cause, why.detail))
        self._lane.outbox.send(self._dead, run, value=item.message.value(), headers=headers)
        run.owed += 1


def _now_us() -> int:
    return time.time_ns() // 1_000
