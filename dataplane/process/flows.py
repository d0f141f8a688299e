"""Queues of a process lane, one flow for each pipe and partition, and the measured cost of pipes. Pure.

The cost of a pipe's messages limits how many run at once, so that a pass ends in time. The number grows by doubling,
because the cost of a new pipe is unknown, and a pipe's next message may cost a hundred times as much as its last one.
"""

from collections import deque
from typing import Final, NamedTuple

from dataplane.plan import CompiledPlan
from dataplane.process.item import ProcessItem

CHUNK_NS: Final = 5_000_000  # target CPU cost of the messages that run together
MOST_AT_ONCE: Final = 128
MOST_PARTS: Final = 200  # steps of all messages that run together: 2 s if each takes its maximum
NEW: Final = 0.3  # weight of the newest value in a pipe's mean
FlowKey = tuple[str, int]  # pipe, slot of the partition


class FlowGroup(NamedTuple):
    """Attributes that the messages of a run share.

    partition: the partition from which they were read
    origin:    the partition in which ingest stored them
    through:   a person released them to test the steps: they run although their pipe is held
    """

    pipe: str
    revision: int
    bucket: int
    partition: int
    origin: int
    through: bool = False

    @property
    def flow(self) -> FlowKey:
        """Key of the flow to which the messages belong."""
        return self.pipe, self.partition


class PipeFlow:
    """Queue of one pipe's messages in one partition, in their order, as parts that may each run together.

    count: number of messages
    runs:  number of runs of this flow whose records are not all stored
    """

    __slots__ = ("count", "is_queued", "key", "parts", "runs", "tenant")

    def __init__(self, key: FlowKey, tenant: str) -> None:
        self.key, self.tenant = key, tenant
        self.parts: deque[tuple[FlowGroup, list[ProcessItem]]] = deque()
        self.count = self.runs = 0
        self.is_queued = False  # in the queue of turns

    def add(self, group: FlowGroup, items: list[ProcessItem]) -> None:
        """Append messages to the queue."""
        self.count += len(items)
        if self.parts and self.parts[-1][0] == group:
            self.parts[-1][1].extend(items)
        else:
            self.parts.append((group, items))

    def put_back(self, group: FlowGroup, items: list[ProcessItem]) -> None:
        """Prepend messages to the queue."""
        self.count += len(items)
        self.parts.appendleft((group, items))

    def size_bytes(self) -> int:
        """Return the size of all queued bodies, with those that they were converted from."""
        return sum([item.stored_bytes for _, items in self.parts for item in items])

    def take(self, most: int) -> tuple[FlowGroup, list[ProcessItem]]:
        """Remove and return up to `most` messages from the head of the queue, which must not be empty."""
        group, items = self.parts[0]
        if len(items) > most:
            taken = items[:most]
            del items[:most]
        else:
            _, taken = self.parts.popleft()
        self.count -= len(taken)
        return group, taken


class FlowCost:
    """Recent mean cost of a pipe's messages, and how many of them may run at once."""

    __slots__ = ("at_once", "mean_ns")

    def __init__(self) -> None:
        self.at_once = 1
        self.mean_ns = 0.0

    def note(self, count: int, cost_ns: int) -> None:
        """Note that `count` messages ran together and took `cost_ns` of CPU."""
        each = cost_ns / count
        self.mean_ns = each if not self.mean_ns else (1 - NEW) * self.mean_ns + NEW * each
        if cost_ns > CHUNK_NS:
            self.at_once = max(1, int(count * CHUNK_NS / cost_ns))
        elif count >= self.at_once:
            self.at_once = min(MOST_AT_ONCE, 2 * self.at_once)

    def chunk(self, plan: CompiledPlan | None, credit_ns: float) -> int:
        """Return how many messages to run now within the tenant's credit, at least 1.

        Plans with an explode run one message at a time, because its cost is unknown in advance.
        """
        if plan is None:
            return MOST_AT_ONCE  # they will wait
        if plan.may_take_long:
            return 1
        most = min(self.at_once, MOST_PARTS // plan.parts) if plan.parts else self.at_once
        if self.mean_ns * most > credit_ns:
            most = int(credit_ns / self.mean_ns)
        return max(1, most)
