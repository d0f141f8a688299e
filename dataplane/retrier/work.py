"""The retrier lane's work: retry-in -> delay tiers -> retry-out. Never early, late by at most the smallest tier.

Records store wall times, because waits outlive processes; the lane measures by a steady clock. A stored time becomes a
duration when it is read (`remaining_us`), and a wall time again when it is written.

A message moves from topic to topic and is settled when the next topic has stored it. Messages of a tier stay
uncommitted until they leave. The lane holds only the head of each partition, in small ack windows that pause the
partition: the backlog stays in Kafka, no buffer grows, no message is dropped, and the lane never sleeps.
"""

import heapq
import itertools
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from confluent_kafka import Message

from dataplane.causes import Cause
from dataplane.ledger.breakdown import Slice
from dataplane.ledger.deadletter import DeadLetterReason
from dataplane.ledger.facts import Fact, FactKey, dead_detail
from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta, encode_meta
from dataplane.ledger.stopwatch import forward_stamp
from dataplane.names import transmit_node
from dataplane.retrier.covered_messages import CoveredMessages
from dataplane.retrier.early_release import EarlyRelease
from dataplane.retrier.low_watermarks import LowWatermarks
from dataplane.retrier.redriver import RedrivenToken
from dataplane.retrier.redrives import Redrives
from dataplane.retrier.release_pacer import DestinationKey, ReleasePacer
from dataplane.retrier.retry_messages import (
    LEAVE_HEADER,
    PassedOnToken,
    RetryMessage,
    delay_partition,
    leave_us,
    retry_out_partition,
    without_leave_header,
)
from dataplane.retrier.signal_state import EXPECTED_US, SHUT_US, SignalReader
from dataplane.retrier.tiers import delay_until, remaining_us
from dataplane.runtime.clock import SteadyClock
from dataplane.runtime.lanes.context import BUSY_WAIT_S, IDLE_WAIT_S, LaneContext
from dataplane.runtime.lanes.deadletters import DeadLetterWriter, fits
from dataplane.runtime.lanes.poison import CRASHES_DETAIL
from dataplane.runtime.lanes.slots import SLOTS_A_TOPIC
from dataplane.tables.records import TopicRecord

WINDOW: Final = 2_000  # messages of a partition that the lane holds at once
WINDOW_BYTES: Final = 2 * 1024 * 1024
A_TURN: Final = 5_000  # messages forwarded before the loop polls again
KEPT_IN_MEMORY_US: Final = 1_000_000  # a message due this soon stays in memory instead of another pass through a tier
PROBES_PER_S: Final = 5.0  # returned for a destination with an open breaker: enough to notice its recovery
PROBED_WITHIN_US: Final = 30_000_000
RELEASING_US: Final = 10_000_000
UNHEALTHY_US: Final = 300_000_000  # delay of all other messages of such a destination
REFRESH_EVERY_S: Final = 0.2
REVIEW_EVERY_S: Final = 1.0  # of the messages that wait for an early release
SIGNALS_WITHIN_S: Final = 5.0  # a lane that has just started knows by then which breakers are open
SIGNALS_CHECK_US: Final = 200_000
REST_S: Final = 6.0  # no redrives or early releases after a rebalance


