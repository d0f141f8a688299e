"""Result of one task of a replay, which Spark returns to the driver: how far it read, its counts and its facts."""

from collections import defaultdict
from collections.abc import Container, Iterable
from typing import Final

from msgspec import Struct, field
from pyroaring import BitMap64

from dataplane.ledger.audit import LagSet
from dataplane.ledger.facts import ACKED, EXPLODED, INGEST, PROCESS, Fact, FactBook, FactKey
from dataplane.ledger.replay_buckets import spread
from dataplane.names import PROCESS_NODES, PartitionKey, transform_node, transmit_node
from dataplane.plan.through import EndedUnit, Passage

_ASKED: Final = FactKey(INGEST, Fact.SENT, ACKED)
_PASSED: Final = FactKey(PROCESS, Fact.SENT)
_EXPLODES_AT: Final = PROCESS_NODES[0]


class TaskResult(Struct):
    """Result of one task: how far it read, its counts and its facts.

    reached: all events below this offset are done; their copies are stored
    counts:  as in dataplane.tables.replays.ReplayProgress
    ends:    by partition of egress, the offset after the task's last copy
    facts:   positions as a serialized 64-bit roaring bitmap, by the key of the fact
    lags:    timing of the copies that are delivered
    expired_until_us: ingest time of the first event after a gap that retention has left; 0 without a gap
    written, written_bytes: copies for topics that are stored, and the size of their bodies
    cpu_us:  CPU time of the task's thread, in microseconds
    error:   reason why the task ended early, for the log; what it reached counts
    unwritable: destinations whose topics do not store copies, which is the error
    waits:   reason why the plan cannot run on this host yet, for people
    crashed: True if the process of the task has ended several times
    """

    place: PartitionKey
    reached: int
    read: int = 0
    asked: int = 0
    units: dict[str, int] = field(default_factory=dict)
    filtered: int = 0
    failed: int = 0
    size_bytes: int = 0
    ends: dict[int, int] = field(default_factory=dict)
    facts: dict[FactKey, bytes] = field(default_factory=dict)
    lags: list[LagSet] = field(default_factory=list)
    expired_until_us: int = 0
    written: int = 0
    written_bytes: int = 0
    cpu_us: int = 0
    error: str = ""
    unwritable: tuple[str, ...] = ()
    waits: str = ""
    crashed: bool = False


class PassageFacts:
    """Collector of the facts of a task. They have the same nodes and details as those of process lanes.

    An event is counted as asked only together with what became of its units.
    """

    def __init__(self) -> None:
        # Positions of frequent facts are lists, by the parts of their keys: a set per event, or the hash of a FactKey,
        # would take as long as the rest of a copy.
        self._asked: list[int] = []
        self._passed: defaultdict[int, list[int]] = defaultdict(list)
        self._sent: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        self._rare: defaultdict[FactKey, list[int]] = defaultdict(list)

    def add(self, position: int, passage: Passage, ended: Iterable[EndedUnit]) -> None:
        """Add an event; `ended` has the units of the passage that ended, and those that could not be produced."""
        self._asked.append(position)
        for child in range(1, passage.children):
            self._rare[FactKey(_EXPLODES_AT, Fact.SENT, EXPLODED, child)].append(position)
        for child in passage.passed:
            self._passed[child].append(position)
        for one in ended:
            self._rare[FactKey(one.node, Fact(one.outcome), one.detail, one.child)].append(position)

    def sent(self, position: int, destination: str, child: int) -> None:
        """Add a unit that was produced."""
        self._sent[destination, child].append(position)

    def serialized(self, topics: Container[str]) -> dict[FactKey, bytes]:
        """Return the sets in the order in which they are to be reported: asked events last.

        topics: destinations whose units are delivered, because they were produced to the topics themselves

        If a report is split, an asked event must not be known before the fate of its units: it would seem to be lost.
        """
        found = {
            FactKey(transform_node(destination), Fact.SENT, "", child): positions
            for (destination, child), positions in self._sent.items()
        }
        found |= {
            FactKey(transmit_node(destination), Fact.DELIVERED, "", child): positions
            for (destination, child), positions in self._sent.items()
            if destination in topics
        }
        found = dict(sorted((found | self._rare).items()))
        found |= {_PASSED._replace(child=child): self._passed[child] for child in sorted(self._passed)}
        if self._asked:
            found[_ASKED] = self._asked
        return {key: BitMap64(positions).serialize() for key, positions in found.items()}


def book_of(account: str, bucket: int, results: Iterable[TaskResult]) -> FactBook:
    """Return the facts of a job's tasks in one book, for an audit record. `bucket`: minute of the replay's creation."""
    book = FactBook()
    results = list(results)
    keys = {key: None for result in results for key in result.facts}
    for key in sorted(keys, key=lambda key: key == _ASKED):  # stable: asked events stay last
        for result in results:
            if key in result.facts:
                for its_bucket, positions in spread(bucket, BitMap64.deserialize(result.facts[key])).items():
                    book.extend(account, its_bucket, key, positions)
    return book


def ends_of(results: Iterable[TaskResult], topic: str) -> dict[PartitionKey, int]:
    """Return the offset after the last copy of a job, by partition of `topic` (egress)."""
    ends: dict[PartitionKey, int] = {}
    for result in results:
        for partition, end in result.ends.items():
            ends[topic, partition] = max(ends.get((topic, partition), 0), end)
    return ends
