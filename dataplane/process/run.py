"""A run: messages of one (pipe, revision, bucket, partition) that pass the stages together and are settled together."""

from collections import defaultdict
from collections.abc import Sequence

from dataplane.ledger.facts import INGEST, PROCESS, SEEN, Fact, FactBook, FactKey
from dataplane.names import transform_node
from dataplane.runtime.lags import LagBook

_SEEN = FactKey(INGEST, Fact.SENT, SEEN)
_THROUGH = FactKey(PROCESS, Fact.SENT)


class Run:
    """Facts and lags of a run, told to the books once every record it produced is stored.

    owed:    tokens of the outbox that are still due
    offsets: what to settle then
    """

    def __init__(self, pipe: str, bucket: int, partition: int, offsets: Sequence[int], seen: list[int]) -> None:
        self.pipe = pipe
        self.bucket = bucket
        self.partition = partition
        self.offsets = offsets
        self.seen = seen
        self.through = seen
        self.owed = 1  # held open until everything has been handed to the outbox
        self.departed: dict[str, list[int]] = defaultdict(list)
        self.event_times: dict[str, list[int]] = defaultdict(list)
        self.ended: list[tuple[FactKey, int]] = []

    def dead(self, node: str, cause: str, position: int) -> None:
        """One unit ends at `node`."""
        self.ended.append((FactKey(node, Fact.DEAD, cause), position))

    def close(self, facts: FactBook, lags: LagBook, now_us: int) -> None:
        """All of it is stored: file the facts, and the lags on departure."""
        facts.extend(self.pipe, self.bucket, _SEEN, self.seen)
        if self.through:
            facts.extend(self.pipe, self.bucket, _THROUGH, self.through)
        for destination, positions in self.departed.items():
            if not positions:
                continue
            node = transform_node(destination)
            facts.extend(self.pipe, self.bucket, FactKey(node, Fact.SENT), positions)
            lags.add_pass((self.pipe, node, self.bucket, "out"), now_us, self.event_times[destination])
        for key, position in self.ended:
            facts.add(self.pipe, self.bucket, key, position)
