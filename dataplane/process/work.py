"""The process lane's work: messages into flows, flows run in turn by the cost that is measured, results settled.

A pass of the lane is bounded by time: what is not run in it waits in its flow, in the lane's window, while the lane
goes on polling. Tenants take turns (dataplane.runtime.fair). What a plan does with messages is in runner.py.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from confluent_kafka import Message

from dataplane.ledger.meta import Headers, Meta
from dataplane.ledger.units import partition_base, place_of
from dataplane.plan import StageError
from dataplane.process.admission import NOTE_BYTES, Admission, stretches
from dataplane.process.dedup import verdict_of
from dataplane.process.dependencies import Dependencies
from dataplane.process.detours import WORD, Detours, State
from dataplane.process.flows import MOST_AT_ONCE, Cost, Flow, FlowKey, Group
from dataplane.process.holding import Holding
from dataplane.process.item import Item, item_of, offset_of
from dataplane.process.lookups import Lookups, Tables
from dataplane.process.ramps import Ramps
from dataplane.process.run import Run
from dataplane.process.runner import Runner
from dataplane.process.slow_topic import KafkaSlowTopic
from dataplane.process.traces import Traces
from dataplane.runtime.clock import SteadyClock
from dataplane.runtime.crashes import CRASHES_DETAIL, CRASHES_LANE
from dataplane.runtime.fair import FairQueue
from dataplane.runtime.lane import BUSY_WAIT_S, IDLE_WAIT_S, Lane

PASS_S: Final = 0.005  # then the lane polls again, and what has come since has its turn
QUANTUM_NS: Final = 2_000_000  # of CPU: what a tenant may spend before it is the next one's turn

_NOBODY: Final[frozenset[str]] = frozenset()
_Shared = tuple[str, int, int, int, int]  # the fields of a Group: a hot loop makes no other object for each message


class _Bases(dict[int, int]):
    """The position of offset 0 by partition."""

    def __init__(self, generation: int) -> None:
        super().__init__()
        self._generation = generation

    def __missing__(self, partition: int) -> int:
        base = self[partition] = partition_base(self._generation, partition)
        return base


class ProcessWork:
    """Takes messages, runs them in turn, and settles them when all that they became is stored."""

    def __init__(self, lane: Lane, lookups: Lookups) -> None:
        """`lookups` are closed with the lane."""
        self._lane = lane
        self._lookups = lookups
        ingest = lane.cell.topics["ingest"]
        self._bases = _Bases(ingest.generation)
        self._ramps = Ramps(lane.table, lane.facts)
        self._holding = Holding(lane)
        self._traces = None if lane.tracing is None else Traces(lane.tracing, ingest.name)
        self._runner = Runner(lane, self._holding, self._ramps, self._traces)
        self._flows: dict[FlowKey, Flow] = {}
        self._is_slow = lane.identity.kind == "process-slow"  # it runs what others divert, whatever it costs
        self._admission = Admission(lane)
        self._dependencies = Dependencies(lane, self._admission, self._missing)
        self._detours: Detours | None = None
        if not self._is_slow and "process-slow" in lane.cell.topics:  # a cell of an earlier release has no such topic
            topic = lane.cell.topics["process-slow"].name
            slow = KafkaSlowTopic(lane.settings.kafka, lane.identity.cell, topic)
            self._detours = Detours(lane, slow, self._flows)
        if not self._is_slow:
            lane.keep_notes(self._note, self._recall)
        self._turns: FairQueue[FlowKey] = FairQueue(QUANTUM_NS, self._weight)
        self._costs: defaultdict[str, Cost] = defaultdict(Cost)
        self._queued = 0
        self._waiting: list[tuple[Group, list[Item]]] = []  # for a plan or a look-up table that is not here yet
        self._behind: set[FlowKey] = set()  # the flow of each of these

    # -- taking ----------------------------------------------------------------------------------------------------

    def take(self, messages: Sequence[Message]) -> None:
        """Put messages into their flows and run some; one that cannot be read is dead at once. A hot loop."""
        bases, groups = self._bases, defaultdict[_Shared, list[Item]](list)
        watched: Collection[str] = self._admission.pipes
        gated = defaultdict[FlowKey, list[Item]](list)
        if self._is_slow:
            watched = _NOBODY  # what is here has been let in
        for message, meta, headers in self._lane.read_all(messages):
            origin = partition = message.partition()
            if meta.position:  # put back by dedup or released from held, under the position that it had
                item = self._returned(message, meta, headers)
                if item is None:
                    continue
                if self._is_slow:
                    origin = place_of(meta.position).partition
            else:
                meta.position = bases[partition] + message.offset()
                meta.stored_ms = message.timestamp()[1]
                item = item_of(meta, message, headers)
            if watched and meta.pipe in watched:
                gated[meta.pipe, partition].append(item)
            else:
                groups[meta.pipe, meta.revision, meta.bucket, partition, origin].append(item)
        for shared, items in groups.items() if not self._is_slow else ():  # there they were counted before
            self._count(shared[0], items)
        for group, items in self._in_order(groups):
            self._put(group, items)
        for (pipe, partition), items in gated.items():
            self._count(pipe, items)
            passage = self._admission.let_in(pipe, partition, items)
            self._hold(pipe, partition, passage.hold)
            for stretch in stretches(passage.run):
                self._put(_group_of(pipe, partition, stretch), stretch)
        self._run_some()

    def _in_order(self, groups: Mapping[_Shared, list[Item]]) -> list[tuple[Group, list[Item]]]:
        """The groups one after the other. Where order is kept, what lies between those of another minute stays there.

        A minute is the sender's own, so it changes to and fro; elsewhere it costs less to run each one together.
        """
        named = [(Group(*shared), items) for shared, items in groups.items()]
        if len(named) == 1:
            return named
        flows: defaultdict[FlowKey, list[tuple[Group, list[Item]]]] = defaultdict(list)
        for group, items in named:
            flows[group.flow].append((group, items))
        due: list[tuple[Group, list[Item]]] = []
        for (pipe, partition), ours in flows.items():
            if len(ours) > 1 and any(self._runner.keeps_order(group) for group, _ in ours):
                items = sorted((item for _, some in ours for item in some), key=offset_of)
                due += _runs_of(pipe, partition, items, is_slow=self._is_slow)
            else:
                due += ours
        return due

    def _put(self, group: Group, items: list[Item]) -> None:
        self._ramps.book(items)
        flow = self._flow(group.flow)
        flow.add(group, items)
        self._queued += len(items)
        if self._detours is not None:
            self._detours.came(flow, time.monotonic())
        self._enqueue(flow)

    def _flow(self, key: FlowKey) -> Flow:
        flow = self._flows.get(key)
        if flow is None:
            record = self._lane.table.pipe(key[0])
            flow = self._flows[key] = Flow(key, record.tenant if record is not None else key[0])
        return flow

    def _enqueue(self, flow: Flow) -> None:
        """Its turn will come, if it has something and may go on."""
        if flow.parts and not flow.is_queued and self._goes_on(flow):
            flow.is_queued = True
            self._turns.add(flow.tenant, flow.key)

    def _goes_on(self, flow: Flow) -> bool:
        return self._detours is None or self._detours.state(flow.key) in (None, State.SLOW)

    def _hold(self, pipe: str, partition: int, items: list[Item]) -> None:
        """Hold messages before the steps, in this order."""
        for stretch in stretches(items):
            run = self._runner.begun(_group_of(pipe, partition, stretch), stretch, SteadyClock())
            self._runner.hold(run, stretch)
            self.acked(run)

    def _returned(self, message: Message, meta: Meta, headers: Headers) -> Item | None:
        """Return the item of a message that was released or judged by dedup; None for a repeat, which ends here."""
        first = verdict_of(headers)
        item = item_of(meta, message, headers if first is None else headers[:-1])
        if first:
            run = self._runner.begun(_group_of(meta.pipe, message.partition(), [item]), [item], SteadyClock())
            run.through = []
            run.duplicate(first, meta)
            self._count(meta.pipe, [item])
            self.acked(run)
            return None
        item.judged, item.back, item.stopwatch = first is not None, True, meta.stopwatch
        return item

    def condemn(self, message: Message) -> None:
        """Dead-letter a message at the first stage, unread."""
        for _, meta, headers in self._lane.read_all([message]):
            meta.position = meta.position or self._bases[message.partition()] + message.offset()
            item = item_of(meta, message, headers)
            run = self._runner.begun(_group_of(meta.pipe, message.partition(), [item]), [item], SteadyClock())
            run.through = []
            self._ramps.book([item])
            self._runner.bury(run, "normalize", item, StageError(CRASHES_LANE, CRASHES_DETAIL))
            self.acked(run)

    # -- running ---------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Run some of what waits for its turn; hold what was kept or has waited in vain."""
        for pipe, partition, items in self._admission.turn():
            self._hold(pipe, partition, items)
        now_s = time.monotonic()
        for key in self._detours.turn(now_s) if self._detours is not None else ():
            if (flow := self._flows.get(key)) is not None:
                self._enqueue(flow)
        if self._waiting:
            self._try_waiting()
            # reported as well, so that the control plane pauses these pipes
            overdue = self._dependencies.overdue(self._waiting, now_s)
            if not self._is_slow:  # a slow lane has no gate that would keep the order: what waits there stays
                self._hold_waiting(overdue)
        self._dependencies.turn(now_s)
        self._lane.held_pipes = len(self._dependencies.held)
        if self._turns.tenants:
            self._run_some()

    def _hold_waiting(self, pipes: set[str]) -> None:
        """Hold what waits of these pipes, each partition in its order, so that nobody else waits behind it."""
        if not pipes:
            return
        found: defaultdict[FlowKey, list[Item]] = defaultdict(list)
        for group, items in self._waiting:
            if group.pipe in pipes:
                found[group.flow] += items
        self._waiting = [(group, items) for group, items in self._waiting if group.pipe not in pipes]
        self._behind = {key for key in self._behind if key[0] not in pipes}
        for flow in [flow for flow in self._flows.values() if flow.key[0] in pipes]:  # behind these, and not run either
            found[flow.key] += [item for _, items in flow.parts for item in items]
            self._empty(flow)
        for (pipe, partition), items in found.items():
            ordered = sorted(items, key=offset_of)
            self._hold(pipe, partition, self._admission.hold_back(pipe, partition, ordered))

    def _empty(self, flow: Flow) -> None:
        """Take a flow's messages out of it."""
        if flow.is_queued:
            self._turns.remove(flow.tenant, flow.key)
            flow.is_queued = False
        self._queued -= flow.count
        flow.parts.clear()
        flow.count = 0
        self._drop_if_idle(flow)

    def _missing(self, pipe: str, revision: int) -> str:
        """Return what a revision of a pipe lacks on this host, in words for the pipe's owner; "" if it can run."""
        with self._lookups.pinned() as pinned:
            return self._runner.missing(pipe, revision, pinned)

    def _run_some(self) -> None:
        """Flow by flow, until the pass is over or nothing is left."""
        until_s, clock = time.monotonic() + PASS_S, SteadyClock()
        with self._lookups.pinned() as pinned:
            while (found := self._turns.next()) is not None:
                flow = self._flows[found[0]]
                cost_ns = self._run_flow(flow, found[1], pinned, clock) if self._goes_on(flow) else 0
                flow.is_queued = bool(flow.parts) and self._goes_on(flow)
                self._turns.spent(cost_ns, has_more=flow.is_queued)
                self._drop_if_idle(flow)
                if time.monotonic() >= until_s:
                    break

    def _run_flow(self, flow: Flow, credit_ns: float, pinned: Tables, clock: SteadyClock) -> int:
        """Run the next messages of a flow: what they cost, in ns of CPU."""
        pipe, cost = flow.key[0], self._costs[flow.key[0]]
        slow_partition = self._slow_partition(flow)
        most = (
            MOST_AT_ONCE if slow_partition is not None else cost.chunk(self._runner.plan(flow.parts[0][0]), credit_ns)
        )
        group, items = flow.take(most)
        self._queued -= len(items)
        began_ns = time.thread_time_ns()
        if slow_partition is None:
            is_run = self._run(flow, group, items, pinned, clock)
        else:
            is_run = False
            run = self._runner.begun(group, items, clock)
            self._runner.divert(run, items, slow_partition)
            self._await(run, flow)
        cost_ns = time.thread_time_ns() - began_ns
        if is_run:
            cost.note(len(items), cost_ns)
            if self._detours is not None:
                self._detours.ran(flow, cost, cost_ns, time.monotonic())
        self._lane.usage.add(pipe, 0, 0, cost_ns)
        return cost_ns

    def _slow_partition(self, flow: Flow) -> int | None:
        """Return the partition of the slow topic that a flow's messages are produced to; None if they run here."""
        if self._detours is None or self._detours.state(flow.key) is not State.SLOW:
            return None
        return self._detours.partition(flow.tenant)

    def _await(self, run: Run, flow: Flow) -> None:
        """Everything of a run is produced; it ends when all of that is stored."""
        run.flow = flow
        flow.runs += 1
        self.acked(run)

    def _run(self, flow: Flow, group: Group, items: list[Item], pinned: Tables, clock: SteadyClock) -> bool:
        """Run messages, or put them aside until what they need is there; return which of the two."""
        if self._must_wait(group, pinned):
            self._waiting.append((group, items))
            self._behind.add(group.flow)
            return False
        self._await(self._runner.run(group, items, pinned, clock, time.monotonic_ns()), flow)
        return True

    def _must_wait(self, group: Group, pinned: Tables) -> bool:
        if group.flow in self._behind and self._runner.keeps_order(group):
            return True
        return not self._runner.is_ready(group, pinned)

    def _try_waiting(self) -> None:
        """Put what need not wait any more before the others of its flow; its turn comes as theirs does."""
        waiting, self._waiting = self._waiting, []
        self._behind.clear()
        back: list[tuple[Group, list[Item]]] = []
        with self._lookups.pinned() as pinned:
            for group, items in waiting:
                is_here = self._detours is None or self._detours.state(group.flow) is None
                if is_here and self._must_wait(group, pinned):
                    self._waiting.append((group, items))
                    self._behind.add(group.flow)
                else:
                    back.append((group, items))
        for group, items in reversed(back):
            flow = self._flow(group.flow)
            flow.put_back(group, items)
            self._queued += len(items)
            self._enqueue(flow)

    def _count(self, pipe: str, items: list[Item]) -> None:
        self._lane.usage.add(pipe, len(items), sum([len(item.original) for item in items]), 0)

    def _weight(self, tenant: str) -> float:
        record = self._lane.table.quota(tenant)
        own = record.process_weight if record is not None else None
        return (own or self._lane.settings.quotas.process_weight) / 100

    # -- the loop's questions --------------------------------------------------------------------------------------

    def acked(self, token: Any) -> None:
        """Note that a run's record is stored; the last one closes the run. Reports carry no token."""
        if token is None:
            return
        run: Run = token
        run.owed -= 1
        if not run.owed:
            run.close(self._lane.facts, self._lane.lags)
            if self._traces is not None:
                self._traces.end(run)
            self._lane.settle_all(run.partition, run.offsets)
            if run.flow is not None:
                run.flow.runs -= 1
                self._drop_if_idle(run.flow)

    def _drop_if_idle(self, flow: Flow) -> None:
        """Forget a flow of which nothing waits and nothing is under way; also one that its partition took along."""
        if not (flow.parts or flow.runs) and self._flows.get(flow.key) is flow:
            del self._flows[flow.key]

    def in_flight(self) -> int:
        """Nothing is under way but what the outbox holds: a message that waits is read again elsewhere."""
        return 0

    def backlog(self) -> int:
        """Messages that wait for their turn."""
        return self._queued

    def patience_s(self) -> float:
        """None while messages wait for their turn; short while reports are due, because lag_out is taken then."""
        if self._turns.tenants:
            return 0.0
        return BUSY_WAIT_S if self._lane.outbox.in_flight or self._queued else IDLE_WAIT_S

    def report(self) -> None:
        """Nothing beside the audit record."""

    def forget(self, partitions: Iterable[int]) -> None:
        """What waits will be read by the new owner."""
        gone = set(partitions)
        if self._detours is not None:
            self._detours.give_up(gone)
        self._admission.forget(gone)
        self._drop([flow for flow in self._flows.values() if flow.key[1] in gone])
        self._waiting = [(group, items) for group, items in self._waiting if group.partition not in gone]
        self._behind = {key for key in self._behind if key[1] not in gone}

    def give_back(self) -> None:
        """What waits stays uncommitted."""
        if self._detours is not None:
            self._detours.give_up()
        self._drop(list(self._flows.values()))
        self._waiting = []
        self._behind.clear()

    def _drop(self, flows: list[Flow]) -> None:
        for flow in flows:
            if flow.is_queued:
                self._turns.remove(flow.tenant, flow.key)
            self._queued -= flow.count
            del self._flows[flow.key]

    def close(self) -> None:
        """Let go of the look-up tables, and of the slow topic."""
        self._lookups.close()
        if self._detours is not None:
            self._detours.close()

    def _note(self, partition: int, prefix: int) -> str:
        """What is committed beside an offset: words of detours, then of admission."""
        words = self._detours.note(partition) if self._detours is not None else []
        room = NOTE_BYTES - sum(len(word) + 1 for word in words)
        return ",".join([*words, *self._admission.note(partition, prefix, room)])

    def _recall(self, partition: int, note: str) -> None:
        if self._detours is not None:
            self._detours.recall(partition, note, time.monotonic())
        self._admission.recall(partition, [word for word in note.split(",") if word and not word.startswith(WORD)])


def _runs_of(pipe: str, partition: int, items: list[Item], *, is_slow: bool) -> Iterable[tuple[Group, list[Item]]]:
    """Those that follow each other and may be run together."""
    for stretch in stretches(items):
        if not is_slow:
            yield _group_of(pipe, partition, stretch), stretch
            continue
        for origin, some in groupby(stretch, lambda item: place_of(item.meta.position).partition):
            yield _group_of(pipe, partition, stretch)._replace(origin=origin), list(some)


def _group_of(pipe: str, partition: int, items: list[Item]) -> Group:
    return Group(pipe, items[0].meta.revision, items[0].meta.bucket, partition, partition)
