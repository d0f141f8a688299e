"""The retrier lane's work: retry-in -> delay tiers -> retry-out. Never early, late by at most the smallest tier.

Waits are written as wall times, for they outlive processes, and measured by a clock that nobody sets: a moment that was
written is turned into a duration when it is read (`remaining_us`), and back when it is written on.

A message is passed from topic to topic and settled when the next one has it. A tier's messages stay uncommitted until
they leave; the lane holds the head of each partition, within small windows that pause the partition: what waits lies in
Kafka, nothing grows, nothing is dropped, and nobody sleeps.
"""

import heapq
import itertools
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from confluent_kafka import Message

from dataplane.ledger.breakdown import Slice
from dataplane.ledger.deadletter import Death
from dataplane.ledger.facts import Fact, FactKey, dead_detail
from dataplane.ledger.meta import META_HEADER, Headers, Meta, encode_meta
from dataplane.ledger.stopwatch import passed_on
from dataplane.names import transmit_node
from dataplane.retrier.ahead import EarlyRelease
from dataplane.retrier.floor import Floor
from dataplane.retrier.mover import Moved
from dataplane.retrier.moves import Moves
from dataplane.retrier.news import NewsReader
from dataplane.retrier.pace import Name, Pace
from dataplane.retrier.parcels import LEAVE_HEADER, Parcel, Passed, leave_us, plain, way_in, way_out
from dataplane.retrier.tiers import delay_until, remaining_us
from dataplane.runtime.clock import SteadyClock
from dataplane.runtime.crashes import CRASHES_DETAIL, CRASHES_LANE
from dataplane.runtime.deadletters import TOO_LARGE, DeadLetters, fits
from dataplane.runtime.lane import BUSY_WAIT_S, IDLE_WAIT_S, Lane
from dataplane.runtime.slots import SLOTS_A_TOPIC
from dataplane.tables.records import TopicRecord

WINDOW: Final = 2_000  # messages of a partition that are in hand at once
WINDOW_BYTES: Final = 2 * 1024 * 1024
A_TURN: Final = 5_000  # messages passed on before the loop polls again
AT_HAND_US: Final = 1_000_000  # so near its moment, what is in hand stays there instead of taking another turn
PROBES_PER_S: Final = 5.0  # what comes back of a destination that is not well: enough to notice that it is well again
PROBED_WITHIN_US: Final = 30_000_000
RELEASING_US: Final = 10_000_000
SHUT_US: Final = 120_000_000  # a breaker opens for a minute: a longer time is that of another clock
UNWELL_US: Final = 300_000_000  # how long the others wait before they are looked at again
NEWS_EVERY_S: Final = 0.2
REST_S: Final = 6.0  # no errands while partitions change hands


