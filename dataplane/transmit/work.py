"""The transmit lane's work: send each egress record to its destination, try again a little, then park or bury it.

The same work serves first attempts (lane kind `transmit`, topic egress) and global retries (`transmit-retry`, topic
retry-out), so that retries never delay first attempts.
"""

import time
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

from confluent_kafka import Message

from dataplane.ledger.meta import Headers, Meta
from dataplane.runtime.crashes import CRASHES_DETAIL, CRASHES_LANE
from dataplane.runtime.lane import BUSY_WAIT_S, IDLE_WAIT_S, Lane
from dataplane.transmit.answers import Answers
from dataplane.transmit.attempts import AttemptBook
from dataplane.transmit.ends import Ends
from dataplane.transmit.gossip import Gossip
from dataplane.transmit.memory import Unit
from dataplane.transmit.order import Order
from dataplane.transmit.queues import Queues
from dataplane.transmit.registry import Targets
from dataplane.transmit.relief import Relief
from dataplane.transmit.sender import Ground, Sender
from dataplane.transmit.sends import Parcel, Send, sends_of
from dataplane.transmit.traces import TracedBook, Traces
from dataplane.transmit.writer import Writer

CUT_SHORT_DELAY_US: Final = 1_000_000


class TransmitWork:
    """Parallel sends with a total timeout, under each destination's limits and breaker; then settle, park or bury."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._targets = Targets(lane)
        settings = lane.settings
        ca_file, own = settings.destination_ca, settings.own_ingest
        self._sender = Sender(Ground(settings.destination_allow, settings.https_only, ca_file, own))
        self._order = Order(lane)
        self._ends = Ends(lane, self._order)
        name = f"{lane.identity.cell}-{lane.identity.writer}-kept"
        self._writer = Writer(settings.kafka, name, lane.cell.topics["lake"].name)
        self._queues = Queues(lane, self._ends, self._sender, self._writer, self._order)
        self._book = AttemptBook(lane)
        if lane.tracing is not None:
            traces = Traces(lane.tracing)
            self._queues.request_of = traces.request_of
            self._book = TracedBook(lane, traces)
        self._answers = Answers(self._ends, self._queues, self._book, self._order)
        self._relief = Relief(lane, self._ends, self._queues, self._sender)
        self._gossip = Gossip(lane, self._targets)

    def take(self, messages: Sequence[Message]) -> None:
        """Queue each message at its destination, unless this host has settled its unit before."""
        now_us, now_s = time.time_ns() // 1_000, time.monotonic()
        for message, meta, headers in self._lane.read_all(messages):
            self._admit(message, meta, headers, now_s, now_us)

    def _admit(self, message: Message, meta: Meta, headers: Headers, now_s: float, now_us: int) -> None:
        place = (self._lane.slots.of(message), message.offset())
        unit = Unit(meta.pipe, meta.destination, meta.child, meta.attempt, meta.position)
        if self._ends.settled_before(unit, meta.bucket, place):
            return
        twin = self._ends.under_way.get(unit)
        if twin is not None:
            twin.places.append(place)
            return
        target = self._targets.find(meta.pipe, meta.destination)
        target.took(meta, now_s)
        send = Send(unit, meta, target, headers, message.key(), message.value() or b"", [place], now_s, now_us)
        self._ends.under_way[unit] = send
        self._queues.add(send)

    def condemn(self, message: Message) -> None:
        """Dead-letter a message for this destination, unsent."""
        place = (self._lane.slots.of(message), message.offset())
        for _, meta, headers in self._lane.read_all([message]):
            target = self._targets.find(meta.pipe, meta.destination)
            unit = Unit(meta.pipe, meta.destination, meta.child, meta.attempt, meta.position)
            taken = (time.monotonic(), time.time_ns() // 1_000)
            send = Send(unit, meta, target, headers, message.key(), message.value() or b"", [place], *taken)
            self._ends.under_way[unit] = send
            self._ends.bury(send, CRASHES_LANE, CRASHES_DETAIL)

    def turn(self) -> None:
        """Start what may start, move bytes, settle what ended."""
        now_s = time.monotonic()
        self._order.turn(now_s)
        self._queues.turn(now_s, shared=self._targets.shared)
        self._sender.tell_all = self._book.samples
        for answer in chain(self._sender.turn(BUSY_WAIT_S), self._writer.turn()):
            token = answer.token
            if isinstance(token, Send):
                self._answers.take(token, answer, now_s)
            elif isinstance(token, Parcel):
                self._answers.take_parcel(token, answer, now_s)
            else:
                token.ended(answer, now_s)  # a TokenFetch
        self._relief.turn(now_s)
        self._gossip.turn(now_s)
        self._ends.flush()

    def acked(self, token: Any) -> None:
        """A parked, dead or held record is stored."""
        self._ends.acked(token)

    def report(self) -> None:
        """The attempts since the last checkpoint."""
        self._book.report()

    def in_flight(self) -> int:
        """Units queued, pausing or being sent; what waits in place for its turn can do so in the next lane."""
        return len(self._ends.under_way) - self._queues.in_place()

    def backlog(self) -> int:
        """Nothing waits for a turn of its own here."""
        return 0

    def patience_s(self) -> float:
        """No wait while bytes move: `turn` waits on the sockets."""
        if self._sender.active:
            return 0.0
        if self._lane.outbox.in_flight or self._writer.active:
            return BUSY_WAIT_S
        return min(IDLE_WAIT_S, max(BUSY_WAIT_S, self._queues.rest_s(time.monotonic())))

    def forget(self, slots: Iterable[int]) -> None:
        """Sends not begun are left to the new owner; those begun may end while the lane waits a moment."""
        gone = set(slots)
        self._queues.forget(lambda send: all(slot in gone for slot, _ in send.places))
        for slot in gone:
            self._order.forget(slot)

    def give_back(self) -> None:
        """Drain is over: what has not been answered yet stays uncommitted if it never began, else it is parked."""
        untried, tried = self._queues.empty()
        self._ends.give_up(untried)
        tried += sends_of(self._sender.cancel_all())
        for send in tried:
            if send.is_ordered and self._order.retries:
                self._ends.give_up([send])  # it waits in place, and does so in the next lane
            else:
                self._ends.park(send, time.time_ns() // 1_000 + CUT_SHORT_DELAY_US)

    def close(self) -> None:
        """Close connections and files."""
        self._sender.close()
        self._writer.close()
        self._gossip.close()
        self._order.close()
        self._ends.close()
