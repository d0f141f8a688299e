"""Messages that wait for their turn in a process lane: a queue for each pipe and partition, and what pipes cost. Pure.

How many messages of a flow are run at once follows from what they cost: few enough for the pass to end in time. It is
learned by doubling, because nothing is known of a pipe at first, and a pipe's next message may cost a hundred times as
much as its last one.
"""

from collections import deque
from typing import Final, NamedTuple

from dataplane.plan import Plan
from dataplane.process.item import Item

CHUNK_NS: Final = 5_000_000  # of CPU: what the messages that are run together should cost
MOST_AT_ONCE: Final = 128
MOST_PARTS: Final = 200  # steps of all messages that are run together: 2 s, should each take as long as it may
NEW: Final = 0.3  # weight of the newest figure in a pipe's mean
FlowKey = tuple[str, int]  # pipe, slot of the partition


class Group(NamedTuple):
    """What the messages of a run share. `partition`: where they were read; `origin`: where ingest put them."""

    pipe: str
    revision: int
    bucket: int
    partition: int
    origin: int

    @property
    def flow(self) -> FlowKey:
        """Whose messages they are."""
        return self.pipe, self.partition


class Flow:
    """Messages of one pipe in one partition, in their order: parts that may each be run together.

    count:   of messages
    runs:    of this flow, whose records are not all stored
    """

    __slots__ = ("count", "is_queued", "key", "parts", "runs", "tenant")

    def __init__(self, key: FlowKey, tenant: str) -> None:
        self.key, self.tenant = key, tenant
        self.parts: deque[tuple[Group, list[Item]]] = deque()
        self.count = self.runs = 0
        self.is_queued = False  # its turn will come

    def add(self, group: Group, items: list[Item]) -> None:
        """Behind the others."""
        self.count += len(items)
        if self.parts and self.parts[-1][0] == group:
            self.parts[-1][1].extend(items)
        else:
            self.parts.append((group, items))

    def put_back(self, group: Group, items: list[Item]) -> None:
        """Before the others."""
        self.count += len(items)
        self.parts.appendleft((group, items))

    def size_bytes(self) -> int:
        """Of all of them."""
        return sum([len(item.original) for _, items in self.parts for item in items])

    def take(self, most: int) -> tuple[Group, list[Item]]:
        """The first ones, so many at the most. There must be one."""
        group, items = self.parts[0]
        if len(items) > most:
            taken = items[:most]
            del items[:most]
        else:
            _, taken = self.parts.popleft()
        self.count -= len(taken)
        return group, taken


class Cost:
    """What a pipe's messages cost of late, and how many of them may be run at once."""

    __slots__ = ("at_once", "mean_ns")

    def __init__(self) -> None:
        self.at_once = 1
        self.mean_ns = 0.0

    def note(self, count: int, cost_ns: int) -> None:
        """So many were run together, at this CPU."""
        each = cost_ns / count
        self.mean_ns = each if not self.mean_ns else (1 - NEW) * self.mean_ns + NEW * each
        if cost_ns > CHUNK_NS:
            self.at_once = max(1, int(count * CHUNK_NS / cost_ns))
        elif count >= self.at_once:
            self.at_once = min(MOST_AT_ONCE, 2 * self.at_once)

    def chunk(self, plan: Plan | None, credit_ns: float) -> int:
        """How many to run now, for what the tenant may spend.

        Of a plan with an explode one by one: what they come to is not known before.
        """
        if plan is None:
            return MOST_AT_ONCE  # they will wait
        if plan.may_take_long:
            return 1
        most = min(self.at_once, MOST_PARTS // plan.parts) if plan.parts else self.at_once
        if self.mean_ns * most > credit_ns:
            most = int(credit_ns / self.mean_ns)
        return max(1, most)
