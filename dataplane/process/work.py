"""The process lane's work: it queues messages in flows, runs the flows in turn by measured cost, and settles results.

A pass of the lane is bounded by time: other messages wait in their flow, in the lane's ack window, while the lane keeps
polling. Tenants take turns (dataplane.runtime.lanes.fair). The execution of plans is in runner.py.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from confluent_kafka import Message

from dataplane.causes import Cause
from dataplane.ledger.facts import BULK, SLOW
from dataplane.ledger.meta import Headers, MessageMeta
from dataplane.ledger.units import partition_base, place_of
from dataplane.plan import CompiledPlan, StageError
from dataplane.process.admission import NOTE_BYTES, ProcessAdmission, stretches
from dataplane.process.dedup import verdict_of
from dataplane.process.dependencies import Dependencies
from dataplane.process.detours import WORD, SlowLaneDetours, State
from dataplane.process.flows import MOST_AT_ONCE, FlowCost, FlowGroup, FlowKey, PipeFlow
from dataplane.process.holding import HoldPolicy
from dataplane.process.item import ProcessItem, item_of, offset_of
from dataplane.process.ramps import RampBooks
from dataplane.process.run import MessageRun
from dataplane.process.runner import Diversion, Runner
from dataplane.process.slow_topic import KafkaSlowTopic
from dataplane.process.traces import ProcessTracing
from dataplane.runtime.clock import SteadyClock
from dataplane.runtime.lanes.context import BUSY_WAIT_S, IDLE_WAIT_S, LaneContext
from dataplane.runtime.lanes.fair import FairQueue
from dataplane.runtime.lanes.poison import CRASHES_DETAIL
from dataplane.runtime.lookups import Lookups, LookupTables

PASS_S: Final = 0.005  # then the lane polls again, and newer messages get a turn
FEW: Final = 8  # messages of one pass of a quiet lane
QUANTUM_NS: Final = 2_000_000  # CPU that a tenant may spend before the next one's turn

_NOBODY: Final[frozenset[str]] = frozenset()
_Shared = tuple[
    str, int, int, int, int, bool
]  # the fields of a FlowGroup: a hot loop creates no other object per message


class _Bases(dict[int, int]):
    """Position of offset 0 by partition, computed on first use."""

    def __init__(self, generation: int) -> None:
        super().__init__()
        self._generation = generation

    def __missing__(self, partition: int) -> int:
        base = self[partition] = partition_base(self._generation, partition)
        return base


class ProcessWork:
    """Runs messages in turn and settles them when all records that they produced are stored."""

    def __init__(self, lane: LaneContext, lookups: Lookups, *, is_bulk: bool = False) -> None:
        """Create the work of a lane.

        lookups: the lane's look-up tables, closed with it
        is_bulk: a query runs this work, on messages that lanes have passed on
        """
        self._lane = lane
        self._lookups = lookups
        ingest = lane.cell.topics["ingest"]
        self._bases = _Bases(ingest.generation)
        self._ramps = RampBooks(lane.table, lane.facts)
        self._holding = HoldPolicy(lane)
        self._traces = None if lane.tracing is None else ProcessTracing(lane.tracing, ingest.name)
        self._runner = Runner(lane, self._holding, self._ramps, self._traces)
        self._flows: dict[FlowKey, PipeFlow] = {}
        self._is_bulk = is_bulk
        self._runs_diverted = lane.identity.kind == "process-slow"  # at any cost
        self._admission = ProcessAdmission(lane)
        self._dependencies = Dependencies(lane, self._admission, self._missing)
        self._detours: SlowLaneDetours | None = None
        if (
            not self._runs_diverted and "process-slow" in lane.cell.topics
        ):  # a cell of an earlier release has no such topic
            self._slow = lane.cell.topics["process-slow"].name
            slow = KafkaSlowTopic(lane.settings.kafka, lane.identity.cell, self._slow)
            self._detours = SlowLaneDetours(lane, slow, self._flows)
        if not self._runs_diverted:
            lane.keep_notes(self._note, self._recall)
        self._turns: FairQueue[FlowKey] = FairQueue(QUANTUM_NS, self._weight)
        self._costs: defaultdict[str, FlowCost] = defaultdict(FlowCost)
        self._queued = 0
        self._waiting: list[tuple[FlowGroup, list[ProcessItem]]] = []  # for a plan or a look-up table
        self._behind: set[FlowKey] = set()  # the flows of these

    # -- input -----------------------------------------------------------------------------------------------------

    def process(self, messages: Sequence[Message]) -> None:
        """Queue messages in their flows and run some.

        A few messages of a quiet lane are sent on without waiting for others of their batch.
        """
        producer = self._lane.producer
        is_quiet = len(messages) <= FEW and not producer.in_flight and not self._is_bulk
        self._queue(messages)
        self._run_some()
        if is_quiet and producer.in_flight:
            producer.send_now()

    def _queue(self, messages: Sequence[Message]) -> None:
        """Queue messages in their flows; `read_all` dead-letters unreadable ones. A hot loop."""
        bases, groups = self._bases, defaultdict[_Shared, list[ProcessItem]](list)
        watched: Collection[str] = self._admission.pipes
        gated = defaultdict[FlowKey, list[ProcessItem]](list)
        if self._runs_diverted:
            watched = _NOBODY  # diverted messages have been admitted
        for message, meta, headers in self._lane.read_all(messages):
            origin = partition = message.partition()
            if meta.position:  # returned by dedup or released from held, with its original position
                item = self._returned(message, meta, headers)
                if item is None:
                    continue
                if self._runs_diverted:
                    origin = place_of(meta.position).partition
            else:
                meta.position = bases[partition] + message.offset()
                meta.stored_ms = message.timestamp()[1]
                item = item_of(meta, message, headers)
            if watched and meta.pipe in watched:
                gated[meta.pipe, partition].append(item)
            else:
                groups[meta.pipe, meta.revision, meta.bucket, partition, origin, meta.through].append(item)
        for shared, items in groups.items() if not self._runs_diverted else ():  # diverted messages were counted before
            self._count(shared[0], items)
        for group, items in self._in_order(groups):
            self._put(group, items)
        for (pipe, partition), items in gated.items():
            self._count(pipe, items)
            passage = self._admission.admit(pipe, partition, items)
            self._hold(pipe, partition, passage.hold)
            for stretch in stretches(passage.run):
                self._put(_group_of(pipe, partition, stretch), stretch)

    def _in_order(self, groups: Mapping[_Shared, list[ProcessItem]]) -> list[tuple[FlowGroup, list[ProcessItem]]]:
        """Return the groups to queue. In flows that keep order, a change of minute starts a new group.

        Senders choose the minute, so it may alternate; without order it is cheaper to run each minute together.
        """
        named = [(FlowGroup(*shared), items) for shared, items in groups.items()]
        if len(named) == 1:
            return named
        flows: defaultdict[FlowKey, list[tuple[FlowGroup, list[ProcessItem]]]] = defaultdict(list)
        for group, items in named:
            flows[group.flow].append((group, items))
        due: list[tuple[FlowGroup, list[ProcessItem]]] = []
        for (pipe, partition), of_flow in flows.items():
            if len(of_flow) > 1 and any(self._runner.keeps_order(group) for group, _ in of_flow):
                items = sorted((item for _, some in of_flow for item in some), key=offset_of)
                due += _runs_of(pipe, partition, items, runs_diverted=self._runs_diverted)
            else:
                due += of_flow
        return due

    def _put(self, group: FlowGroup, items: list[ProcessItem]) -> None:
        self._ramps.book(items)
        flow = self._flow(group.flow)
        flow.add(group, items)
        self._queued += len(items)
        if self._detours is not None and not self._leaves_for_bulk(self._runner.plan(group)):
            self._detours.came(flow, time.monotonic())
        self._enqueue(flow)

    def _flow(self, key: FlowKey) -> PipeFlow:
        flow = self._flows.get(key)
        if flow is None:
            record = self._lane.table.pipe(key[0])
            flow = self._flows[key] = PipeFlow(key, record.tenant if record is not None else key[0])
        return flow

    def _enqueue(self, flow: PipeFlow) -> None:
        """Queue a flow for its turn, if it has messages that may run."""
        if flow.parts and not flow.is_queued and self._may_run(flow):
            flow.is_queued = True
            self._turns.add(flow.tenant, flow.key)

    def _may_run(self, flow: PipeFlow) -> bool:
        return self._detours is None or self._detours.state(flow.key) in (None, State.SLOW)

    def _hold(self, pipe: str, partition: int, items: list[ProcessItem]) -> None:
        """Hold messages before the steps, in this order."""
        for stretch in stretches(items):
            run = self._runner.begun(_group_of(pipe, partition, stretch), stretch, SteadyClock())
            self._runner.hold(run, stretch)
            self.on_delivery(run)

    def _returned(self, message: Message, meta: MessageMeta, headers: Headers) -> ProcessItem | None:
        """Return the item of a message that was released or judged by dedup; None for a duplicate, which ends here."""
        first = verdict_of(headers)
        item = item_of(meta, message, headers if first is None else headers[:-1])
        if first:
            run = self._runner.begun(_group_of(meta.pipe, message.partition(), [item]), [item], SteadyClock())
            run.through = []
            run.duplicate(first, meta)
            self._count(meta.pipe, [item])
            self.on_delivery(run)
            return None
        item.judged, item.back, item.stopwatch = first is not None, True, meta.stopwatch
        return item

    def dead_letter_poison(self, message: Message) -> None:
        """Dead-letter a message that crashed the lane, at the first stage and without running it."""
        for _, meta, headers in self._lane.read_all([message]):
            meta.position = meta.position or self._bases[message.partition()] + message.offset()
            item = item_of(meta, message, headers)
            run = self._runner.begun(_group_of(meta.pipe, message.partition(), [item]), [item], SteadyClock())
            run.through = []
            self._ramps.book([item])
            self._runner.dead_letter(run, "normalize", item, StageError(Cause.CRASHES_LANE, CRASHES_DETAIL))
            self.on_delivery(run)

    # -- running ---------------------------------------------------------------------------------------------------

    def poll(self) -> None:
        """Run some of the queued messages; hold messages that were kept or have waited for too long."""
        for pipe, partition, items in self._admission.poll():
            self._hold(pipe, partition, items)
        now_s = time.monotonic()
        for key in self._detours.poll(now_s) if self._detours is not None else ():
            if (flow := self._flows.get(key)) is not None:
                self._enqueue(flow)
        if self._waiting:
            self._try_waiting()
            # this also reports the pipes, so that the control plane pauses them
            overdue = self._dependencies.overdue(self._waiting, now_s)
            if self._is_bulk or not self._runs_diverted:  # a slow lane has no gate to keep the order: messages wait on
                self._hold_waiting(overdue)
        self._dependencies.poll(now_s)
        self._lane.held_pipes = len(self._dependencies.held)
        if self._turns.tenants:
            self._run_some()

    def _hold_waiting(self, pipes: set[str]) -> None:
        """Hold the waiting messages of these pipes, in order by partition, so that no other pipe waits behind them."""
        if not pipes:
            return
        found: defaultdict[FlowKey, list[ProcessItem]] = defaultdict(list)
        for group, items in self._waiting:
            if group.pipe in pipes:
                found[group.flow] += items
        self._waiting = [(group, items) for group, items in self._waiting if group.pipe not in pipes]
        self._behind = {key for key in self._behind if key[0] not in pipes}
        for flow in [flow for flow in self._flows.values() if flow.key[0] in pipes]:  # queued behind these
            found[flow.key] += [item for _, items in flow.parts for item in items]
            self._empty(flow)
        for (pipe, partition), items in found.items():
            ordered = sorted(items, key=offset_of)
            self._hold(
                pipe, partition, ordered if self._is_bulk else self._admission.hold_back(pipe, partition, ordered)
            )

    def _empty(self, flow: PipeFlow) -> None:
        """Remove all messages from a flow."""
        if flow.is_queued:
            self._turns.remove(flow.tenant, flow.key)
            flow.is_queued = False
        self._queued -= flow.count
        flow.parts.clear()
        flow.count = 0
        self._drop_if_idle(flow)

    def _missing(self, pipe: str, revision: int) -> str:
        """Return the missing dependency of a pipe's revision on this host, as text for the owner; "" if it can run."""
        with self._lookups.pinned() as pinned:
            return self._runner.missing(pipe, revision, pinned)

    def _run_some(self) -> None:
        """Run flows in turn until the pass is over or none is queued."""
        until_s, clock = time.monotonic() + PASS_S, SteadyClock()
        with self._lookups.pinned() as pinned:
            while (found := self._turns.next()) is not None:
                flow = self._flows[found[0]]
                cost_ns = self._run_flow(flow, found[1], pinned, clock) if self._may_run(flow) else 0
                flow.is_queued = bool(flow.parts) and self._may_run(flow)
                self._turns.spent(cost_ns, has_more=flow.is_queued)
                self._drop_if_idle(flow)
                if time.monotonic() >= until_s:
                    break

    def _run_flow(self, flow: PipeFlow, credit_ns: float, pinned: LookupTables, clock: SteadyClock) -> int:
        """Run or divert the next messages of a flow; return their cost in ns of CPU."""
        pipe, cost = flow.key[0], self._costs[flow.key[0]]
        plan = self._runner.plan(flow.parts[0][0])
        diversion = None if self._runs_diverted else self._diversion(flow, plan)
        most = MOST_AT_ONCE if diversion is not None else cost.chunk(plan, credit_ns)
        group, items = flow.take(most)
        self._queued -= len(items)
        began_ns = time.thread_time_ns()
        if diversion is None:
            is_run = self._run(flow, group, items, pinned, clock)
        else:
            is_run = False
            run = self._runner.begun(group, items, clock)
            self._runner.divert(run, items, diversion)
            self._await(run, flow)
        cost_ns = time.thread_time_ns() - began_ns
        if is_run:
            cost.note(len(items), cost_ns)
            if self._detours is not None:
                self._detours.ran(flow, cost, cost_ns, time.monotonic())
        self._lane.usage.add(pipe, 0, 0, cost_ns)
        return cost_ns

    def _diversion(self, flow: PipeFlow, plan: CompiledPlan | None) -> Diversion | None:
        """Return where the next messages of a flow run; None if they run here."""
        if self._detours is not None and self._detours.state(flow.key) is State.SLOW:
            return Diversion(self._slow, self._detours.partition(flow.tenant), SLOW)
        bulk = self._runner.bulk
        if self._leaves_for_bulk(plan) and bulk is not None:
            return Diversion(bulk.name, flow.parts[0][0].origin % bulk.partitions, BULK)
        return None

    @staticmethod
    def _leaves_for_bulk(plan: CompiledPlan | None) -> bool:
        return plan is not None and plan.is_bulk

    def _await(self, run: MessageRun, flow: PipeFlow) -> None:
        """Release the run's own token: all its records are produced, and it ends when they are stored."""
        run.flow = flow
        flow.runs += 1
        self.on_delivery(run)

    def _run(
        self, flow: PipeFlow, group: FlowGroup, items: list[ProcessItem], pinned: LookupTables, clock: SteadyClock
    ) -> bool:
        """Run messages and return True, or let them wait for their dependencies and return False."""
        if self._must_wait(group, pinned):
            self._waiting.append((group, items))
            self._behind.add(group.flow)
            return False
        self._await(self._runner.run(group, items, pinned, clock, time.monotonic_ns()), flow)
        return True

    def _must_wait(self, group: FlowGroup, pinned: LookupTables) -> bool:
        if group.flow in self._behind and self._runner.keeps_order(group):
            return True
        return not self._runner.is_ready(group, pinned)

    def _try_waiting(self) -> None:
        """Prepend messages that need not wait any more to their flow, and queue the flow for its turn."""
        waiting, self._waiting = self._waiting, []
        self._behind.clear()
        ready: list[tuple[FlowGroup, list[ProcessItem]]] = []
        with self._lookups.pinned() as pinned:
            for group, items in waiting:
                runs_here = self._detours is None or self._detours.state(group.flow) is None
                if runs_here and self._must_wait(group, pinned):
                    self._waiting.append((group, items))
                    self._behind.add(group.flow)
                else:
                    ready.append((group, items))
        for group, items in reversed(ready):
            flow = self._flow(group.flow)
            flow.put_back(group, items)
            self._queued += len(items)
            self._enqueue(flow)

    def _count(self, pipe: str, items: list[ProcessItem]) -> None:
        self._lane.usage.add(pipe, len(items), sum([len(item.original) for item in items]), 0)

    def _weight(self, tenant: str) -> float:
        record = self._lane.table.quota(tenant)
        own = record.process_weight if record is not None else None
        return (own or self._lane.settings.quotas.process_weight) / 100

    # -- calls of the lane's loop ----------------------------------------------------------------------------------

    def on_delivery(self, token: Any) -> None:
        """Count a delivered token of a run; the last one closes the run. Reports carry no token."""
        if token is None:
            return
        run: MessageRun = token
        run.owed -= 1
        if not run.owed:
            run.close(self._lane.facts, self._lane.lags)
            if self._traces is not None:
                self._traces.end(run)
            self._lane.settle_all(run.partition, run.offsets)
            if run.flow is not None:
                run.flow.runs -= 1
                self._drop_if_idle(run.flow)

    def _drop_if_idle(self, flow: PipeFlow) -> None:
        """Remove a flow without queued messages and open runs, unless a revocation has removed it already."""
        if not (flow.parts or flow.runs) and self._flows.get(flow.key) is flow:
            del self._flows[flow.key]

    def in_flight(self) -> int:
        """Return 0: only the producer has records in flight; a new owner reads waiting messages again."""
        return 0

    def backlog(self) -> int:
        """Return the number of messages that wait for their turn."""
        return self._queued

    def poll_timeout_s(self) -> float:
        """Return 0 while messages wait for their turn; short while reports are due, as they determine lag_out."""
        if self._turns.tenants:
            return 0.0
        return BUSY_WAIT_S if self._lane.producer.in_flight or self._queued else IDLE_WAIT_S

    def report(self) -> None:
        """Do nothing: the lane reports only its audit record."""

    def on_revoked(self, partitions: Iterable[int]) -> None:
        """Drop the messages of these partitions; the new owner reads them again."""
        gone = set(partitions)
        if self._detours is not None:
            self._detours.give_up(gone)
        self._admission.forget(gone)
        self._drop([flow for flow in self._flows.values() if flow.key[1] in gone])
        self._waiting = [(group, items) for group, items in self._waiting if group.partition not in gone]
        self._behind = {key for key in self._behind if key[1] not in gone}

    def on_drain_timeout(self) -> None:
        """Drop all waiting messages, which stay uncommitted."""
        if self._detours is not None:
            self._detours.give_up()
        self._drop(list(self._flows.values()))
        self._waiting = []
        self._behind.clear()

    def _drop(self, flows: list[PipeFlow]) -> None:
        for flow in flows:
            if flow.is_queued:
                self._turns.remove(flow.tenant, flow.key)
            self._queued -= flow.count
            del self._flows[flow.key]

    def close(self) -> None:
        """Close the look-up tables and the client of the slow topic."""
        self._lookups.close()
        if self._detours is not None:
            self._detours.close()

    def _note(self, partition: int, prefix: int) -> str:
        """Return the note of a commit: entries of detours, then of admission."""
        entries = self._detours.note(partition) if self._detours is not None else []
        room = NOTE_BYTES - sum(len(entry) + 1 for entry in entries)
        return ",".join([*entries, *self._admission.note(partition, prefix, room)])

    def _recall(self, partition: int, note: str) -> None:
        if self._detours is not None:
            self._detours.recall(partition, note, time.monotonic())
        self._admission.recall(partition, [entry for entry in note.split(",") if entry and not entry.startswith(WORD)])


def _runs_of(
    pipe: str, partition: int, items: list[ProcessItem], *, runs_diverted: bool
) -> Iterable[tuple[FlowGroup, list[ProcessItem]]]:
    """Yield consecutive items that may run together, with their group."""
    for stretch in stretches(items):
        if not runs_diverted:
            yield _group_of(pipe, partition, stretch), stretch
            continue
        for origin, some in groupby(stretch, lambda item: place_of(item.meta.position).partition):
            yield _group_of(pipe, partition, stretch)._replace(origin=origin), list(some)


def _group_of(pipe: str, partition: int, items: list[ProcessItem]) -> FlowGroup:
    meta = items[0].meta
    return FlowGroup(pipe, meta.revision, meta.bucket, partition, partition, meta.through)
