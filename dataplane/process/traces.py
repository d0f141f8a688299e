"""Traces of a process lane: one span per sampled message, from the start of its run to the last delivery report.

Stages are events of the span: they run a batch at a time, so their times are those of the batch, and a span for each
would cost four times as much. The message's header carries the span's context to all its destinations. The outcome of
a message is read from the facts that the run reports to the ledger, so the two cannot differ.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dataplane.ledger.facts import EXPLODED, Fact, FactKey, cause_of
from dataplane.ledger.traceparent import carrying, sampled
from dataplane.ledger.units import format_position
from dataplane.names import transform_node
from dataplane.process.item import ProcessItem
from dataplane.process.run import MessageRun
from dataplane.process.traced import TracedMark, TracedRun
from dataplane.runtime.telemetry.tracing import Tracing, traceparent_of

_TRANSFORM = transform_node("")


class ProcessTracing:
    """Factory and closer of the spans of runs."""

    def __init__(self, tracing: Tracing, topic: str) -> None:
        self._tracing, self._topic = tracing, topic

    def begin(self, run: MessageRun, items: Iterable[ProcessItem]) -> None:
        """Begin a span for each sampled message of a run; its headers carry the new span's context from now on."""
        spans: dict[int, Any] = {}
        for item in items:
            if parent := sampled(item.headers):
                span = self._tracing.begin("process", "consumer", self._attributes(item), parent=parent)
                item.headers = carrying(item.headers, traceparent_of(span))
                spans[item.meta.position] = span
        if spans:
            run.traced = TracedRun(spans)

    def end(self, run: MessageRun) -> None:
        """End the spans of a run whose records are all stored."""
        if run.traced is None:
            return
        facts = _facts_of(run.traced.spans, run.units)
        for position, span in run.traced.spans.items():
            self._report(span, facts[position], run.traced.marks)
            span.end()

    def _report(self, span: Any, facts: Sequence[FactKey], marks: Sequence[TracedMark]) -> None:
        """Add the stages that a message passed, and the facts of its units, to its span."""
        for node, way, at_us in _passed(facts, marks):
            span.add_event(f"{node} {way}", timestamp=at_us * 1_000)
        for node, fact, detail, _ in facts:
            span.add_event(fact, {"penstock.node": node} | ({"penstock.detail": detail} if detail else {}))
            if fact == Fact.DEAD:
                self._tracing.fail(span, cause_of(detail))

    def _attributes(self, item: ProcessItem) -> dict[str, Any]:
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


def _passed(facts: Sequence[FactKey], marks: Sequence[TracedMark]) -> list[TracedMark]:
    """Return the marks of the run that apply to a message: up to the node of its end, or of its destinations."""
    nodes = {key.node for key in facts}
    own = [mark for mark in marks if mark.node in nodes or not mark.node.startswith(_TRANSFORM)]
    if any(key.fact == Fact.SENT and key.node.startswith(_TRANSFORM) for key in facts):
        return own
    ends = [number for number, mark in enumerate(own) if mark.node in nodes and mark.way == "in"]
    return own[: ends[-1] + 1] if ends else []


def _facts_of(
    spans: Mapping[int, Any], units: Mapping[FactKey, Sequence[Sequence[int]]]
) -> defaultdict[int, list[FactKey]]:
    """Return the facts reported for each of these messages, without those that name its exploded children."""
    facts: defaultdict[int, list[FactKey]] = defaultdict(list)
    for key, stretches in units.items():
        for positions in stretches if key.detail != EXPLODED else ():
            whole = isinstance(positions, range)  # then a membership test is free
            for position in (p for p in spans if p in positions) if whole else (p for p in positions if p in spans):
                facts[position].append(key)
    return facts
