"""Windows in a process lane: events that windows take are sent to the cell's `taps` topic; late ones are counted.

A tap does not settle its event, which continues in the pipe. The result of a closed window returns on the ingest topic
as a message of source `window:<name>`, and continues from the route.
"""

from collections.abc import Iterable

from dataplane.plan.stage import StageError
from dataplane.plan.taps import CompiledTap, digest_partition, encode_tap, key_of
from dataplane.process.item import ProcessItem
from dataplane.process.run import MessageRun
from dataplane.runtime.lanes.context import RecordProducer
from dataplane.runtime.producers.tracked_producer import RecordTooLargeError
from dataplane.spec.windows import WINDOW_SOURCE
from dataplane.tables.records import TopicRecord


class TapWriter:
    """Producer to the taps topic. `topic` is None while the cell does not have one yet."""

    def __init__(self, outbox: RecordProducer, topic: TopicRecord | None) -> None:
        self._outbox = outbox
        self.topic = topic

    def tap(self, run: MessageRun, windows: Iterable[CompiledTap], items: Iterable[ProcessItem]) -> None:
        """Send the tap of each event for each window; events that are not JSON, too large or too deep are left out.

        All taps of a key are in one partition. Raises ValueError while there is no topic.
        """
        if self.topic is None:
            raise ValueError("the cell has no taps topic")
        run.owed += 1
        produce_group = self._outbox.begin_group(self.topic.name, run)
        for item in items:
            try:
                body = item.read()
            except StageError:
                continue
            for window in windows:
                try:
                    tap = window.tap(item.meta, body)
                except RecursionError:  # the value of its key is nested too deeply
                    continue
                if tap is None:
                    run.late(window.node, item.meta)
                    continue
                key = key_of(tap)
                try:
                    produce_group.send(encode_tap(tap), key, digest_partition(key, self.topic.partitions), [])
                except RecordTooLargeError:
                    break
        produce_group.close()


def split_taps(items: list[ProcessItem]) -> tuple[list[ProcessItem], list[ProcessItem]]:
    """Return the events, and the results of windows."""
    events: list[ProcessItem] = []
    results: list[ProcessItem] = []
    for item in items:
        (results if item.meta.source.startswith(WINDOW_SOURCE) else events).append(item)
    return events, results
