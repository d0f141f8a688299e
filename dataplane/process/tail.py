"""The live tail: copies of messages that peek steps selected. Their delivery is best effort."""

from collections.abc import Iterable

from dataplane.ledger.peek import PeekMeta, peek_headers
from dataplane.process.item import ProcessItem
from dataplane.runtime.lanes.context import LaneContext


class TailWriter:
    """Writer to the cell's tail topic, which a cell of an earlier release lacks until its topics are reconciled."""

    def __init__(self, lane: LaneContext) -> None:
        self._outbox = lane.producer
        topic = lane.cell.topics.get("tail")
        self._topic = topic.name if topic else ""

    def show(self, node: str, items: Iterable[ProcessItem]) -> None:
        """Write the copies that peek steps of a node made of these items, even if the items later ended in the node."""
        for item in items:
            for name, body in item.about.peeked if self._topic else ():
                headers = peek_headers(PeekMeta(item.meta, node, name))
                self._outbox.show(self._topic, body, item.meta.pipe.encode(), headers)
            item.about.peeked.clear()
