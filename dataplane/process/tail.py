"""The live tail: copies of what peek steps showed, for whoever looks on. No promise is about them."""

from collections.abc import Iterable

from dataplane.ledger.peek import Peek, peek_headers
from dataplane.process.item import Item
from dataplane.runtime.lane import Lane


class Tail:
    """Writes to the cell's tail topic; a cell of older days has none until its topics are looked at again."""

    def __init__(self, lane: Lane) -> None:
        self._outbox = lane.outbox
        topic = lane.cell.topics.get("tail")
        self._topic = topic.name if topic else ""

    def show(self, node: str, items: Iterable[Item]) -> None:
        """What the steps of a node saw of these, those that died or were filtered behind the peek included."""
        for item in items:
            for name, body in item.about.peeked if self._topic else ():
                headers = peek_headers(Peek(item.meta, node, name))
                self._outbox.show(self._topic, body, item.meta.pipe.encode(), headers)
            item.about.peeked.clear()
