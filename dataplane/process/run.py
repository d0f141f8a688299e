"""A run: messages of one (pipe, revision, bucket, partition) that pass the stages together and settle together."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from dataplane.ledger.breakdown import Slice
from dataplane.ledger.facts import (
    ASKED,
    DEDUP,
    EXPLODED,
    INGEST,
    LATE,
    PROCESS,
    SEEN,
    Fact,
    FactBook,
    FactKey,
    dead_detail,
    log_key,
)
from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.units import dense
from dataplane.names import ENTRANCE, transform_node
from dataplane.process.budget import PassBudget
from dataplane.process.flows import PipeFlow
from dataplane.process.item import ProcessItem
from dataplane.process.stages import StageTimes
from dataplane.process.traced import TracedMark, TracedRun
from dataplane.runtime.clock import SteadyClock
from dataplane.runtime.telemetry.lags import LagBook

_SEEN: Final = FactKey(INGEST, Fact.SENT, SEEN)
_ASKED: Final = FactKey(DEDUP, Fact.SENT, ASKED)
_THROUGH: Final = FactKey(PROCESS, Fact.SENT)
_SLICES: Final = {"normalize": Slice.NORMALIZE, "enrich": Slice.ENRICH, "route": Slice.ROUTE}


class MessageRun:
    """Facts and timing of a run, reported once all its records are stored.

    owed:    number of delivery tokens that are still due
    offsets: offsets to settle then
    seen:    positions of the messages
    items:   the messages as they were read, while they pass the stages
    through: positions of the units (child 0) that passed every stage up to the route
    died:    positions of the messages with a dead-lettered unit
    why:     node and cause of the last of these
    ramp:    the additional node of its facts while its pipe ramps, else ""
    traced:  the spans of its messages that are traced, if any are
    origin:  the partition in which ingest stored them; differs from `partition` in the slow lane
    flow:    the flow of the run, if the flow counts its runs
    budget:  the remaining CPU of its message, if that is limited
    """

    def __init__(
        self, pipe: str, bucket: int, partition: int, offsets: Sequence[int], seen: Sequence[int], *, clock: SteadyClock
    ) -> None:
        self.pipe = pipe
        self.bucket = bucket
        self.partition = partition
        self.origin = partition
        self.flow: PipeFlow | None = None
        self.budget: PassBudget | None = None
        self.offsets = offsets
        self.seen = seen
        self.through = seen
        self.items: list[ProcessItem] = []
        self.died: set[int] = set()
        self.why = ""
        self.ramp = ""
        self.traced: TracedRun | None = None
        self.owed = 1  # kept open until all records have been passed to the producer
        self._clock = clock
        self._stages = StageTimes(clock.now_us())
        self._left: list[tuple[str, int, Sequence[int]]] = []  # node, arrival, (event) times
        self._units: dict[FactKey, list[Sequence[int]]] = defaultdict(list)
        self._read: dict[int, Sequence[int]] = {}  # the same positions as `seen`, by the producer of the records

    def note_producers(self, items: Sequence[ProcessItem]) -> None:
        """Note which producers of ingest stored the messages (Meta.producer). A hot path."""
        producers = {item.meta.producer for item in items}
        if len(producers) == 1:
            self._read = dict.fromkeys(producers, self.seen)
        else:
            self._read = {one: [i.meta.position for i in items if i.meta.producer == one] for one in producers}

    @property
    def units(self) -> Mapping[FactKey, Sequence[Sequence[int]]]:
        """Outcomes of the units, except those in `through`: positions by the fact to report."""
        return self._units

    def dead(self, node: str, cause: str, meta: MessageMeta) -> None:
        """Note that a unit is dead-lettered at `node`."""
        self.died.add(meta.position)
        self.why = f"{node}: {cause}"
        self._add(FactKey(node, Fact.DEAD, dead_detail(cause, meta.life), meta.child), meta)

    def held(self, meta: MessageMeta) -> None:
        """Note that a message is held before the steps, in the round of its meta."""
        self._add(FactKey(ENTRANCE, Fact.HELD, str(meta.attempt)), meta)

    def diverted(self, meta: MessageMeta, to: str) -> None:
        """Note that a message is sent to the slow lane or the bulk query, before the steps; `to`: SLOW or BULK."""
        self._add(FactKey(ENTRANCE, Fact.SENT, to), meta)

    def filtered(self, node: str, why: str, meta: MessageMeta) -> None:
        """Note that the tenant's own rule ends a unit at `node`."""
        self._add(FactKey(node, Fact.FILTERED, why, meta.child), meta)

    def asked(self, meta: MessageMeta) -> None:
        """Note that a unit is sent to dedup."""
        self._add(_ASKED, meta)

    def late(self, node: str, meta: MessageMeta) -> None:
        """Note that a unit is too late for a window. It continues in the pipe."""
        self._add(FactKey(node, Fact.SENT, LATE, meta.child), meta)

    def duplicate(self, first: str, meta: MessageMeta) -> None:
        """Note that a unit ends at dedup: it repeats the message at the position `first`."""
        self._add(FactKey(DEDUP, Fact.DUPLICATE, first), meta)

    def exploded(self, children: Iterable[MessageMeta]) -> None:
        """Note the units that an explode made; child 0 is the message's own unit."""
        for meta in children:
            if meta.child:
                self._add(FactKey("normalize", Fact.SENT, EXPLODED, meta.child), meta)

    def passed(self, items: list[ProcessItem]) -> None:
        """Note that exactly these units passed every stage up to the route."""
        self.through = self._own(items, PROCESS)

    def stages_begin(self) -> None:
        """Begin the first stage; the time before it was not spent on the messages."""
        self._stages = StageTimes(self._clock.now_us())

    def stage_over(self, node: str, lags: LagBook, times: Sequence[int]) -> None:
        """End a stage; `times` are the event times of the messages that left it."""
        now_us = self._clock.now_us()
        began_us = self._stages.over(_SLICES[node], now_us)
        if times:
            lags.add_group((self.pipe, node, self.bucket), began_us, now_us - began_us, times)
        if self.traced is not None:
            self.traced.marks.append(TracedMark(node, "in", began_us))
            if times:
                self.traced.marks.append(TracedMark(node, "out", now_us))

    def transform_begins(self, node: str) -> int:
        """Return the time at which messages arrive at the transform of one destination."""
        now_us = self._clock.now_us()
        if self.traced is not None:
            self.traced.marks.append(TracedMark(node, "in", now_us))
        return now_us

    def leave(self, waiting: Slice) -> bytes:
        """Return the stopwatch of messages that leave the run now; `waiting` is the slice of their next wait."""
        return self._stages.leave(waiting, self._clock.now_us())

    def leave_again(self, item: ProcessItem, waiting: Slice) -> bytes:
        """Return the stopwatch of a message that had left a lane before."""
        return self._stages.leave_again(item.meta, item.stopwatch, waiting, self._clock.now_us())

    def departed(self, destination: str, items: list[ProcessItem], times: Sequence[int], arrived_us: int) -> None:
        """Note that messages were produced for a destination; `times` are their event times."""
        node = transform_node(destination)
        self._left.append((node, arrived_us, times))
        if self.ramp:  # ingest time, because revisions are compared, and the clocks of sources differ
            # without judged messages: the spec asks for their wait for dedup
            since = [item.meta.ingest_time_us for item in items if not item.judged]
            self._left.append((self.ramp, self._stages.begun_us, since))
        if own := self._own(items, node):
            self._units[FactKey(node, Fact.SENT)].append(own)

    def close(self, facts: FactBook, lags: LagBook) -> None:
        """Report facts and lags. All records are stored: the messages depart with the last delivery report."""
        now_us = self._clock.now_us()
        facts.extend(self.pipe, self.bucket, _SEEN, self.seen)
        for producer, positions in self._read.items():
            if producer:
                facts.extend(self.pipe, self.bucket, log_key(SEEN, producer), positions)
        if self.through:
            facts.extend(self.pipe, self.bucket, _THROUGH, self.through)
        for key, units in self._units.items():
            for positions in units:
                facts.extend(self.pipe, self.bucket, key, positions)
        for node, arrived_us, times in self._left:
            if times:
                lags.add_group((self.pipe, node, self.bucket), arrived_us, now_us - arrived_us, times)

    def _add(self, key: FactKey, meta: MessageMeta) -> None:
        self._units[key].append((meta.position,))

    def _own(self, items: list[ProcessItem], node: str) -> Sequence[int]:
        """Return the positions of the messages' own units (child 0) that a node sent; note the other children."""
        if items is self.items:
            return self.seen
        own = []
        for item in items:
            if item.meta.child:
                self._add(FactKey(node, Fact.SENT, "", item.meta.child), item.meta)
            else:
                own.append(item.meta.position)
        return dense(own)