class RetrierWork:
    """Passes on what is due, and delays what is not."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        lane.bound_windows(WINDOW, WINDOW_BYTES)
        self._topics = lane.cell.topics
        self._letters = DeadLetters(lane.outbox, self._topics["dead"].name)
        self._pace = Pace(lane.settings.retry_rate_per_s)
        self._probes = Pace(PROBES_PER_S)
        self._waiting: list[tuple[int, int, Parcel]] = []  # heap by the time of leaving
        self._numbers = itertools.count()
        self._clock = SteadyClock()
        self._reader = NewsReader(lane.settings.kafka, self._topics["signals"].name)
        self._news = self._reader.news
        self._errands: list[Moves | EarlyRelease] = []
        self._floor: Floor | None = None
        if lane.identity.number == 0:
            self._errands = [Moves(lane, self._reader), EarlyRelease(lane, self._reader)]
            self._floor = Floor(lane)
        self._news_due_s = self._rest_until_s = 0.0

    # -- taking ----------------------------------------------------------------------------------------------------

    def take(self, messages: Sequence[Message]) -> None:
        """What comes from retry-in goes on at once, to a tier or out; what comes from a tier waits until it leaves."""
        now_us, wall_us = self._clock.now_us(), _wall_us()
        for message, meta, headers in self._lane.read_all(messages):
            slot, stored_us = self._lane.slots.of(message), message.timestamp()[1] * 1_000
            until_us = meta.not_before_us if slot < SLOTS_A_TOPIC else leave_us(headers)
            leaves_us = now_us + remaining_us(until_us, stored_us, steady_us=now_us, wall_us=wall_us)
            more_us = max(0, meta.not_before_us - until_us)
            parcel = Parcel(slot, message, meta, headers, leaves_us + more_us)
            if slot < SLOTS_A_TOPIC:
                self._forward(parcel, now_us)
            elif not self._skip(parcel):
                self._wait(parcel, leaves_us)

    def condemn(self, message: Message) -> None:
        """Dead at its destination."""
        for _, meta, headers in self._lane.read_all([message]):
            self._bury(Parcel(self._lane.slots.of(message), message, meta, headers), CRASHES_LANE, CRASHES_DETAIL)

    def turn(self) -> None:
        """Forward what leaves its tier now; then a little of the errands."""
        now_us = self._clock.now_us()
        for _ in range(A_TURN):
            if not self._waiting or self._waiting[0][0] > now_us:
                break
            parcel = heapq.heappop(self._waiting)[2]
            if not self._skip(parcel):
                self._forward(parcel, now_us)
        self._errands_turn(time.monotonic())

    def _errands_turn(self, now_s: float) -> None:
        if now_s >= self._news_due_s:
            self._news_due_s = now_s + NEWS_EVERY_S
            self._reader.refresh(_wall_us())
            if self._news.take_released():
                self._waiting = [entry for entry in self._waiting if not self._skip(entry[2])]
                heapq.heapify(self._waiting)
        if now_s >= self._rest_until_s:
            for errands in self._errands:
                errands.turn(now_s)
        if self._floor is not None:
            self._floor.turn(now_s)

    def _wait(self, parcel: Parcel, until_us: int) -> None:
        heapq.heappush(self._waiting, (until_us, next(self._numbers), parcel))

    def _skip(self, parcel: Parcel) -> bool:
        """Whether an early release has brought it back already; then it is settled."""
        meta = parcel.meta
        name = Name(meta.pipe, meta.destination)
        if meta.asked_us or name not in self._news.ahead:
            return False
        offset = parcel.message.offset()
        if not self._news.is_ahead(name, self._lane.slots.place(parcel.slot), offset):
            return False
        self.acked(Passed(parcel.slot, offset, meta, _fact(meta, Fact.RELEASED)))
        return True

    # -- forwarding ------------------------------------------------------------------------------------------------

    def _forward(self, parcel: Parcel, now_us: int) -> None:
        """Out if it is due and its destination's turn has come; else to where it waits for that."""
        meta = parcel.meta
        due_us = now_us if self._was_left_behind(parcel) else parcel.due_us
        if due_us <= now_us and not meta.paced:
            due_us, paced = self._moment(meta, now_us, _wall_us())
            if due_us > now_us:  # the wait it was asked for is over: what it waits for now may be cut short
                waits = msgspec.structs.replace(meta, paced=paced, asked_us=0)
                parcel = parcel._replace(meta=waits, due_us=due_us)
        if due_us <= now_us:
            self._pass_on(parcel)
        elif parcel.slot >= SLOTS_A_TOPIC and due_us - now_us <= AT_HAND_US:
            self._wait(parcel, due_us)
        else:
            self._delay(parcel, due_us, now_us)

    def _was_left_behind(self, parcel: Parcel) -> bool:
        """Whether an early release came after it was parked and did not find it, for it was in no tier yet.

        It follows the others at once, for nobody would look again. So does what a killed lane's follower takes anew.
        """
        if parcel.slot >= SLOTS_A_TOPIC or parcel.meta.asked_us:
            return False
        parked_us = parcel.message.timestamp()[1] * 1_000
        return self._news.was_released_since(Name(parcel.meta.pipe, parcel.meta.destination), parked_us)

    def _moment(self, meta: Meta, now_us: int, wall_us: int) -> tuple[int, bool]:
        """When a message that is due may come back, and whether that moment is its own.

        Of a destination whose breaker is not closed a few come back, as probes; the others wait: an early release
        brings them as soon as it is well, and while it does, nothing comes on top of it. Nobody waits beyond the end of
        its span: transmit then has the last word.
        """
        name = Name(meta.pipe, meta.destination)
        record = self._lane.table.destination(*name)
        shut_until_us = self._news.shut_until_us(name, record.version if record else 0)
        if self._news.is_releasing(name, wall_us):
            moment_us, paced = now_us + RELEASING_US, False
        elif shut_until_us is None:
            moment_us, paced = self._pace.moment_us(name, now_us), True
        else:
            shut_us = min(max(0, shut_until_us - wall_us), SHUT_US)
            moment_us, paced = self._probes.moment_us(name, now_us + shut_us), True
            if moment_us > now_us + PROBED_WITHIN_US:
                moment_us, paced = now_us + UNWELL_US, False
        if record is not None and meta.first_us:
            moment_us = min(moment_us, now_us + meta.first_us + record.to.retry.span_s * 1_000_000 - wall_us)
        return max(moment_us, now_us), paced

    def _pass_on(self, parcel: Parcel) -> None:
        meta = msgspec.structs.replace(parcel.meta, paced=False)
        topic = self._topics["retry-out"]
        way = way_out(meta, parcel.message.key(), topic.partitions)
        self._send(topic, parcel._replace(meta=meta), way, [], _fact(meta, Fact.RELEASED))

    def _delay(self, parcel: Parcel, due_us: int, now_us: int) -> None:
        """To a tier. The fact is the one transmit has told: told again, it says how far the tiers hold this bucket."""
        wall_us = _wall_us()
        due_us += wall_us - now_us
        parcel = parcel._replace(meta=msgspec.structs.replace(parcel.meta, not_before_us=due_us))
        delay = delay_until(due_us, wall_us)
        more = [(LEAVE_HEADER, str(delay.leave_us).encode())]
        topic = self._topics[delay.tier]
        way = way_in(parcel.meta, parcel.message.key(), topic.partitions)
        self._send(topic, parcel, way, more, _fact(parcel.meta, Fact.PARKED))

    def _bury(self, parcel: Parcel, cause: str, detail: str) -> None:
        meta, message = parcel.meta, parcel.message
        node = transmit_node(meta.destination)
        self._lane.tally.add(f"dead: pipe={meta.pipe} destination={meta.destination} cause={cause}")
        fact = FactKey(node, Fact.DEAD, dead_detail(cause, meta.life), meta.child)
        token = Passed(parcel.slot, message.offset(), meta, fact)
        original = (*self._lane.slots.place(parcel.slot), message.offset())
        death = Death(node, cause, detail)
        headers = plain(parcel.headers)
        dead = msgspec.structs.replace(meta, stopwatch=passed_on(meta, _wall_us(), Slice.DEAD_LETTER))
        self._letters.send(token, death, meta=dead, headers=headers, value=message.value(), original=original)

    def _send(self, topic: TopicRecord, parcel: Parcel, way: dict[str, Any], more: Headers, fact: FactKey) -> None:
        message, meta = parcel.message, parcel.meta
        headers = [(META_HEADER, encode_meta(meta)), *plain(parcel.headers)[1:], *more]
        if not fits(message.value(), way.get("key"), headers):
            self._bury(parcel, TOO_LARGE, "the message is too large to be kept for a retry")
            return
        token = Passed(parcel.slot, message.offset(), meta, fact)
        self._lane.usage.add(meta.pipe, 1, len(message.value() or b""), 1)
        self._lane.outbox.send(topic.name, token, value=message.value(), headers=headers, **way)

    # -- the loop's questions --------------------------------------------------------------------------------------

    def acked(self, token: Any) -> None:
        """The next topic has it."""
        if isinstance(token, Passed):
            slot, offset, meta, fact = token
            self._lane.facts.add(meta.pipe, meta.bucket, fact, meta.position)
            self._lane.settle(slot, offset)
        elif isinstance(token, Moved):
            token.carrier.stored(token)

    def in_flight(self) -> int:
        """What waits for its time is not under way; a drain leaves it uncommitted."""
        return 0

    def backlog(self) -> int:
        """Nothing waits for a turn of its own here."""
        return 0

    def patience_s(self) -> float:
        """Short while reports are due or errands are under way, else until the next message leaves."""
        if self._lane.outbox.in_flight or any(errands.is_busy for errands in self._errands):
            return BUSY_WAIT_S
        if not self._waiting:
            return IDLE_WAIT_S
        return min(IDLE_WAIT_S, max(BUSY_WAIT_S, (self._waiting[0][0] - self._clock.now_us()) / 1e6))

    def report(self) -> None:
        """How far the errands have come."""
        for errands in self._errands:
            errands.report()

    def forget(self, slots: Iterable[int]) -> None:
        """The new owner reads them again."""
        gone = set(slots)
        self._waiting = [entry for entry in self._waiting if entry[2].slot not in gone]
        heapq.heapify(self._waiting)
        self._rest_until_s = time.monotonic() + REST_S

    def give_back(self) -> None:
        """What waits stays where it is; an errand goes on where it has got to, in another lane."""
        self._waiting = []
        self._rest_until_s = float("inf")

    def close(self) -> None:
        """Leave the topics that are read beside the lane's own."""
        for errands in self._errands:
            errands.close()
        if self._floor is not None:
            self._floor.close()
        self._reader.close()


def _fact(meta: Meta, fact: Fact) -> FactKey:
    return FactKey(transmit_node(meta.destination), fact, str(meta.attempt), meta.child)


def _wall_us() -> int:
    return time.time_ns() // 1_000
