"""Runs a plan over messages of one pipe, revision and minute: normalize, enrich, route, transform.

One egress record for each destination due; what fails is dead with its cause. Who runs when is not decided here.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from dataplane.ledger.breakdown import Slice
from dataplane.ledger.deadletter import Death
from dataplane.ledger.meta import META_HEADER, encode_meta
from dataplane.ledger.units import dense
from dataplane.names import ENTRANCE, INPUTS_OF, transform_node
from dataplane.plan import Plan, StageError
from dataplane.plan.about import about
from dataplane.plan.enrich import Enriching
from dataplane.plan.stage import INTERNAL_ERROR, Stage, Steps, decode, encode
from dataplane.process.budget import Budget
from dataplane.process.dedup import JUDGED, Asking
from dataplane.process.flows import Group
from dataplane.process.holding import Holding
from dataplane.process.item import UNREAD, Item, child_of, offset_of
from dataplane.process.lookups import Tables, TenantRows
from dataplane.process.plans import Plans
from dataplane.process.ramps import Ramps
from dataplane.process.run import Run
from dataplane.process.tail import Tail
from dataplane.process.tapping import Taps, parted
from dataplane.process.traces import Traces
from dataplane.record_limits import BODY_BYTES
from dataplane.runtime.clock import SteadyClock
from dataplane.runtime.deadletters import TOO_LARGE, DeadLetters
from dataplane.runtime.lane import Lane
from dataplane.runtime.outbox import ANY_PARTITION, TooLargeError
from dataplane.stages.steps import DROPPED

STAMP_EVERY: Final = 16  # messages
MOST_LOGGED: Final = 1_000  # internal errors by pipe, revision and place

log = logging.getLogger(__name__)


class Runner:
    """Runs plans. Records go to the lane's outbox under the run's token; `Run.close` is for whoever gets that back."""

    def __init__(self, lane: Lane, holding: Holding, ramps: Ramps, traces: Traces | None) -> None:
        self._lane, self._holding, self._ramps, self._traces = lane, holding, ramps, traces
        topics = lane.cell.topics
        self._egress = topics["egress"]
        self._letters = DeadLetters(lane.outbox, topics["dead"].name)
        (source,) = INPUTS_OF[lane.identity.kind]
        self._input = topics[source].name
        self._slow = topics["process-slow"].name if "process-slow" in topics else ""
        self._asking = Asking(lane.outbox, topics["dedup"].name if "dedup" in topics else "")
        self._taps = Taps(lane.outbox, topics["taps"].name if "taps" in topics else "")
        self._plans = Plans(lane.table, lane.settings.fernet_keys)
        self._tail = Tail(lane)
        self._logged: set[tuple[str, int, str]] = set()

    def plan(self, group: Group) -> Plan | None:
        """The plan of these messages; None while it is not known."""
        return self._plans.find(group.pipe, group.revision)

    def keeps_order(self, group: Group) -> bool:
        """True if messages of a key must stay in order; also while the plan is not known."""
        plan = self.plan(group)
        return plan is None or plan.keeps_order

    def is_ready(self, group: Group, pinned: Tables) -> bool:
        """True if nothing that the messages need is missing: their plan, its tables, the topics that it asks for."""
        plan = self.plan(group)
        if plan is None or self._lacks_topic(plan):
            return self._holding.holds(group.pipe)
        return self._holding.holds(group.pipe) or self._rows(group.pipe, plan, pinned) is not None

    def missing(self, pipe: str, revision: int, pinned: Tables) -> str:
        """Return what a revision of a pipe lacks on this host, in words for the pipe's owner; "" if it can run."""
        plan = self._plans.find(pipe, revision)
        if plan is None:
            return self._plans.missing(pipe, revision)
        record = self._lane.table.pipe(pipe)
        if table := TenantRows(pinned, record.tenant if record else "").unknown(plan.enrich.tables):
            return f"The look-up table {table!r} has not been loaded yet."
        return "Its cell is being upgraded for dedup or windows." if self._lacks_topic(plan) else ""

    def begun(self, group: Group, items: list[Item], clock: SteadyClock) -> Run:
        """A run of these messages."""
        positions = dense([item.meta.position for item in items])
        offsets = dense([item.message.offset() for item in items])
        run = Run(group.pipe, group.bucket, group.partition, offsets, positions, clock=clock)
        run.origin = group.origin
        run.note_producers(items)
        if self._traces is not None:
            self._traces.begin(run, items)
        return run

    def run(self, group: Group, items: list[Item], pinned: Tables, clock: SteadyClock, now_ns: int) -> Run:
        """Run messages that are ready (`is_ready`), or hold them if their pipe is held before its steps."""
        run = self.begun(group, items, clock)
        if self._holding.holds(group.pipe):
            self.hold(run, items)
            return run
        plan = self.plan(group)
        rows = self._rows(group.pipe, plan, pinned) if plan is not None else None
        if plan is None or rows is None:
            raise ValueError(f"{group} is not ready")
        run.budget = Budget() if plan.may_take_long else None
        run.items = items
        self._lane.fields.look(group.pipe, items, now_ns, masks=plan.masks)
        run.ramp = self._ramps.node(group.pipe, group.revision)
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
        return run

    def hold(self, run: Run, items: Sequence[Item]) -> None:
        """Hold messages before the steps, in this order; one that is too large for that is dead."""
        for item in self._holding.hold(run, items):
            self.bury(run, ENTRANCE, item, StageError(TOO_LARGE, "the message is too large to be held"))

    def divert(self, run: Run, items: Sequence[Item], partition: int) -> None:
        """Produce each item to the slow topic as it came, with its position; one too large for that is dead."""
        run.through = []
        run.owed += 1
        stopwatch = run.leave(Slice.PROCESS_QUEUE)
        shipment = self._lane.outbox.shipment(self._slow, run)
        for item in items:
            item.meta.stopwatch = run.leave_again(item, Slice.PROCESS_QUEUE) if item.back else stopwatch
            judged = [JUDGED] if item.judged else []
            headers = [(META_HEADER, encode_meta(item.meta)), *item.headers[1:], *judged]
            try:
                shipment.send(item.original, item.message.key(), partition, headers)
            except TooLargeError as exc:
                self.bury(run, ENTRANCE, item, StageError(TOO_LARGE, str(exc)))
            else:
                run.diverted(item.meta)
        shipment.close()

    def bury(self, run: Run, node: str, item: Item, why: StageError) -> None:
        """Dead-letter an item with its cause and the original: of a child the body as it was made."""
        self._lane.tally.add(f"dead: pipe={run.pipe} revision={item.meta.revision} node={node} cause={why}")
        if why.cause == INTERNAL_ERROR:
            self._log_once(run.pipe, item.meta.revision, why)
        run.dead(node, why.cause, item.meta)
        death = Death(node, why.cause, why.detail)
        original = (self._input, run.partition, offset_of(item))
        self._letters.send(run, death, meta=item.meta, headers=item.headers, value=item.original, original=original)
        run.owed += 1

    def _log_once(self, pipe: str, revision: int, why: StageError) -> None:
        """Log an internal error with its traceback, once for each place in a revision: a pipe may have many."""
        what = (pipe, revision, why.detail)
        if what not in self._logged and len(self._logged) < MOST_LOGGED:
            self._logged.add(what)
            log.error("pipe %s revision %d: %s", pipe, revision, why, exc_info=why.__cause__)

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
                if run.budget is not None:
                    run.budget.check()
                value = steps(decode(item.body or b"") if item.value is UNREAD else item.value, item.about)
                body = encode(value, steps.where) if last and value is not DROPPED else None
            except StageError as exc:
                self.bury(run, "normalize", item, exc)
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
                self.bury(run, "normalize", item, exc)
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
                if run.budget is not None:
                    run.budget.check()
                item.write(stage(item.read(), rows, item.about))
            except StageError as exc:
                self.bury(run, "enrich", item, exc)
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
                if run.budget is not None:
                    run.budget.check()
                names = plan.route(item.read(), item.about)
            except StageError as exc:
                self.bury(run, "route", item, exc)
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

    def _transform(
        self,
        run: Run,
        plan: Plan,
        destination: str,
        items: list[Item],
        times: Sequence[int],
    ) -> None:
        """Produce one egress record for each item; `times` are theirs. A hot loop.

        A message without a key must come to the same partition again, too: transmit remembers what it settled.
        Steps of a destination take time, so the stopwatch of those that leave is read again every few messages.
        """
        node, stage = transform_node(destination), plan.transform[destination]
        idle, where = stage.is_idle, stage.where
        keyless = run.origin % self._egress.partitions
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
                self.bury(run, node, item, exc)
            except TooLargeError as exc:
                self.bury(run, node, item, StageError(TOO_LARGE, str(exc)))
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
        if run.budget is not None:
            run.budget.check()
        stage = plan.transform[item.meta.destination]
        sole = plan.one_way or item.ways == 1
        value = stage.before(item.read() if sole else decode(item.written(stage.where)), item.about)
        if value is DROPPED:
            run.filtered(transform_node(item.meta.destination), "filter", item.meta)
            return None
        return encode(value, stage.where)


def _times(items: list[Item]) -> list[int]:
    return [item.meta.event_time_us for item in items]
