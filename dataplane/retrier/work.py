"""The retrier lane's work: retry-in -> delay tiers -> retry-out. Never early, late by at most the smallest tier.

A message is passed from topic to topic and settled when the next one has it. A tier's messages stay uncommitted until
they leave; the lane holds the head of each partition, within small windows that pause the partition: what waits lies in
Kafka, nothing grows, nothing is dropped, and nobody sleeps.
"""

import heapq
import itertools
import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from confluent_kafka import Message

from dataplane.ledger.deadletter import Death, dead_headers
from dataplane.ledger.facts import Fact, FactKey, dead_detail
from dataplane.ledger.meta import META_HEADER, Headers, Meta, encode_meta
from dataplane.names import transmit_node
from dataplane.retrier.pace import Name, Pace
from dataplane.retrier.tiers import delay_until
from dataplane.runtime.crashes import CRASHES_DETAIL, CRASHES_LANE
from dataplane.runtime.lane import BUSY_WAIT_S, IDLE_WAIT_S, Lane
from dataplane.runtime.slots import SLOTS_A_TOPIC
from dataplane.tables.records import TopicRecord

log = logging.getLogger(__name__)

WINDOW: Final = 2_000  # messages of a partition that are in hand at once
WINDOW_BYTES: Final = 2 * 1024 * 1024
A_TURN: Final = 5_000  # messages passed on before the loop polls again
AT_HAND_US: Final = 1_000_000  # so near its moment, what is in hand stays there instead of taking another turn
LEAVE_HEADER: Final = "penstock-leave"  # when a message leaves the tier it is in


class Parcel(NamedTuple):
    """A message in hand: where it was read, and what is known of it."""

    slot: int
    message: Message
    meta: Meta
    headers: Headers


class Passed(NamedTuple):
    """Token of a record that takes the place of a message: the message is settled, and this fact is told."""

    slot: int
    offset: int
    meta: Meta
    fact: FactKey


