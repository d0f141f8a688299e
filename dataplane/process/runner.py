"""Runs a plan over messages of one pipe, revision and minute: normalize, enrich, route, transform.

It produces one egress record per destination; a message that fails is dead-lettered with its cause. The schedule of
the runs is in work.py.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from dataplane.causes import Cause
from dataplane.ledger.breakdown import Slice
from dataplane.ledger.deadletter import DeadLetterReason
from dataplane.ledger.meta import META_HEADER, encode_meta, without_original
from dataplane.ledger.units import dense
from dataplane.names import ENTRANCE, transform_node
from dataplane.plan import CompiledPlan, StageError
from dataplane.plan.about import about
from dataplane.plan.enrich import CompiledEnrich
from dataplane.plan.stage import CompiledStage, CompiledSteps, decode, encode
from dataplane.process.budget import PassBudget
from dataplane.process.dedup import JUDGED, DedupRequests
from dataplane.process.flows import FlowGroup
from dataplane.process.holding import HoldPolicy
from dataplane.process.item import UNREAD, ProcessItem, child_of, offset_of
from dataplane.process.misfits import MisfitCheck
from dataplane.process.plans import PlanCache
from dataplane.process.ramps import RampBooks
from dataplane.process.run import MessageRun
from dataplane.process.sequence import SequenceTaps
from dataplane.process.tail import TailWriter
from dataplane.process.taps import TapWriter, split_taps
from dataplane.process.traces import ProcessTracing
from dataplane.record_limits import BODY_BYTES
from dataplane.runtime.clock import SteadyClock
from dataplane.runtime.lanes.context import LaneContext
from dataplane.runtime.lanes.deadletters import DeadLetterWriter
from dataplane.runtime.lookups import LookupTables, TenantRows
from dataplane.runtime.producers.tracked_producer import ANY_PARTITION, RecordTooLargeError
from dataplane.stages.steps import DROPPED

STAMP_EVERY: Final = 16  # messages
MOST_LOGGED: Final = 1_000  # internal errors by pipe, revision and place

log = logging.getLogger(__name__)


class Diversion(NamedTuple):
    """Topic partition that messages are diverted to. `fact`: detail of their `sent` fact, SLOW or BULK."""

    topic: str
    partition: int
    fact: str


class Runner:
    """Executor of plans. It produces records with the run as their token; the receiver of the tokens closes the run."""

    def __init__(self, lane: LaneContext, holding: HoldPolicy, ramps: RampBooks, traces: ProcessTracing | None) -> None:
        self._lane, self._holding, self._ramps, self._traces = lane, holding, ramps, traces
        topics = lane.cell.topics
        self._egress = topics["egress"]
        self._letters = DeadLetterWriter(lane.producer, topics["dead"].name)
        (self._input,) = lane.slots.topics
        self.bulk = topics.get("bulk")
        self._asking = DedupRequests(lane.producer, topics["dedup"].name if "dedup" in topics else "")
        self._taps = TapWriter(lane.producer, topics.get("taps"))
        self._sequence = SequenceTaps(lane.producer, topics["sequence"].name if "sequence" in topics else "")
        self._plans = PlanCache(lane.table, lane.settings.fernet_keys)
        self._tail = TailWriter(lane)
        self._misfits = MisfitCheck(lane.table, lane.settings.max_event_bytes)
        self._logged: set[tuple[str, int, str]] = set()

    def plan(self, group: FlowGroup) -> CompiledPlan | None:
        """Return the plan of these messages; None while it is not known."""
        return self._plans.find(group.pipe, group.revision)

    def keeps_order(self, group: FlowGroup) -> bool:
        """Return True if messages of a key must stay in order, or while the plan is not known."""
        plan = self.plan(group)
        return plan is None or plan.keeps_order

    def is_ready(self, group: FlowGroup, pinned: LookupTables) -> bool:
        """Return True if the pipe is held, or if the plan of the messages, its tables and its topics are there."""
        plan = self.plan(group)
        if plan is None or self._lacks_topic(plan):
            return self._holds(group)
        return self._holds(group) or self._rows(group.pipe, plan, pinned) is not None

    def missing(self, pipe: str, revision: int, pinned: LookupTables) -> str:
        """Return the missing dependency of a pipe's revision on this host, as text for the owner; "" if it can run."""
        plan = self._plans.find(pipe, revision)
        if plan is None:
            return self._plans.missing(pipe, revision)
        record = self._lane.table.pipe(pipe)
        if table := TenantRows(pinned, record.tenant if record else "").unknown(plan.enrich.tables):
            return f"The look-up table {table!r} has not been loaded yet."
        return (
            "Its cell is being upgraded for dedup, windows, sequences or bulk execution."
            if self._lacks_topic(plan)
            else ""
        )

    def begun(self, group: FlowGroup, items: list[ProcessItem], clock: SteadyClock) -> MessageRun:
        """Return a new run of these messages."""
        positions = dense([item.meta.position for item in items])
        offsets = dense([item.message.offset() for item in items])
        run = MessageRun(group.pipe, group.bucket, group.partition, offsets, positions, clock=clock)
        run.origin = group.origin
        run.note_producers(items)
        if self._traces is not None:
            self._traces.begin(run, items)
        return run

    def run(
        self, group: FlowGroup, items: list[ProcessItem], pinned: LookupTables, clock: SteadyClock, now_ns: int
    ) -> MessageRun:
        """Run messages, or hold them if their pipe is held. Raises ValueError if they are not ready (`is_ready`)."""
        run = self.begun(group, items, clock)
        if self._holds(group):
            self.hold(run, items)
            return run
        plan = self.plan(group)
        rows = self._rows(group.pipe, plan, pinned) if plan is not None else None
        if plan is None or rows is None:
            raise ValueError(f"{group} is not ready")
        run.budget = PassBudget() if plan.may_take_long else None
        run.items, count = items, len(items)
        self._lane.fields.observe(group.pipe, items, now_ns, masks=plan.masks)
        run.ramp = self._ramps.node(group.pipe, group.revision)
        self._tap_sequence(run, items, plan)  # as they arrived, misfits included
        if any(item.meta.misfit for item in items):
            items = self._without_misfits(run, items, clock.now_us())
        results: list[ProcessItem] = []  # of windows: they continue from the route
        if plan.windows:
            items, results = split_taps(items)
        if plan.dedup is not None:
            items = self._asking.ask(run, plan.dedup, items)
        if plan.needs_about:
            for item in (*items, *results):
                item.about = about(item.meta)
        run.stages_begin()
        remaining = self._normalize(run, plan, items)
        times = _times(remaining)
        run.stage_over("normalize", self._lane.lags, times)
        if not plan.enrich.is_idle:
            remaining = self._enrich(run, plan.enrich, rows, remaining)
            times = _times(remaining)
        if plan.windows:
            self._taps.tap(run, plan.windows, remaining)
            remaining = [*remaining, *results]
            times = _times(remaining)
        for destination, due in self._route(run, plan, remaining).items():
            self._transform(run, plan, destination, due, times if due is remaining else _times(due))
        run.items = []  # do not keep the bodies until the delivery reports
        self._holding.note(run, count)
        return run

    def _without_misfits(self, run: MessageRun, items: list[ProcessItem], now_us: int) -> list[ProcessItem]:
        """Return the items that fit the event types of their source; dead-letter the others."""
        remaining = []
        for item in items:
            try:
                if item.meta.misfit:
                    self._misfits.admit(item, now_us)
            except StageError as exc:
                self.dead_letter(run, "normalize", item, exc)
            else:
                remaining.append(item)
        return remaining

    def _holds(self, group: FlowGroup) -> bool:
        return not group.through and self._holding.holds(group.pipe)

    def hold(self, run: MessageRun, items: Sequence[ProcessItem]) -> None:
        """Hold messages before the steps, in this order; dead-letter one that is too large for that."""
        self._tap_sequence(run, items, self._plans.find(run.pipe, items[0].meta.revision))
        for item in self._holding.hold(run, items):
            self.dead_letter(run, ENTRANCE, item, StageError(Cause.TOO_LARGE, "the message is too large to be held"))

    def divert(self, run: MessageRun, items: Sequence[ProcessItem], to: Diversion) -> None:
        """Produce each item to another topic unchanged, with its position; dead-letter one that is too large."""
        self._tap_sequence(run, items, self._plans.find(run.pipe, items[0].meta.revision))
        run.through = []
        run.owed += 1
        stopwatch = run.leave(Slice.PROCESS_QUEUE)
        produce_group = self._lane.producer.begin_group(to.topic, run)
        for item in items:
            item.meta.stopwatch = run.leave_again(item, Slice.PROCESS_QUEUE) if item.back else stopwatch
            judged = [JUDGED] if item.judged else []
            headers = [(META_HEADER, encode_meta(item.meta)), *item.headers[1:], *judged]
            try:
                produce_group.send(item.original, item.message.key(), to.partition, headers)
            except RecordTooLargeError as exc:
                self.dead_letter(run, ENTRANCE, item, StageError(Cause.TOO_LARGE, str(exc)))
            else:
                run.diverted(item.meta, to.fact)
        produce_group.close()

    def _tap_sequence(self, run: MessageRun, items: Sequence[ProcessItem], plan: CompiledPlan | None) -> None:
        """Send the numbers of sources with a sequence, before something holds the events up.

        A number that is sent again, when its event is run after all, is recognised by its position.
        """
        if plan is not None and plan.sequences and self._sequence.topic:
            self._sequence.tap(run, plan.sequences, items)

    def dead_letter(self, run: MessageRun, node: str, item: ProcessItem, why: StageError) -> None:
        """Dead-letter an item with its cause and the original body (of a child, as it was made)."""
        self._lane.tally.add(f"dead: pipe={run.pipe} revision={item.meta.revision} node={node} cause={why}")
        if why.cause is Cause.INTERNAL_ERROR:
            self._log_once(run.pipe, item.meta.revision, why)
        run.dead(node, why.cause, item.meta)
        why_dead = DeadLetterReason(node, why.cause, why.detail, part=item.part)
        original = (self._input, run.partition, offset_of(item))
        self._letters.send(run, why_dead, meta=item.meta, headers=item.headers, value=item.original, original=original)
        run.owed += 1

    def _log_once(self, pipe: str, revision: int, why: StageError) -> None:
        """Log an internal error with its traceback, once per place in a revision, because a pipe may have many."""
        key = (pipe, revision, why.detail)
        if key not in self._logged and len(self._logged) < MOST_LOGGED:
            self._logged.add(key)
            log.error("pipe %s revision %d: %s", pipe, revision, why, exc_info=why.__cause__)

    def _lacks_topic(self, plan: CompiledPlan) -> bool:
        """Return True if the cell, made by an earlier release, does not have a topic yet that the plan needs."""
        return bool(
            (plan.dedup and not self._asking.topic)
            or (plan.windows and self._taps.topic is None)
            or (plan.sequences and not self._sequence.topic)
            or (plan.is_bulk and self.bulk is None)
        )

    def _normalize(self, run: MessageRun, plan: CompiledPlan, items: list[ProcessItem]) -> list[ProcessItem]:
        stage = plan.normalize
        if not stage.explodes:
            return self._edit(run, stage.before, items, last=plan.edits_once)
        children = self._explode(run, stage, self._edit(run, stage.before, items))
        return self._edit(run, stage.after, children, last=plan.edits_once)

    def _edit(
        self, run: MessageRun, steps: CompiledSteps, items: list[ProcessItem], *, last: bool = False
    ) -> list[ProcessItem]:
        """Return the items that pass, the same list if all do; dead-letter or note the others. A hot loop.

        last: nothing reads the body after these steps, so it is encoded at once, while it is in the CPU's first cache
        """
        if steps.is_idle:
            return items
        remaining, keeps_body = [], steps.keeps_body
        for item in items:
            try:
                if run.budget is not None:
                    run.budget.check()
                value = steps(decode(item.body or b"") if item.value is UNREAD else item.value, item.about)
                is_encoded = last and not keeps_body and value is not DROPPED
                body = encode(value, steps.where) if is_encoded else None
            except StageError as exc:
                self.dead_letter(run, "normalize", item, exc)
                continue
            if value is DROPPED:
                run.filtered("normalize", "filter", item.meta)
            else:
                if keeps_body:
                    item.value = value
                else:
                    item.value, item.body = value if body is None else UNREAD, body
                remaining.append(item)
        if steps.peeks:
            self._tail.show("normalize", items)
        return remaining

    def _explode(self, run: MessageRun, stage: CompiledStage, items: list[ProcessItem]) -> list[ProcessItem]:
        children: list[ProcessItem] = []
        for item in items:
            try:
                bodies = stage.explode(item.read())
            except StageError as exc:
                self.dead_letter(run, "normalize", item, exc)
                continue
            if not bodies:
                run.filtered("normalize", "empty", item.meta)
            children += [child_of(item, number, body) for number, body in enumerate(bodies)]
        run.exploded(child.meta for child in children)
        return children

    def _rows(self, pipe: str, plan: CompiledPlan, pinned: LookupTables) -> TenantRows | None:
        """Return the tables of the pipe's tenant; None while this host lacks one that the plan needs."""
        record = self._lane.table.pipe(pipe)
        rows = TenantRows(pinned, record.tenant if record else "")
        return None if rows.unknown(plan.enrich.tables) else rows

    def _enrich(
        self, run: MessageRun, stage: CompiledEnrich, rows: TenantRows, items: list[ProcessItem]
    ) -> list[ProcessItem]:
        """Return the items with their rows; dead-letter those that fail."""
        remaining = []
        for item in items:
            try:
                if run.budget is not None:
                    run.budget.check()
                item.write(stage(item.read(), rows, item.about))
            except StageError as exc:
                self.dead_letter(run, "enrich", item, exc)
            else:
                remaining.append(item)
        run.stage_over("enrich", self._lane.lags, _times(remaining))
        return remaining

    def _route(self, run: MessageRun, plan: CompiledPlan, items: list[ProcessItem]) -> Mapping[str, list[ProcessItem]]:
        """Return the items of each destination; without routes each destination gets all of them."""
        if plan.route is None:
            if items is not run.items:
                run.passed(items)
            return dict.fromkeys(plan.destinations, items)
        routed: dict[str, list[ProcessItem]] = {}
        remaining = []
        for item in items:
            try:
                if run.budget is not None:
                    run.budget.check()
                names = plan.route(item.read(), item.about)
            except StageError as exc:
                self.dead_letter(run, "route", item, exc)
                continue
            if not names:
                run.filtered("route", "unrouted", item.meta)
                continue
            item.ways = len(names)
            remaining.append(item)
            for name in names:
                routed.setdefault(name, []).append(item)
        run.passed(remaining)
        run.stage_over("route", self._lane.lags, _times(remaining))
        return routed

    def _transform(
        self,
        run: MessageRun,
        plan: CompiledPlan,
        destination: str,
        items: list[ProcessItem],
        times: Sequence[int],
    ) -> None:
        """Produce one egress record for each item; `times` are their event times. A hot loop.

        A message without a key, or whose key is spread, also needs the same partition every time: transmit remembers
        the units that it settled.
        Steps of a destination take time, so the stopwatch of departing messages is refreshed every STAMP_EVERY.
        """
        node, stage = transform_node(destination), plan.transform[destination]
        idle, where = stage.is_idle, stage.where
        sends_original = destination in plan.originals
        keyless = run.origin % self._egress.partitions
        spread = plan.spread
        departed: list[ProcessItem] = []
        prefix = f"{destination}\0".encode()
        arrived_us, stopwatch = run.transform_begins(node), run.leave(Slice.TRANSMIT_QUEUE)
        run.owed += 1
        produce_group = self._lane.producer.begin_group(self._egress.name, run)
        for item in items:
            meta, headers, key = item.meta, item.headers, item.message.key()
            meta.destination = destination
            try:
                body = (item.body or item.written(where)) if idle else self._transformed(run, plan, item)
                if body is None:
                    continue  # filtered
                if len(body) > BODY_BYTES:
                    raise RecordTooLargeError(f"needs at most {BODY_BYTES} bytes after the steps, has {len(body)}")
                if not idle and not len(departed) % STAMP_EVERY:
                    stopwatch = run.leave(Slice.TRANSMIT_QUEUE)
                meta.stopwatch = run.leave_again(item, Slice.TRANSMIT_QUEUE) if item.back else stopwatch
                carried = meta if sends_original or meta.original is None else without_original(meta)
                headers[0] = (META_HEADER, encode_meta(carried))
                if key is None:
                    produce_group.send(body, None, keyless, headers)
                else:
                    partition = keyless if spread and meta.source in spread else ANY_PARTITION
                    produce_group.send(body, prefix + key, partition, headers)
            except StageError as exc:
                self.dead_letter(run, node, item, exc)
            except RecordTooLargeError as exc:
                self.dead_letter(run, node, item, StageError(Cause.TOO_LARGE, str(exc)))
            else:
                departed.append(item)
        produce_group.close()
        if stage.before.peeks:
            self._tail.show(node, items)
        if len(departed) == len(items):
            run.departed(destination, items, times, arrived_us)
        else:
            run.departed(destination, departed, _times(departed), arrived_us)

    def _transformed(self, run: MessageRun, plan: CompiledPlan, item: ProcessItem) -> bytes | None:
        """Return the body for one destination, None if its steps filter it. Raises StageError.

        A sole destination may change the decoded body; with several, each decodes its own copy.
        """
        if run.budget is not None:
            run.budget.check()
        stage = plan.transform[item.meta.destination]
        if stage.before.keeps_body:
            return self._unchanged(run, stage, item)
        sole = plan.has_one_destination or item.ways == 1
        value = stage.before(item.read() if sole else decode(item.written(stage.where)), item.about)
        if value is DROPPED:
            run.filtered(transform_node(item.meta.destination), "filter", item.meta)
            return None
        return encode(value, stage.where)

    def _unchanged(self, run: MessageRun, stage: CompiledStage, item: ProcessItem) -> bytes | None:
        """Return the body as it is, None if the steps filter it. Raises StageError."""
        if stage.before(item.read(), item.about) is not DROPPED:
            return item.written(stage.where)
        run.filtered(transform_node(item.meta.destination), "filter", item.meta)
        return None


def _times(items: list[ProcessItem]) -> list[int]:
    return [item.meta.event_time_us for item in items]
