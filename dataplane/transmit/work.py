"""Work of a transmit lane: send each record to its destination, retry locally, then schedule a retry or dead-letter.

The same class serves first attempts (lane kind `transmit`, topic egress) and global retries (`transmit-retry`, topic
retry-out) in separate lanes, so that retries never delay first attempts.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from confluent_kafka import Message

from dataplane.causes import Cause
from dataplane.ledger.meta import Headers, MessageMeta
from dataplane.runtime.lanes.context import BUSY_WAIT_S, IDLE_WAIT_S, LaneContext
from dataplane.runtime.lanes.poison import CRASHES_DETAIL
from dataplane.transmit.deliveries.delivery import Delivery, DeliveryBatch, cancelled_deliveries
from dataplane.transmit.deliveries.settled_units import UnitRound
from dataplane.transmit.destinations.breaker_gossip import BreakerGossip
from dataplane.transmit.destinations.registry import TargetRegistry
from dataplane.transmit.http.sender import HttpPolicy, HttpSender
from dataplane.transmit.key_order import KeyOrder
from dataplane.transmit.outcomes.attempts import AttemptBook
from dataplane.transmit.outcomes.outcomes import Outcomes
from dataplane.transmit.outcomes.responses import ResponseHandler
from dataplane.transmit.postgres.sender import PostgresSender
from dataplane.transmit.queues import DeliveryQueues
from dataplane.transmit.records.writer import RecordWriter
from dataplane.transmit.senders import Senders
from dataplane.transmit.slow_lane_relief import SlowLaneRelief
from dataplane.transmit.traces import TracedAttemptBook, TransmitTracing

CUT_SHORT_DELAY_US: Final = 1_000_000


class TransmitWork:
    """Parallel sends with a total timeout, under each destination's limits and breaker."""

    def __init__(self, lane: LaneContext) -> None:
        self._lane = lane
        self._targets = TargetRegistry(lane)
        settings = lane.settings
        ca_file, own = settings.destination_ca, settings.own_ingest
        policy = HttpPolicy(settings.destination_allow, settings.https_only, ca_file, own)
        self._sender = HttpSender(policy)
        self._order = KeyOrder(lane)
        self._ends = Outcomes(lane, self._order)
        name = f"{lane.identity.cell}-{lane.identity.writer}-kept"
        self._writer = RecordWriter(settings.kafka, name, lane.cell.topics["lake"].name)
        self._senders = Senders(self._sender, PostgresSender(policy), self._writer)
        self._queues = DeliveryQueues(lane, self._ends, self._senders, self._order)
        self._book = AttemptBook(lane)
        if lane.tracing is not None:
            traces = TransmitTracing(lane.tracing)
            self._queues.request_of = traces.request_of
            self._book = TracedAttemptBook(lane, traces)
        self._sender.wants_details = self._book.wants
        self._answers = ResponseHandler(self._ends, self._queues, self._book, self._order)
        self._relief = SlowLaneRelief(lane, self._ends, self._queues, self._senders)
        self._gossip = BreakerGossip(lane, self._targets)

    def process(self, messages: Sequence[Message]) -> None:
        """Queue each message at its destination, unless this host has already settled its unit."""
        now_us, now_s = time.time_ns() // 1_000, time.monotonic()
        for message, meta, headers in self._lane.read_all(messages):
            self._admit(message, meta, headers, now_s, now_us)

    def _admit(self, message: Message, meta: MessageMeta, headers: Headers, now_s: float, now_us: int) -> None:
        slot_offset = (self._lane.slots.of(message), message.offset())
        unit = UnitRound(meta.account, meta.destination, meta.child, meta.attempt, meta.position)
        if self._ends.settled_before(unit, meta.bucket, slot_offset):
            return
        duplicate = self._ends.under_way.get(unit)
        if duplicate is not None:
            duplicate.places.append(slot_offset)
            return
        target = self._targets.find(meta.pipe, meta.destination)
        target.note_read(meta, now_s)
        key, body = message.key(), message.value() or b""
        send = Delivery(unit, meta, target, headers, key, body, [slot_offset], now_s, now_us)
        self._ends.under_way[unit] = send
        self._queues.add(send)

    def dead_letter_poison(self, message: Message) -> None:
        """Dead-letter a message that crashes lanes, without sending it."""
        slot_offset = (self._lane.slots.of(message), message.offset())
        for _, meta, headers in self._lane.read_all([message]):
            target = self._targets.find(meta.pipe, meta.destination)
            unit = UnitRound(meta.account, meta.destination, meta.child, meta.attempt, meta.position)
            taken = (time.monotonic(), time.time_ns() // 1_000)
            send = Delivery(unit, meta, target, headers, message.key(), message.value() or b"", [slot_offset], *taken)
            self._ends.under_way[unit] = send
            self._ends.dead_letter(send, Cause.CRASHES_LANE, CRASHES_DETAIL)

    def poll(self) -> None:
        """Start sends, move bytes, and handle the responses that arrived."""
        now_s = time.monotonic()
        self._order.poll(now_s)
        self._queues.poll(now_s, shared=self._targets.shared)
        for answer in self._senders.poll(BUSY_WAIT_S):
            token = answer.token
            if isinstance(token, Delivery):
                self._answers.take(token, answer, now_s)
            elif isinstance(token, DeliveryBatch):
                self._answers.take_batch(token, answer, now_s)
            else:
                token.ended(answer, now_s)  # a TokenRequest
        self._relief.poll(now_s)
        self._gossip.poll(now_s)
        self._ends.flush()

    def on_delivery(self, token: Any) -> None:
        """Settle a unit whose retry, dead-letter or held record is stored."""
        self._ends.on_delivery(token)

    def report(self) -> None:
        """Produce the attempts since the last checkpoint."""
        self._book.report()

    def in_flight(self) -> int:
        """Return the number of units queued, pausing or being sent.

        Messages that wait in this lane behind others of their key do not count: the next lane can hold them as well.
        """
        return len(self._ends.under_way) - self._queues.in_place()

    def backlog(self) -> int:
        """Return 0: the destination queues count as in flight."""
        return 0

    def poll_timeout_s(self) -> float:
        """Return how long the loop may wait for messages: 0 while bytes move, because `poll` waits on the sockets."""
        if self._sender.active:
            return 0.0
        if self._lane.producer.in_flight or self._writer.active or self._senders.postgres.active:
            return BUSY_WAIT_S
        return min(IDLE_WAIT_S, max(BUSY_WAIT_S, self._queues.rest_s(time.monotonic())))

    def on_revoked(self, slots: Iterable[int]) -> None:
        """Leave sends that have not begun to the new owner; those that have may end while the lane waits a moment."""
        gone = set(slots)
        self._queues.forget(lambda send: all(slot in gone for slot, _ in send.places))
        for slot in gone:
            self._order.forget(slot)

    def on_drain_timeout(self) -> None:
        """Schedule retries for sends that began and are unanswered; sends that never began stay uncommitted."""
        untried, tried = self._queues.empty()
        self._ends.on_drain_timeout(untried)
        tried += cancelled_deliveries(self._senders.cancel(lambda _token: True))
        for send in tried:
            if send.is_ordered and self._order.retries:
                self._ends.on_drain_timeout([send])  # stays uncommitted: the next lane reads it in its order
            else:
                self._ends.schedule_retry(send, time.time_ns() // 1_000 + CUT_SHORT_DELAY_US)

    def close(self) -> None:
        """Close connections and files."""
        self._senders.close()
        self._gossip.close()
        self._order.close()
        self._ends.close()