class RetrierWork:
    """Passes on what is due, and delays what is not."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        lane.bound_windows(WINDOW, WINDOW_BYTES)
        self._topics = lane.cell.topics
        self._pace = Pace(lane.settings.retry_rate_per_s)
        self._waiting: list[tuple[int, int, Parcel]] = []  # heap by the time of leaving
        self._numbers = itertools.count()

    # -- taking ----------------------------------------------------------------------------------------------------

    def take(self, messages: Sequence[Message]) -> None:
        """What comes from retry-in goes on at once, to a tier or out; what comes from a tier waits until it leaves."""
        now_us = _now_us()
        for message, meta, headers in self._lane.read_all(messages):
            parcel = Parcel(self._lane.slots.of(message), message, meta, headers)
            if parcel.slot < SLOTS_A_TOPIC:
                self._forward(parcel, now_us)
            else:
                self._wait(parcel, _leave_us(headers))

    def condemn(self, message: Message) -> None:
        """Dead at its destination."""
        for _, meta, headers in self._lane.read_all([message]):
            self._bury(Parcel(self._lane.slots.of(message), message, meta, headers), CRASHES_LANE, CRASHES_DETAIL)

    def turn(self) -> None:
        """Forward what leaves its tier now."""
        now_us = _now_us()
        for _ in range(A_TURN):
            if not self._waiting or self._waiting[0][0] > now_us:
                break
            self._forward(heapq.heappop(self._waiting)[2], now_us)

    def _wait(self, parcel: Parcel, until_us: int) -> None:
        heapq.heappush(self._waiting, (until_us, next(self._numbers), parcel))

    # -- forwarding ------------------------------------------------------------------------------------------------

    def _forward(self, parcel: Parcel, now_us: int) -> None:
        """Out if it is due and its destination's turn has come; else to where it waits for that."""
        due_us, meta = parcel.meta.not_before_us, parcel.meta
        if due_us <= now_us and not meta.paced:
            due_us = self._pace.moment_us(Name(meta.pipe, meta.destination), now_us)
            if due_us > now_us:
                meta = msgspec.structs.replace(meta, not_before_us=due_us, paced=True)
                parcel = parcel._replace(meta=meta)
        if due_us <= now_us:
            self._pass_on(parcel)
        elif parcel.slot >= SLOTS_A_TOPIC and due_us - now_us <= AT_HAND_US:
            self._wait(parcel, due_us)
        elif self._gives_up_us(meta) < due_us and meta.paced:
            self._bury(parcel, "expired", "its span was over before its destination's turn came")
        else:
            self._delay(parcel, due_us, now_us)

    def _pass_on(self, parcel: Parcel) -> None:
        meta = msgspec.structs.replace(parcel.meta, paced=False)
        self._send(self._topics["retry-out"], parcel, meta, [], _fact(meta, Fact.RELEASED))

    def _delay(self, parcel: Parcel, due_us: int, now_us: int) -> None:
        """To a tier. The fact is the one transmit has told: told again, it says how far the tiers hold this bucket."""
        delay = delay_until(due_us, now_us)
        more = [(LEAVE_HEADER, str(delay.leave_us).encode())]
        self._send(self._topics[delay.tier], parcel, parcel.meta, more, _fact(parcel.meta, Fact.PARKED))

    def _bury(self, parcel: Parcel, cause: str, detail: str) -> None:
        meta, message = parcel.meta, parcel.message
        node = transmit_node(meta.destination)
        log.warning("dead: pipe=%s destination=%s cause=%s", meta.pipe, meta.destination, cause)
        headers = dead_headers(meta, _plain(parcel.headers), Death(node, cause, detail))
        token = Passed(
            parcel.slot,
            message.offset(),
            meta,
            FactKey(node, Fact.DEAD, dead_detail(cause, meta.life), meta.child),
        )
        self._lane.outbox.send(self._topics["dead"].name, token, value=message.value(), headers=headers)

    def _send(self, topic: TopicRecord, parcel: Parcel, meta: Meta, more: Headers, fact: FactKey) -> None:
        message = parcel.message
        headers = [(META_HEADER, encode_meta(meta)), *_plain(parcel.headers)[1:], *more]
        record: dict[str, Any] = {"value": message.value(), "headers": headers}
        if (key := message.key()) is not None:
            record["key"] = key
        else:  # the same message must come to the same partition again: transmit remembers what it settled
            record["partition"] = message.partition() % topic.partitions
        self._lane.outbox.send(topic.name, Passed(parcel.slot, message.offset(), meta, fact), **record)

    def _gives_up_us(self, meta: Meta) -> int:
        """The end of a message's span; never, for one that was not tried yet or whose destination is not known."""
        record = self._lane.table.destination(meta.pipe, meta.destination)
        if record is None or not meta.first_us:
            return 1 << 62
        return meta.first_us + record.to.retry.span_s * 1_000_000

    # -- the loop's questions --------------------------------------------------------------------------------------

    def acked(self, token: Any) -> None:
        """The next topic has it."""
        slot, offset, meta, fact = token
        self._lane.facts.add(meta.pipe, meta.bucket, fact, meta.position)
        self._lane.settle(slot, offset)

    def in_flight(self) -> int:
        """What waits for its time is not under way; a drain leaves it uncommitted."""
        return 0

    def patience_s(self) -> float:
        """Short while reports are due, else until the next message leaves."""
        if self._lane.outbox.in_flight:
            return BUSY_WAIT_S
        if not self._waiting:
            return IDLE_WAIT_S
        return min(IDLE_WAIT_S, max(BUSY_WAIT_S, self._waiting[0][0] / 1e6 - time.time()))

    def report(self) -> None:
        """Nothing beside the audit record."""

    def forget(self, slots: Iterable[int]) -> None:
        """The new owner reads them again."""
        gone = set(slots)
        self._waiting = [entry for entry in self._waiting if entry[2].slot not in gone]
        heapq.heapify(self._waiting)

    def give_back(self) -> None:
        """What waits stays where it is."""
        self._waiting = []

    def close(self) -> None:
        """Nothing is open."""


def _fact(meta: Meta, fact: Fact) -> FactKey:
    return FactKey(transmit_node(meta.destination), fact, str(meta.attempt), meta.child)


def _leave_us(headers: Headers) -> int:
    """When a message leaves its tier; at once, if that cannot be read."""
    name, value = headers[-1]
    return int(value) if name == LEAVE_HEADER and value.isdigit() else 0


def _plain(headers: Headers) -> Headers:
    """The headers without the one that is for a tier."""
    return headers[:-1] if headers[-1][0] == LEAVE_HEADER else headers


def _now_us() -> int:
    return time.time_ns() // 1_000
