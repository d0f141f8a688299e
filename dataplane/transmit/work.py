"""The transmit lane's work: send each egress record to its destination, try again a little, then park or bury it.

The same work serves first attempts (lane kind `transmit`, topic egress) and global retries (`transmit-retry`, topic
retry-out), so that retries never delay first attempts.
"""

import heapq
import itertools
import random
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from confluent_kafka import Message

from dataplane.ledger.facts import Fact
from dataplane.ledger.meta import Headers, Meta
from dataplane.names import transmit_node
from dataplane.runtime.crashes import CRASHES_DETAIL, CRASHES_LANE
from dataplane.runtime.lane import BUSY_WAIT_S, IDLE_WAIT_S, Lane
from dataplane.transmit.attempts import AttemptBook
from dataplane.transmit.ends import Ends
from dataplane.transmit.memory import Unit
from dataplane.transmit.request import request_headers
from dataplane.transmit.schedule import local_pause_s, next_try_us
from dataplane.transmit.sender import Answer, Post, Sender
from dataplane.transmit.sends import Send
from dataplane.transmit.shown import DEAD_LETTER_CHARS, shown
from dataplane.transmit.targets import Target, Targets
from dataplane.transmit.verdict import Outcome, judge

CUT_SHORT_DELAY_US: Final = 1_000_000
MAX_LOCAL_WAIT_S: Final = 10.0