class RetrierWork:
    """Forwards messages that are due, and delays the others."""

    def __init__(self, lane: LaneContext) -> None:
        self._lane = lane
        lane.bound_windows(WINDOW, WINDOW_BYTES)
        self._topics = lane.cell.topics
        self._letters = DeadLetterWriter(lane.producer, self._topics["dead"].name)
        self._pace = ReleasePacer(lane.settings.retry_rate_per_s)
        self._probes = ReleasePacer(PROBES_PER_S)
        self._waiting: list[tuple[int, int, RetryMessage]] = []  # heap by the time at which the message leaves
        self._numbers = itertools.count()
        self._clock = SteadyClock()
        self._reader = SignalReader(lane.settings.kafka, self._topics["signals"].name)
        self._signal_state = self._reader.state
        self._background: list[Redrives | EarlyRelease] = []
        self._low_watermarks: LowWatermarks | None = None
        if lane.identity.number == 0:
            self._background = [Redrives(lane, self._reader), EarlyRelease(lane, self._reader)]
            self._low_watermarks = LowWatermarks(lane)
        self._covered = CoveredMessages()
        self._refresh_due_s = self._rest_until_s = self._review_due_s = 0.0
        self._signals_due_s = time.monotonic() + SIGNALS_WITHIN_S

    # -- input -----------------------------------------------------------------------------------------------------

    def process(self, messages: Sequence[Message]) -> None:
        """Forward messages of retry-in at once, to a tier or out; hold messages of a tier until they leave it."""
        now_us, wall_us = self._clock.now_us(), _wall_us()
        for message, meta, headers in self._lane.read_all(messages):
            slot, stored_us = self._lane.slots.of(message), message.timestamp()[1] * 1_000
            until_us = meta.not_before_us if slot < SLOTS_A_TOPIC else leave_us(headers)
            leaves_us = now_us + remaining_us(until_us, stored_us, steady_us=now_us, wall_us=wall_us)
            more_us = max(0, meta.not_before_us - until_us)
            retry = RetryMessage(slot, message, meta, headers, leaves_us + more_us)
            if slot < SLOTS_A_TOPIC:
                self._forward(retry, now_us)
            elif not self._skip(retry):
                self._wait(retry, leaves_us)

    def dead_letter_poison(self, message: Message) -> None:
        """Dead-letter a message that crashed the lane, at the node of its destination."""
        for _, meta, headers in self._lane.read_all([message]):
            self._dead_letter(
                RetryMessage(self._lane.slots.of(message), message, meta, headers), Cause.CRASHES_LANE, CRASHES_DETAIL
            )

    def poll(self) -> None:
        """Forward the messages that leave their tier now; then advance redrives and early releases."""
        now_us = self._clock.now_us()
        for _ in range(A_TURN):
            if not self._waiting or self._waiting[0][0] > now_us:
                break
            retry = heapq.heappop(self._waiting)[2]
            if not self._skip(retry):
                self._forward(retry, now_us)
        self._poll_background(time.monotonic())

    def _poll_background(self, now_s: float) -> None:
        if now_s >= self._refresh_due_s:
            self._refresh_due_s = now_s + REFRESH_EVERY_S
            self._reader.refresh(_wall_us())
            if self._signal_state.take_released():
                self._waiting = [entry for entry in self._waiting if not self._skip(entry[2])]
                heapq.heapify(self._waiting)
                self._review_due_s = now_s
        if now_s >= self._review_due_s:
            self._review_due_s = now_s + REVIEW_EVERY_S
            self._review_covered()
        if now_s >= self._rest_until_s:
            for job in self._background:
                job.poll(now_s)
        if self._low_watermarks is not None:
            self._low_watermarks.poll(now_s)

    def _review_covered(self) -> None:
        """Settle the messages that the release has returned; keep the others, or forward them if it has ended."""
        now_us = self._clock.now_us()
        for retry in self._covered.take_all():
            if not self._skip(retry):
                self._forward(retry, now_us)

    def _wait(self, retry: RetryMessage, until_us: int) -> None:
        heapq.heappush(self._waiting, (until_us, next(self._numbers), retry))

    def _skip(self, retry: RetryMessage) -> bool:
        """Settle a message that an early release has already returned; return False for any other."""
        meta = retry.meta
        name = DestinationKey(meta.pipe, meta.destination)
        if meta.asked_us or name not in self._signal_state.early_releases:
            return False
        offset = retry.message.offset()
        if not self._signal_state.was_returned_early(name, self._lane.slots.place(retry.slot), offset):
            return False
        self.on_delivery(PassedOnToken(retry.slot, offset, meta, _fact(meta, Fact.RELEASED)))
        return True

    # -- forwarding ------------------------------------------------------------------------------------------------

    def _forward(self, retry: RetryMessage, now_us: int) -> None:
        """Produce a message to retry-out if it is due and within its destination's rate, else let it wait."""
        meta = retry.meta
        due_us = now_us if self._was_left_behind(retry) else retry.due_us
        is_due = due_us <= now_us
        if is_due and not self._knows_signals():
            self._wait(retry, now_us + SIGNALS_CHECK_US)
            return
        if is_due and self._is_covered(retry, now_us) and self._covered.keep(retry):
            return
        if is_due and not meta.paced:
            due_us, paced = self._moment(meta, now_us, _wall_us())
            if due_us > now_us:
                retry = retry._replace(meta=msgspec.structs.replace(meta, paced=paced), due_us=due_us)
        if due_us <= now_us:
            self._pass_on(retry)
        elif retry.slot >= SLOTS_A_TOPIC and due_us - now_us <= KEPT_IN_MEMORY_US:
            self._wait(retry, due_us)  # its record keeps its Retry-After: no release returns it
        else:
            if is_due:  # Retry-After is over: an early release may cut short the new wait
                retry = retry._replace(meta=msgspec.structs.replace(retry.meta, asked_us=0))
            self._delay(retry, due_us, now_us)

    def _knows_signals(self) -> bool:
        """Return True once the lane has read which destinations are healthy, or if that takes too long."""
        return self._reader.at_end or time.monotonic() >= self._signals_due_s

    def _is_covered(self, retry: RetryMessage, now_us: int) -> bool:
        """Return True if an early release returns this message of a tier: the running one, or one that is expected.

        The message waits for an expected one no longer than EXPECTED_US, by the lane's clock, nor than its horizon.
        """
        meta = retry.meta
        if retry.slot < SLOTS_A_TOPIC or meta.asked_us:
            return False
        name, wall_us = DestinationKey(meta.pipe, meta.destination), _wall_us()
        if now_us - retry.due_us < EXPECTED_US and self._signal_state.expects_release(name, wall_us):
            horizon_us = self._horizon_us(meta, now_us, wall_us)
            if horizon_us is None or now_us < horizon_us:
                return True
        place = self._lane.slots.place(retry.slot)
        return self._signal_state.will_be_returned(name, place, retry.message.offset(), wall_us)

    def _was_left_behind(self, retry: RetryMessage) -> bool:
        """Return True if an early release was reported after the retry was scheduled: the retry was in no tier yet.

        Such a message follows the others at once, because no later scan would find it. So does a message that the
        successor of a killed lane reads again.
        """
        if retry.slot >= SLOTS_A_TOPIC or retry.meta.asked_us:
            return False
        scheduled_us = retry.message.timestamp()[1] * 1_000
        return self._signal_state.was_released_since(
            DestinationKey(retry.meta.pipe, retry.meta.destination), scheduled_us
        )

    def _moment(self, meta: MessageMeta, now_us: int, wall_us: int) -> tuple[int, bool]:
        """Return when a due message may leave, and whether the pacer has reserved that time for it.

        A destination whose breaker is not closed gets a few messages as probes. The others wait: an early release
        returns them as soon as the destination is healthy, and while it runs, no other messages are added. No message
        waits beyond the end of its retry horizon: transmit then makes the final decision.
        """
        name = DestinationKey(meta.pipe, meta.destination)
        record = self._lane.table.destination(*name)
        shut_until_us = self._signal_state.shut_until_us(name, record.version if record else 0)
        if self._signal_state.is_releasing(name, wall_us):
            moment_us, paced = now_us + RELEASING_US, False
        elif shut_until_us is None:
            moment_us, paced = self._pace.moment_us(name, now_us), True
        else:
            shut_us = min(max(0, shut_until_us - wall_us), SHUT_US)
            moment_us, paced = self._probes.moment_us(name, now_us + shut_us), True
            if moment_us > now_us + PROBED_WITHIN_US:
                moment_us, paced = now_us + UNHEALTHY_US, False
        horizon_us = self._horizon_us(meta, now_us, wall_us)
        if horizon_us is not None:
            moment_us = min(moment_us, horizon_us)
        return max(moment_us, now_us), paced

    def _horizon_us(self, meta: MessageMeta, now_us: int, wall_us: int) -> int | None:
        """Return the end of a message's retry horizon by the lane's clock; None if it is not known."""
        record = self._lane.table.destination(meta.pipe, meta.destination)
        if record is None or not meta.first_us:
            return None
        return now_us + meta.first_us + record.to.retry.span_s * 1_000_000 - wall_us

    def _pass_on(self, retry: RetryMessage) -> None:
        meta = msgspec.structs.replace(retry.meta, paced=False)
        topic = self._topics["retry-out"]
        routing = retry_out_partition(self._lane.table, meta, retry.message.key(), topic.partitions)
        self._send(topic, retry._replace(meta=meta), routing, [], _fact(meta, Fact.RELEASED))

    def _delay(self, retry: RetryMessage, due_us: int, now_us: int) -> None:
        """Produce a message to a tier. It repeats transmit's fact, to show up to where the tiers hold this bucket."""
        wall_us = _wall_us()
        due_us += wall_us - now_us
        retry = retry._replace(meta=msgspec.structs.replace(retry.meta, not_before_us=due_us))
        delay = delay_until(due_us, wall_us)
        extra_headers = [(LEAVE_HEADER, str(delay.leave_us).encode())]
        topic = self._topics[delay.tier]
        routing = delay_partition(retry.meta, retry.message.key(), topic.partitions)
        self._send(topic, retry, routing, extra_headers, _fact(retry.meta, Fact.PARKED))

    def _dead_letter(self, retry: RetryMessage, cause: str, detail: str) -> None:
        meta, message = retry.meta, retry.message
        node = transmit_node(meta.destination)
        self._lane.tally.add(f"dead: pipe={meta.pipe} destination={meta.destination} cause={cause}")
        fact = FactKey(node, Fact.DEAD, dead_detail(cause, meta.life), meta.child)
        token = PassedOnToken(retry.slot, message.offset(), meta, fact)
        if meta.replay:  # the dead letters of a pipe are its originals
            self.on_delivery(token)
            return
        original = (*self._lane.slots.place(retry.slot), message.offset())
        why_dead = DeadLetterReason(node, cause, detail)
        headers = without_leave_header(retry.headers)
        dead = msgspec.structs.replace(meta, stopwatch=forward_stamp(meta, _wall_us(), Slice.DEAD_LETTER))
        self._letters.send(token, why_dead, meta=dead, headers=headers, value=message.value(), original=original)

    def _send(
        self, topic: TopicRecord, retry: RetryMessage, routing: dict[str, Any], extra_headers: Headers, fact: FactKey
    ) -> None:
        message, meta = retry.message, retry.meta
        headers = [(META_HEADER, encode_meta(meta)), *without_leave_header(retry.headers)[1:], *extra_headers]
        if not fits(message.value(), routing.get("key"), headers):
            self._dead_letter(retry, Cause.TOO_LARGE, "the message is too large to be kept for a retry")
            return
        token = PassedOnToken(retry.slot, message.offset(), meta, fact)
        self._lane.usage.add(meta.pipe, 1, len(message.value() or b""), 1)
        self._lane.producer.send(topic.name, token, value=message.value(), headers=headers, **routing)

    # -- calls of the lane's loop ----------------------------------------------------------------------------------

    def on_delivery(self, token: Any) -> None:
        """Settle the message whose record the next topic has stored, and report its fact."""
        if isinstance(token, PassedOnToken):
            slot, offset, meta, fact = token
            self._lane.facts.add(meta.account, meta.bucket, fact, meta.position)
            self._lane.settle(slot, offset)
        elif isinstance(token, RedrivenToken):
            token.redriver.stored(token)

    def in_flight(self) -> int:
        """Return 0: a waiting message is not in flight, and a drain leaves it uncommitted."""
        return 0

    def backlog(self) -> int:
        """Return 0: the retrier has no queue of messages to process."""
        return 0

    def poll_timeout_s(self) -> float:
        """Return a short time while reports are due or redrives run, else the time until the next message leaves."""
        if self._lane.producer.in_flight or any(job.is_busy for job in self._background):
            return BUSY_WAIT_S
        if not self._waiting:
            return IDLE_WAIT_S
        return min(IDLE_WAIT_S, max(BUSY_WAIT_S, (self._waiting[0][0] - self._clock.now_us()) / 1e6))

    def report(self) -> None:
        """Report the progress of redrives and early releases."""
        for job in self._background:
            job.report()

    def on_revoked(self, slots: Iterable[int]) -> None:
        """Drop the messages of these slots; the new owner reads them again."""
        gone = set(slots)
        self._waiting = [entry for entry in self._waiting if entry[2].slot not in gone]
        heapq.heapify(self._waiting)
        self._covered.drop(gone)
        self._rest_until_s = time.monotonic() + REST_S

    def on_drain_timeout(self) -> None:
        """Drop the waiting messages, which stay uncommitted; another lane continues the redrives."""
        self._waiting = []
        self._covered.take_all()
        self._rest_until_s = float("inf")

    def close(self) -> None:
        """Close the consumers of all topics besides the lane's own."""
        for job in self._background:
            job.close()
        if self._low_watermarks is not None:
            self._low_watermarks.close()
        self._reader.close()


def _fact(meta: MessageMeta, fact: Fact) -> FactKey:
    return FactKey(transmit_node(meta.destination), fact, str(meta.attempt), meta.child)


def _wall_us() -> int:
    return time.time_ns() // 1_000
