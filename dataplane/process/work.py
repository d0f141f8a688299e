"""The process lane's work: group by (pipe, revision), run the compiled plan stage by stage, produce egress and dead."""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Message

from dataplane.ledger.breakdown import Slice
from dataplane.ledger.deadletter import Death
from dataplane.ledger.meta import META_HEADER, Headers, Meta, encode_meta
from dataplane.ledger.units import dense, partition_base
from dataplane.names import ENTRANCE, transform_node
from dataplane.plan import Plan, StageError
from dataplane.plan.about import about
from dataplane.plan.enrich import Enriching
from dataplane.plan.stage import Stage, Steps, decode, encode
from dataplane.process.admission import Admission, stretches
from dataplane.process.dedup import Asking, verdict_of
from dataplane.process.dependencies import Dependencies
from dataplane.process.holding import Holding
from dataplane.process.item import UNREAD, Item, child_of, item_of, offset_of
from dataplane.process.lookups import Lookups, Tables, TenantRows
from dataplane.process.plans import Plans
from dataplane.process.ramps import Ramps
from dataplane.process.run import Run
from dataplane.process.tail import Tail
from dataplane.process.tapping import Taps, parted
from dataplane.process.traces import Traces
from dataplane.record_limits import BODY_BYTES
from dataplane.runtime.clock import SteadyClock
from dataplane.runtime.crashes import CRASHES_DETAIL, CRASHES_LANE
from dataplane.runtime.deadletters import TOO_LARGE, DeadLetters
from dataplane.runtime.lane import BUSY_WAIT_S, IDLE_WAIT_S, Lane
from dataplane.runtime.outbox import ANY_PARTITION, TooLargeError
from dataplane.stages.steps import DROPPED

STAMP_EVERY: Final = 16  # messages
_Group = tuple[str, int, int, int]  # pipe, revision, bucket, partition


class _Bases(dict[int, int]):
    """The position of offset 0 by partition."""

    def __init__(self, generation: int) -> None:
        super().__init__()
        self._generation = generation

    def __missing__(self, partition: int) -> int:
        base = self[partition] = partition_base(self._generation, partition)
        return base