class TransmitWork:
    """Parallel sends with a total timeout, per-destination concurrency, local tries, then retry-in or dead."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._targets = Targets(lane.table, lane.settings.fernet_keys)
        self._sender = Sender(lane.settings.destination_allow)
        self._ends = Ends(lane)
        self._book = AttemptBook(lane)
        self._ready: set[Target] = set()  # targets with something in their queue
        self._pausing: list[tuple[float, int, Send]] = []  # heap of local tries by monotonic time
        self._numbers = itertools.count()
        self._homeless: list[
            tuple[Message, Meta, Headers]
        ] = []  # the control table does not know their destination yet

    # -- taking ----------------------------------------------------------------------------------------------------

    def take(self, messages: Sequence[Message]) -> None:
        """Queue each message at its destination, unless this host has settled its unit before."""
        now_us = _now_us()
        for message, meta, headers in self._lane.read_all(messages):
            node = transmit_node(meta.destination)
            self._lane.lags.add((meta.pipe, node, meta.bucket, "in"), now_us - meta.event_time_us)
            self._admit(message, meta, headers)

    def _admit(self, message: Message, meta: Meta, headers: Headers) -> None:
        place = (self._lane.slots.of(message), message.offset())
        unit = Unit(meta.pipe, meta.destination, meta.child, meta.attempt, meta.position)
        if self._ends.settled_before(unit, meta.bucket, place):
            return
        twin = self._ends.under_way.get(unit)
        if twin is not None:
            twin.places.append(place)
            return
        target = self._targets.find(meta.pipe, meta.destination)
        if target is None:
            self._homeless.append((message, meta, headers))
            return
        send = Send(unit, meta, target, headers, message.key(), message.value() or b"", [place])
        self._ends.under_way[unit] = send
        if target.record.state == "removed":
            self._ends.finish(send, Fact.CANCELLED, "")
        else:
            target.queue.append(send)
            self._ready.add(target)

    def condemn(self, message: Message) -> None:
        """Dead at this destination, unsent."""
        place = (message.partition(), message.offset())
        for _, meta, headers in self._lane.read_all([message]):
            target = self._targets.find(meta.pipe, meta.destination)
            if target is None:
                self._homeless.append((message, meta, headers))
                continue
            unit = Unit(meta.pipe, meta.destination, meta.child, meta.attempt, meta.position)
            send = Send(unit, meta, target, headers, message.key(), message.value() or b"", [place])
            self._ends.under_way[unit] = send
            self._ends.bury(send, CRASHES_LANE, CRASHES_DETAIL)

    # -- sending ---------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Start what may start, move bytes, settle what ended."""
        if self._homeless:
            homeless, self._homeless = self._homeless, []
            for entry in homeless:
                self._admit(*entry)
        self._resume_local_tries()
        for target in list(self._ready):
            self._start(target)
        for answer in self._sender.turn(BUSY_WAIT_S):
            self._answered(answer.token, answer)
        self._ends.flush()

    def _start(self, target: Target) -> None:
        """Begin as many of a target's sends as it and the sender have room for."""
        queue = target.queue
        room = 0 if target.locked else min(target.record.to.concurrency - target.active, self._sender.room)
        while room > 0 and queue:
            send = queue.popleft()
            if self._may_begin(send):
                self._begin(send)
                room -= 1
        if not queue:
            self._ready.discard(target)

    def _may_begin(self, send: Send) -> bool:
        """A send begins only while a place it was read from is ours; else the new owner sends it."""
        if any(self._lane.may_send(slot) for slot, _ in send.places):
            return True
        self._ends.give_up([send])
        return False

    def _begin(self, send: Send) -> None:
        target, meta = send.target, send.meta
        target.active += 1
        send.tries += 1
        send.began_us = _now_us()
        if not meta.first_us:
            meta.first_us = send.began_us
        headers = request_headers(send, send.began_us // 1_000_000)
        post = Post(send, target.record.to.url, headers, send.body, target.timeout_ms, target.keep_bytes)
        self._sender.begin(post)

    def _resume_local_tries(self) -> None:
        now = time.monotonic()
        while self._pausing and self._pausing[0][0] <= now:
            send = heapq.heappop(self._pausing)[2]
            send.target.queue.appendleft(send)
            self._ready.add(send.target)

    # -- after the answer ------------------------------------------------------------------------------------------

    def _answered(self, send: Send, answer: Answer) -> None:
        target = send.target
        target.active -= 1
        verdict = judge(
            answer.status, answer.curl_code, forbidden=answer.forbidden, rules=target.rules, body=answer.body
        )
        match verdict.outcome:
            case Outcome.DELIVERED:
                self._book.delivered(send, answer)
                self._ends.finish(send, Fact.DELIVERED, "")
            case Outcome.DEAD:
                self._bury(send, answer, verdict.cause, _reason(verdict.cause, answer))
            case Outcome.RECOVERABLE:
                self._try_again(send, answer, verdict.cause)
            case Outcome.GONE:
                self._book.failed(send, answer, "held", _reason(verdict.cause, answer))
                self._ends.hold(send)

    def _bury(self, send: Send, answer: Answer, cause: str, reason: str) -> None:
        self._book.failed(send, answer, "dead", reason)
        self._ends.bury(send, cause, reason, _answer_text(send, answer))

    def _try_again(self, send: Send, answer: Answer, cause: str) -> None:
        reason, retry = _reason(cause, answer), send.target.record.to.retry
        pause_s = local_pause_s(send.tries, random.random())  # noqa: S311 (jitter, not a secret)
        spent_s = send.waited_s + pause_s + answer.total_us / 1_000_000
        if send.tries < retry.local_tries and spent_s < MAX_LOCAL_WAIT_S:
            send.waited_s = spent_s
            self._book.failed(send, answer, "retry", reason)
            heapq.heappush(self._pausing, (time.monotonic() + pause_s, next(self._numbers), send))
            return
        meta = send.meta
        due_us = next_try_us(meta.tried + 1, now_us=_now_us(), first_us=meta.first_us, span_s=retry.span_s)
        if due_us is None:
            self._bury(send, answer, "gave-up", f"gave up: {reason}")
        else:
            self._book.failed(send, answer, "parked", reason, due_us)
            self._ends.park(send, due_us)

    def acked(self, token: Any) -> None:
        """A parked, dead or held record is stored."""
        self._ends.acked(token)

    def report(self) -> None:
        """The attempts since the last checkpoint."""
        self._book.report()

    # -- the loop's questions --------------------------------------------------------------------------------------

    def in_flight(self) -> int:
        """Units queued, pausing or being sent."""
        return len(self._ends.under_way)

    def patience_s(self) -> float:
        """No wait while bytes move: `turn` waits on the sockets."""
        if self._sender.active:
            return 0.0
        return BUSY_WAIT_S if self._ends.under_way or self._lane.outbox.in_flight else IDLE_WAIT_S

    def forget(self, slots: Iterable[int]) -> None:
        """Sends not begun are left to the new owner; those begun may end while the lane waits a moment."""
        gone = set(slots)

        def lost(send: Send) -> bool:
            return all(slot in gone for slot, _ in send.places)

        for target in self._ready:
            given_up = [send for send in target.queue if lost(send)]
            for send in given_up:
                target.queue.remove(send)
            self._ends.give_up(given_up)
        self._ends.give_up(send for _, _, send in self._pausing if lost(send))
        self._pausing = [entry for entry in self._pausing if not lost(entry[2])]
        heapq.heapify(self._pausing)
        self._homeless = [entry for entry in self._homeless if self._lane.slots.of(entry[0]) not in gone]

    def give_back(self) -> None:
        """Drain is over: what has not been answered yet stays uncommitted if it never began, else it is parked."""
        for target in self._ready:
            self._ends.give_up(target.queue)
            target.queue.clear()
        for _, _, send in self._pausing:
            self._ends.park(send, _now_us() + CUT_SHORT_DELAY_US)
        self._pausing = []
        for send in self._sender.cancel_all():
            send.target.active -= 1
            self._ends.park(send, _now_us() + CUT_SHORT_DELAY_US)

    def close(self) -> None:
        """Close connections and files."""
        self._sender.close()
        self._ends.close()


def _reason(cause: str, answer: Answer) -> str:
    if answer.status:
        return f"{cause}: answered {answer.status}"
    return f"{cause}: {answer.message}"[:200] if answer.message else cause


def _answer_text(send: Send, answer: Answer) -> str:
    """The status and the beginning of the body, for the dead letter; "" if no answer came."""
    if not answer.status:
        return ""
    return f"{answer.status}\n{shown(answer.body, DEAD_LETTER_CHARS, send.target.secret_texts)}"


def _now_us() -> int:
    return time.time_ns() // 1_000
