"""A process lane's part in traces: one span for each sampled message, from its run's beginning to the last report.

Stages are events of it and no spans of their own: they are done for a batch at a time, so their times are the batch's,
and a span for each would cost four times as much. The span's context goes on in the message's header, for all its
destinations. What became of a message is read from what the run tells the ledger: the two cannot differ.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dataplane.ledger.facts import EXPLODED, Fact, FactKey
from dataplane.ledger.traceparent import carrying, sampled
from dataplane.ledger.units import format_position
from dataplane.names import transform_node
from dataplane.process.item import Item
from dataplane.process.run import Run
from dataplane.process.traced import Mark, Traced
from dataplane.runtime.tracing import Tracing, traceparent_of

_TRANSFORM = transform_node("")


class Traces:
    """Begins and ends the spans of runs."""

    def __init__(self, tracing: Tracing, topic: str) -> None:
        self._tracing, self._topic = tracing, topic

    def begin(self, run: Run, items: Iterable[Item]) -> None:
        """The run takes these; those that are sampled carry on its span from now on."""
        spans: dict[int, Any] = {}
        for item in items:
            if parent := sampled(item.headers):
                span = self._tracing.begin("process", "consumer", self._said(item), parent=parent)
                item.headers = carrying(item.headers, traceparent_of(span))
                spans[item.meta.position] = span
        if spans:
            run.traced = Traced(spans)

    def end(self, run: Run) -> None:
        """All that the run has produced is stored."""
        if run.traced is None:
            return
        told = _told_of(run.traced.spans, run.units)
        for position, span in run.traced.spans.items():
            self._tell(span, told[position], run.traced.marks)
            span.end()

    def _tell(self, span: Any, told: Sequence[FactKey], marks: Sequence[Mark]) -> None:
        """The stages that a message passed, and where units of it went or ended."""
        for node, way, at_us in _passed(told, marks):
            span.add_event(f"{node} {way}", timestamp=at_us * 1_000)
        for node, fact, detail, _ in told:
            span.add_event(fact, {"penstock.node": node} | ({"penstock.detail": detail} if detail else {}))
            if fact == Fact.DEAD:
                self._tracing.fail(span, detail)

    def _said(self, item: Item) -> dict[str, Any]:
        meta, message = item.meta, item.message
        return {
            "messaging.system": "kafka",
            "messaging.operation.type": "process",
            "messaging.destination.name": self._topic,
            "messaging.destination.partition.id": str(message.partition()),
            "messaging.kafka.offset": message.offset(),
            "messaging.message.id": meta.id,
            "penstock.position": format_position(meta.position),
            "penstock.pipe": meta.pipe,
            "penstock.revision": meta.revision,
            "penstock.source": meta.source,
        }


def _passed(told: Sequence[FactKey], marks: Sequence[Mark]) -> list[Mark]:
    """The marks of its run that are a message's own: up to where it ended, or towards where it went."""
    nodes = {key.node for key in told}
    own = [mark for mark in marks if mark.node in nodes or not mark.node.startswith(_TRANSFORM)]
    if any(key.fact == Fact.SENT and key.node.startswith(_TRANSFORM) for key in told):
        return own
    ends = [number for number, mark in enumerate(own) if mark.node in nodes and mark.way == "in"]
    return own[: ends[-1] + 1] if ends else []


def _told_of(
    spans: Mapping[int, Any], units: Mapping[FactKey, Sequence[Sequence[int]]]
) -> defaultdict[int, list[FactKey]]:
    """What the ledger is told of each of these messages; which children there are of one is not."""
    told: defaultdict[int, list[FactKey]] = defaultdict(list)
    for key, stretches in units.items():
        for positions in stretches if key.detail != EXPLODED else ():
            whole = isinstance(positions, range)  # then to look into it costs nothing
            for position in (p for p in spans if p in positions) if whole else (p for p in positions if p in spans):
                told[position].append(key)
    return told
