"""A process lane's part in windows: events that windows take go to the cell's `taps` topic, late ones are counted.

A tap settles nothing: the event goes on whatever becomes of it. What a closed window says comes back through ingest's
topic as a message of source `window:<name>`, and goes on from the route.
"""

from collections.abc import Iterable

from dataplane.plan.stage import StageError
from dataplane.plan.taps import Tapping, encode_tap, key_of
from dataplane.process.item import Item
from dataplane.process.run import Run
from dataplane.runtime.outbox import Outbox, TooLargeError
from dataplane.spec.windows import WINDOW_SOURCE


class Taps:
    """Sends to the topic. `topic` is empty while the cell has none yet."""

    def __init__(self, outbox: Outbox, topic: str) -> None:
        self._outbox = outbox
        self.topic = topic

    def tap(self, run: Run, windows: Iterable[Tapping], items: Iterable[Item]) -> None:
        """Send what each window takes of each event; none takes one that is no JSON, too large or too deep."""
        run.owed += 1
        shipment = self._outbox.shipment(self.topic, run)
        for item in items:
            try:
                body = item.read()
            except StageError:
                continue
            for window in windows:
                try:
                    tap = window.tap(item.meta, body)
                except RecursionError:  # its key is nested too deeply
                    continue
                if tap is None:
                    run.late(window.node, item.meta)
                    continue
                try:
                    shipment.send(encode_tap(tap), key_of(tap), 0, [])
                except TooLargeError:
                    break
        shipment.close()


def parted(items: list[Item]) -> tuple[list[Item], list[Item]]:
    """Events, and results of windows."""
    events: list[Item] = []
    results: list[Item] = []
    for item in items:
        (results if item.meta.source.startswith(WINDOW_SOURCE) else events).append(item)
    return events, results
