"""Sequences in a process lane: the number of each event of a key is sent to the cell's `sequence` topic.

A tap does not settle its event, which continues in the pipe. The sequence query compares the numbers and reports gaps.
"""

from collections.abc import Iterable, Mapping

from dataplane.plan.sequence import CompiledSequence, encode, sequence_key, sequence_tap
from dataplane.plan.stage import StageError
from dataplane.process.item import ProcessItem
from dataplane.process.run import MessageRun
from dataplane.runtime.lanes.context import RecordProducer


class SequenceTaps:
    """Producer to the sequence topic. `topic` is "" while the cell does not have one yet."""

    def __init__(self, outbox: RecordProducer, topic: str) -> None:
        self._outbox = outbox
        self.topic = topic

    def tap(self, run: MessageRun, sequences: Mapping[str, CompiledSequence], items: Iterable[ProcessItem]) -> None:
        """Send the number of each event, as it arrived. `sequences`: by source.

        Events without a key, or without a number at the path, are left out, and so are those that dedup returned: they
        were sent before it judged them.
        """
        run.owed += 1
        produce_group = self._outbox.begin_group(self.topic, run)
        for item in items:
            sequence, key = sequences.get(item.meta.source), item.message.key()
            if sequence is None or key is None or item.judged:
                continue
            try:
                tap = sequence_tap(item.meta, key, item.read(), sequence.path)
            except StageError:
                continue
            if tap is not None:
                produce_group.send(encode(tap), sequence_key(tap, sequence.origin), 0, [])
        produce_group.close()