class ProcessWork:
    """normalize, enrich, route, transform; one egress record for each destination due."""

    def __init__(self, lane: Lane, lookups: Lookups) -> None:
        """`lookups` are closed with the lane."""
        self._lane = lane
        self._lookups = lookups
        topics = lane.cell.topics
        self._egress = topics["egress"]
        self._letters = DeadLetters(lane.outbox, topics["dead"].name)
        self._asking = Asking(lane.outbox, topics["dedup"].name if "dedup" in topics else "")
        self._taps = Taps(lane.outbox, topics["taps"].name if "taps" in topics else "")
        self._ingest, self._generation = topics["ingest"].name, topics["ingest"].generation
        self._bases = _Bases(self._generation)
        self._plans = Plans(lane.table, lane.settings.fernet_keys)
        self._ramps = Ramps(lane.table, lane.facts)
        self._tail = Tail(lane)
        self._holding = Holding(lane)
        self._traces = None if lane.tracing is None else Traces(lane.tracing, topics["ingest"].name)
        self._admission = Admission(lane)
        self._dependencies = Dependencies(lane, self._admission, self._missing)
        self._waiting: list[tuple[_Group, list[Item]]] = []  # for a plan or a look-up table that is not here yet
        self._behind: set[tuple[str, int]] = set()  # the pipe and partition of each of these

    def take(self, messages: Sequence[Message]) -> None:
        """Run everything whose plan is known; a message that cannot be read is dead at once. A hot loop."""
        bases, groups = self._bases, defaultdict[_Group, list[Item]](list)
        watched, gated = self._admission.pipes, defaultdict[tuple[str, int], list[Item]](list)
        for message, meta, headers in self._lane.read_all(messages):
            partition = message.partition()
            if meta.position:  # put back by dedup or released from held, under the position that it had
                item = self._returned(message, meta, headers)
                if item is None:
                    continue
            else:
                meta.position = bases[partition] + message.offset()
                meta.stored_ms = message.timestamp()[1]
                item = item_of(meta, message, headers)
            if watched and meta.pipe in watched:
                gated[meta.pipe, partition].append(item)
            else:
                groups[meta.pipe, meta.revision, meta.bucket, partition].append(item)
        for (pipe, *_), items in groups.items():
            self._count(pipe, items)
        due = self._in_order(groups)
        for (pipe, partition), items in gated.items():
            self._count(pipe, items)
            passage = self._admission.let_in(pipe, partition, items)
            self._hold(pipe, partition, passage.hold)
            due += [(_group_of(pipe, partition, stretch), stretch) for stretch in stretches(passage.run)]
        for _, items in due:
            self._ramps.book(items)
        self._run_all(due)

    def _in_order(self, groups: Mapping[_Group, list[Item]]) -> list[tuple[_Group, list[Item]]]:
        """The groups one after the other. Where order is kept, what lies between those of another minute stays there.

        A minute is the sender's own, so it changes to and fro; elsewhere it costs less to run each one together.
        """
        if len(groups) == 1:
            return [*groups.items()]
        places: defaultdict[tuple[str, int], list[_Group]] = defaultdict(list)
        for group in groups:
            places[group[0], group[3]].append(group)
        due: list[tuple[_Group, list[Item]]] = []
        for (pipe, partition), ours in places.items():
            if len(ours) > 1 and self._keeps_order(ours):
                items = sorted((item for group in ours for item in groups[group]), key=offset_of)
                due += [(_group_of(pipe, partition, stretch), stretch) for stretch in stretches(items)]
            else:
                due += [(group, groups[group]) for group in ours]
        return due

    def _keeps_order(self, groups: Iterable[_Group]) -> bool:
        plans = [self._plans.find(pipe, revision) for pipe, revision, *_ in groups]
        return any(plan is None or plan.keeps_order for plan in plans)

    def _count(self, pipe: str, items: list[Item]) -> None:
        self._lane.usage.add(pipe, len(items), sum([len(item.original) for item in items]), 0)

    def _hold(self, pipe: str, partition: int, items: list[Item]) -> None:
        """Hold messages before the steps, in this order."""
        for stretch in stretches(items):
            self._hold_run(_group_of(pipe, partition, stretch), stretch, SteadyClock())

    def _hold_run(self, group: _Group, items: list[Item], clock: SteadyClock) -> None:
        run = self._begun(group, items, clock)
        too_large = self._holding.hold(run, items)
        for item in too_large:
            self._bury(run, ENTRANCE, item, StageError(TOO_LARGE, "the message is too large to be held"))
        self.acked(run)

    def _returned(self, message: Message, meta: Meta, headers: Headers) -> Item | None:
        """Return the item of a message that was released or judged by dedup; None for a repeat, which ends here."""
        first = verdict_of(headers)
        item = item_of(meta, message, headers if first is None else headers[:-1])
        if first:
            run = self._begun((meta.pipe, meta.revision, meta.bucket, message.partition()), [item], SteadyClock())
            run.through = []
            run.duplicate(first, meta)
            self.acked(run)
            return None
        item.judged, item.back, item.stopwatch = first is not None, True, meta.stopwatch
        return item

    def condemn(self, message: Message) -> None:
        """Dead-letter a message at the first stage, unread."""
        for _, meta, headers in self._lane.read_all([message]):
            meta.position = meta.position or self._bases[message.partition()] + message.offset()
            run = Run(
                meta.pipe, meta.bucket, message.partition(), [message.offset()], [meta.position], clock=SteadyClock()
            )
            run.through = []
            item = item_of(meta, message, headers)
            run.note_producers([item])
            self._ramps.book([item])
            self._bury(run, "normalize", item, StageError(CRASHES_LANE, CRASHES_DETAIL))
            self.acked(run)

    def turn(self) -> None:
        """Try again what waits for a plan; hold what was kept or has waited in vain."""
        for pipe, partition, items in self._admission.turn():
            self._hold(pipe, partition, items)
        now_s = time.monotonic()
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._behind.clear()
            self._run_all(waiting)
            self._hold_waiting(self._dependencies.overdue(self._waiting, now_s))
        self._dependencies.turn(now_s)
        self._lane.held_pipes = len(self._dependencies.held)

    def _hold_waiting(self, pipes: set[str]) -> None:
        """Hold what waits of these pipes, each partition in its order, so that nobody else waits behind it."""
        if not pipes:
            return
        found: defaultdict[tuple[str, int], list[Item]] = defaultdict(list)
        for (pipe, _, _, partition), items in self._waiting:
            if pipe in pipes:
                found[pipe, partition] += items
        self._waiting = [(group, items) for group, items in self._waiting if group[0] not in pipes]
        self._behind = {place for place in self._behind if place[0] not in pipes}
        for (pipe, partition), items in found.items():
            ordered = sorted(items, key=offset_of)
            self._hold(pipe, partition, self._admission.hold_back(pipe, partition, ordered))

    def _run_all(self, groups: Iterable[tuple[_Group, list[Item]]]) -> None:
        with self._lookups.pinned() as pinned:
            began_ns, clock = time.monotonic_ns(), SteadyClock()
            for group, items in groups:
                self._run(group, items, pinned, clock, began_ns)
                ended_ns = time.monotonic_ns()
                self._lane.usage.add(group[0], 0, 0, ended_ns - began_ns)  # it waits for nobody: CPU, or nearly so
                began_ns = ended_ns

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
        self._admission.forget(gone)
        self._waiting = [(group, items) for group, items in self._waiting if group[3] not in gone]
        self._behind = {place for place in self._behind if place[1] not in gone}

    def give_back(self) -> None:
        """What waits for a plan stays uncommitted."""
        self._waiting = []
        self._behind.clear()

    def close(self) -> None:
        """Let go of the look-up tables."""
        self._lookups.close()

    def _run(self, group: _Group, items: list[Item], pinned: Tables, clock: SteadyClock, now_ns: int) -> None:
        pipe, revision, _, partition = group
        plan = self._plans.find(pipe, revision)
        if (pipe, partition) in self._behind and (plan is None or plan.keeps_order):
            self._waiting.append((group, items))
            return
        if self._holding.holds(pipe):
            self._hold_run(group, items, clock)
            return
        rows = self._rows(pipe, plan, pinned) if plan is not None else None
        if plan is None or rows is None or self._lacks_topic(plan):
            self._waiting.append((group, items))
            self._behind.add((pipe, partition))
            return
        run = self._begun(group, items, clock)
        run.items = items
        self._lane.fields.look(pipe, items, now_ns, masks=plan.masks)
        run.ramp = self._ramps.node(pipe, revision)
        results: list[Item] = []  # of windows: they go on from the route
        if plan.windows:
            items, results = parted(items)
        if plan.dedup is not None:
            items = self._asking.ask(run, plan.dedup, items)
        if plan.needs_about:
            for item in (*items, *results):
                item.about = about(item.meta)
        run.stages_begin()
        alive = self._normalize(run, plan, items)
        times = _times(alive)
        run.stage_over("normalize", self._lane.lags, times)
        if not plan.enrich.is_idle:
            alive = self._enrich(run, plan.enrich, rows, alive)
            times = _times(alive)
        if plan.windows:
            self._taps.tap(run, plan.windows, alive)
            alive = [*alive, *results]
            times = _times(alive)
        for destination, due in self._route(run, plan, alive).items():
            self._transform(run, plan, destination, due, times if due is alive else _times(due))
        run.items = []  # bodies are not held until the reports come
        self._holding.note(run, len(items) + len(results))
        self.acked(run)

    def _begun(self, group: _Group, items: list[Item], clock: SteadyClock) -> Run:
        pipe, _, bucket, partition = group
        positions = dense([item.meta.position for item in items])
        run = Run(pipe, bucket, partition, dense([item.message.offset() for item in items]), positions, clock=clock)
        run.note_producers(items)
        if self._traces is not None:
            self._traces.begin(run, items)
        return run

    def _missing(self, pipe: str, revision: int) -> str:
        """Return what a revision of a pipe lacks on this host, in words for the pipe's owner; "" if it can run."""
        plan = self._plans.find(pipe, revision)
        if plan is None:
            return self._plans.missing(pipe, revision)
        record = self._lane.table.pipe(pipe)
        with self._lookups.pinned() as pinned:
            table = TenantRows(pinned, record.tenant if record else "").unknown(plan.enrich.tables)
        if table:
            return f"The look-up table {table!r} has not been loaded yet."
        return "Its cell is being upgraded for dedup or windows." if self._lacks_topic(plan) else ""

    def _lacks_topic(self, plan: Plan) -> bool:
        """Whether the cell, made by an earlier release, has no topic yet for what the plan asks."""
        return bool((plan.dedup and not self._asking.topic) or (plan.windows and not self._taps.topic))

    def _normalize(self, run: Run, plan: Plan, items: list[Item]) -> list[Item]:
        stage = plan.normalize
        if not stage.explodes:
            return self._edit(run, stage.before, items, last=plan.edits_once)
        children = self._explode(run, stage, self._edit(run, stage.before, items))
        return self._edit(run, stage.after, children, last=plan.edits_once)

    def _edit(self, run: Run, steps: Steps, items: list[Item], *, last: bool = False) -> list[Item]:
        """The items that come out, the list itself if these are all; those dead or filtered are noted. A hot loop.

        `last`: nobody reads the body after these steps. It is written at once, while it is in the CPU's first cache.
        """
        if steps.is_idle:
            return items
        alive = []
        for item in items:
            try:
                value = steps(decode(item.body or b"") if item.value is UNREAD else item.value, item.about)
                body = encode(value, steps.where) if last and value is not DROPPED else None
            except StageError as exc:
                self._bury(run, "normalize", item, exc)
                continue
            if value is DROPPED:
                run.filtered("normalize", "filter", item.meta)
            else:
                item.value, item.body = value if body is None else UNREAD, body
                alive.append(item)
        if steps.peeks:
            self._tail.show("normalize", items)
        return items if len(alive) == len(items) else alive

    def _explode(self, run: Run, stage: Stage, items: list[Item]) -> list[Item]:
        children: list[Item] = []
        for item in items:
            try:
                bodies = stage.explode(item.read())
            except StageError as exc:
                self._bury(run, "normalize", item, exc)
                continue
            if not bodies:
                run.filtered("normalize", "empty", item.meta)
            children += [child_of(item, number, body) for number, body in enumerate(bodies)]
        run.exploded(child.meta for child in children)
        return children

    def _rows(self, pipe: str, plan: Plan, pinned: Tables) -> TenantRows | None:
        """The tables of the pipe's tenant; None while one that the plan needs has not come to this host yet."""
        record = self._lane.table.pipe(pipe)
        rows = TenantRows(pinned, record.tenant if record else "")
        return None if rows.unknown(plan.enrich.tables) else rows

    def _enrich(self, run: Run, stage: Enriching, rows: TenantRows, items: list[Item]) -> list[Item]:
        """Return the items with their rows; note those that die."""
        alive = []
        for item in items:
            try:
                item.write(stage(item.read(), rows, item.about))
            except StageError as exc:
                self._bury(run, "enrich", item, exc)
            else:
                alive.append(item)
        run.stage_over("enrich", self._lane.lags, _times(alive))
        return alive

    def _route(self, run: Run, plan: Plan, items: list[Item]) -> Mapping[str, list[Item]]:
        """Return the items due at each destination; without routes all of them at every one."""
        if plan.route is None:
            if items is not run.items:
                run.passed(items)
            return dict.fromkeys(plan.destinations, items)
        routed: dict[str, list[Item]] = {}
        alive = []
        for item in items:
            try:
                names = plan.route(item.read(), item.about)
            except StageError as exc:
                self._bury(run, "route", item, exc)
                continue
            if not names:
                run.filtered("route", "unrouted", item.meta)
                continue
            item.ways = len(names)
            alive.append(item)
            for name in names:
                routed.setdefault(name, []).append(item)
        run.passed(alive)
        run.stage_over("route", self._lane.lags, _times(alive))
        return routed

    def _transform(self, run: Run, plan: Plan, destination: str, items: list[Item], times: Sequence[int]) -> None:
        """Produce one egress record for each item; `times` are theirs. A hot loop.

        A message without a key must come to the same partition again, too: transmit remembers what it settled.
        Steps of a destination take time, so the stopwatch of those that leave is read again every few messages.
        """
        node, stage = transform_node(destination), plan.transform[destination]
        idle, where = stage.is_idle, stage.where
        keyless = run.partition % self._egress.partitions
        departed: list[Item] = []
        prefix = f"{destination}\0".encode()
        arrived_us, stopwatch = run.transform_begins(node), run.leave(Slice.TRANSMIT_QUEUE)
        run.owed += 1
        shipment = self._lane.outbox.shipment(self._egress.name, run)
        for item in items:
            meta, headers, key = item.meta, item.headers, item.message.key()
            meta.destination = destination
            try:
                body = (item.body or item.written(where)) if idle else self._transformed(run, plan, item)
                if body is None:
                    continue  # filtered
                if len(body) > BODY_BYTES:
                    raise TooLargeError(f"needs at most {BODY_BYTES} bytes after the steps, has {len(body)}")
                if not idle and not len(departed) % STAMP_EVERY:
                    stopwatch = run.leave(Slice.TRANSMIT_QUEUE)
                meta.stopwatch = run.leave_again(item, Slice.TRANSMIT_QUEUE) if item.back else stopwatch
                headers[0] = (META_HEADER, encode_meta(meta))
                if key is None:
                    shipment.send(body, None, keyless, headers)
                else:
                    shipment.send(body, prefix + key, ANY_PARTITION, headers)
            except StageError as exc:
                self._bury(run, node, item, exc)
            except TooLargeError as exc:
                self._bury(run, node, item, StageError(TOO_LARGE, str(exc)))
            else:
                departed.append(item)
        shipment.close()
        if stage.before.peeks:
            self._tail.show(node, items)
        if len(departed) == len(items):
            run.departed(destination, items, times, arrived_us)
        else:
            run.departed(destination, departed, _times(departed), arrived_us)

    def _transformed(self, run: Run, plan: Plan, item: Item) -> bytes | None:
        """The body for one destination, None if its steps filter it. Raises StageError.

        Only the sole destination may change what was decoded; of several each decodes its own.
        """
        stage = plan.transform[item.meta.destination]
        sole = plan.one_way or item.ways == 1
        value = stage.before(item.read() if sole else decode(item.written(stage.where)), item.about)
        if value is DROPPED:
            run.filtered(transform_node(item.meta.destination), "filter", item.meta)
            return None
        return encode(value, stage.where)

    def _bury(self, run: Run, node: str, item: Item, why: StageError) -> None:
        """Dead-letter an item with its cause and the original: of a child the body as it was made."""
        self._lane.tally.add(f"dead: pipe={run.pipe} revision={item.meta.revision} node={node} cause={why}")
        run.dead(node, why.cause, item.meta)
        death = Death(node, why.cause, why.detail)
        original = (self._ingest, run.partition, offset_of(item))
        self._letters.send(run, death, meta=item.meta, headers=item.headers, value=item.original, original=original)
        run.owed += 1


def _group_of(pipe: str, partition: int, items: list[Item]) -> _Group:
    return pipe, items[0].meta.revision, items[0].meta.bucket, partition


def _times(items: list[Item]) -> list[int]:
    return [item.meta.event_time_us for item in items]
