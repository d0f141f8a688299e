"""The retrier lane's work: hold each parked message until it is due, then pass it on to retry-out.

What waits stays uncommitted in the ack window, whose bound pauses the partition: nothing grows, nothing is dropped.
"""

import heapq
import itertools
import time
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import Message

from dataplane.ledger.facts import Fact, FactKey
from dataplane.ledger.meta import Meta
from dataplane.names import transmit_node
from dataplane.runtime.crashes import CRASHES_DETAIL, CRASHES_LANE
from dataplane.runtime.lane import BUSY_WAIT_S, IDLE_WAIT_S, Lane


class RetrierWork:
    """Never early, late by at most a turn of the loop."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._retry_out = lane.cell.topics["retry-out"]
        self._dead = lane.cell.topics["dead"].name
        self._waiting: list[tuple[int, int, Message, Meta]] = []  # heap by due time
        self._numbers = itertools.count()

    def take(self, messages: Sequence[Message]) -> None:
        """Put each message to its due time."""
        for message, meta, _ in self._lane.read_all(messages):
            heapq.heappush(self._waiting, (meta.not_before_us, next(self._numbers), message, meta))

    def condemn(self, message: Message) -> None:
        """Dead at its destination."""
        for _, meta, headers in self._lane.read_all([message]):
            node = transmit_node(meta.destination)
            more = [
                ("penstock-node", node.encode()),
                ("penstock-cause", CRASHES_LANE.encode()),
                ("penstock-detail", CRASHES_DETAIL.encode()),
            ]
            key = FactKey(node, Fact.DEAD, CRASHES_LANE, meta.child)
            token = (message.partition(), message.offset(), meta, key)
            self._lane.outbox.send(self._dead, token, value=message.value(), headers=[*headers, *more])

    def turn(self) -> None:
        """Pass on what is due."""
        now_us = time.time_ns() // 1_000
        while self._waiting and self._waiting[0][0] <= now_us:
            *_, message, meta = heapq.heappop(self._waiting)
            record: dict[str, Any] = {"value": message.value(), "headers": message.headers()}
            if message.key() is not None:
                record["key"] = message.key()
            else:
                record["partition"] = message.partition() % self._retry_out.partitions
            key = FactKey(transmit_node(meta.destination), Fact.RELEASED, str(meta.attempt), meta.child)
            token = (message.partition(), message.offset(), meta, key)
            self._lane.outbox.send(self._retry_out.name, token, **record)

    def acked(self, token: Any) -> None:
        """Passed on (the retry lane has it from here) or buried."""
        partition, offset, meta, key = token
        self._lane.facts.add(meta.pipe, meta.bucket, key, meta.position)
        self._lane.settle(partition, offset)

    def in_flight(self) -> int:
        """What waits for its time is not under way; a drain leaves it uncommitted."""
        return 0

    def patience_s(self) -> float:
        """Short while reports are due, else until the next message is."""
        if self._lane.outbox.in_flight:
            return BUSY_WAIT_S
        if not self._waiting:
            return IDLE_WAIT_S
        return min(IDLE_WAIT_S, max(BUSY_WAIT_S, self._waiting[0][0] / 1e6 - time.time()))

    def report(self) -> None:
        """Nothing beside the audit record."""

    def forget(self, partitions: Iterable[int]) -> None:
        """The new owner reads them again."""
        gone = set(partitions)
        self._waiting = [entry for entry in self._waiting if entry[2].partition() not in gone]
        heapq.heapify(self._waiting)

    def give_back(self) -> None:
        """What waits stays where it is."""
        self._waiting = []

    def close(self) -> None:
        """Nothing is open."""
