"""The queues of a transmit lane: which sends begin now, and what becomes of those that should not wait here longer.

One thread and one window serve all destinations: a destination that cannot keep up is put aside, never waited for.
"""

import heapq
import itertools
import logging
import random
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from dataplane.ledger.facts import Fact
from dataplane.plan import StageError
from dataplane.runtime.lane import Lane
from dataplane.spec import Batch
from dataplane.transmit.batches import CONTENT_TYPES, ITEM_BYTES, batch_body, next_batch
from dataplane.transmit.ends import Ends
from dataplane.transmit.order import Order
from dataplane.transmit.request import RequestOf, batch_headers, request_of
from dataplane.transmit.sender import HOST_ERRORS, REQUEST_INVALID, Post, Sender
from dataplane.transmit.sends import Parcel, Send
from dataplane.transmit.signin import begin_fetch
from dataplane.transmit.targets import Course, Target
from dataplane.transmit.writer import Writer

log = logging.getLogger(__name__)

SHARED_S: Final = 60.0
AWAY_DELAY_S: Final = 10.0  # the smallest tier: until then others have had their turn
LOCKED_DELAY_S: Final = 60.0
AGAIN_S: Final = 1.0
REST_S: Final = 60.0
ASIDE_DELAY_US: Final = 1_000_000
IN_PLACE_CAP_US: Final = 60_000_000  # between tries of a message that others of its key wait behind
ORDERED_ROOM: Final = 2_000  # of one destination's ordered messages that wait in a retry lane; more go round
PUT_AWAY_A_TURN: Final = 500  # of one destination: a few milliseconds of producing, then others have their turn


class Queues:
    """Every send that waits: at its destination, or for the end of a pause between two local tries."""

    def __init__(self, lane: Lane, ends: Ends, sender: Sender, writer: Writer, order: Order) -> None:
        self._lane = lane
        self.request_of: RequestOf = request_of  # what each attempt of one message sends
        self._ends = ends
        self._order = order
        self._sender = sender
        self._writer = writer
        self._ready: set[Target] = set()  # targets with something in their queue
        self._pausing: list[tuple[float, int, Send]] = []  # heap of local tries by monotonic time
        self._numbers = itertools.count()
        self._shared: Callable[[float], bool] = lambda _since_s: False
        self._ordered: set[Target] = set()  # targets with something that waits for its turn
        self._early: list[Send] = []  # it is not known yet what may keep them back

    def add(self, send: Send) -> None:
        """Behind what waits at its destination already."""
        if not send.target.ordered or send.key is None:
            send.target.queue.append(send)
            self._ready.add(send.target)
        elif self._early:
            self._early.append(send)  # or it would overtake those
        else:
            self._add_ordered(send, time.monotonic())

    def add_later(self, send: Send, at_s: float) -> None:
        """A local try: before all others of its destination, once its pause is over."""
        heapq.heappush(self._pausing, (at_s, next(self._numbers), send))

    def add_together(self, sends: list[Send]) -> None:
        """Before all others of their destination, and in one request."""
        number = next(self._numbers)
        for send in reversed(sends):
            send.together = number
            send.target.queue.appendleft(send)
            self._ready.add(send.target)

    def turn(self, now_s: float, *, shared: Callable[[float], bool]) -> None:
        """Begin what may begin, put aside what may not. `shared` says whether others came in since some time."""
        self._shared = shared
        if self._pausing and self._pausing[0][0] <= now_s:
            self._resume(now_s)
        if self._early:
            early, self._early = self._early, []
            for send in early:
                self._add_ordered(send, now_s)
        turns = self._ends.turns
        for _ in range(min(len(turns), PUT_AWAY_A_TURN)):
            self._take_turn(turns.popleft())
        for target in list(self._ready):
            self._go(target, now_s)
            if not target.queue:
                self._ready.discard(target)

    def rest_s(self, now_s: float) -> float:
        """How long nothing here is due; 0 while something waits for room."""
        if self._ready or self._early or self._ends.turns:
            return 0.0
        return self._pausing[0][0] - now_s if self._pausing else REST_S

    def in_place(self) -> int:
        """How many wait in a retry lane behind others of their key, or for the next try of one."""
        if not self._order.retries:
            return 0
        pausing = sum(send.is_ordered for _, _, send in self._pausing)
        return pausing + sum(target.keys.count for target in self._ordered)

    def forget(self, lost: Callable[[Send], bool]) -> None:
        """Sends not begun that are lost to another lane."""
        for target in self._ordered:
            self._ends.give_up(target.keys.take_out(lost))
        self._early = [send for send in self._early if not lost(send)]
        self._ends.give_up(_take_from(self._ends.turns, lost))
        for target in self._ready:
            self._ends.give_up(_take_from(target.queue, lost))
        self._ends.give_up(send for _, _, send in self._pausing if lost(send))
        self._pausing = [entry for entry in self._pausing if not lost(entry[2])]
        heapq.heapify(self._pausing)

    def take_out(self, wanted: set[int]) -> list[Send]:
        """Take the sends of these identities (`id`) out, wherever they wait."""
        out = []
        for target in self._ordered:
            out += target.keys.take_out(lambda send: id(send) in wanted)
        for target in self._ready:
            out += _take_from(target.queue, lambda send: id(send) in wanted)
        out += _take_from(self._ends.turns, lambda send: id(send) in wanted)
        out += [send for send in self._early if id(send) in wanted]
        self._early = [send for send in self._early if id(send) not in wanted]
        out += [send for _, _, send in self._pausing if id(send) in wanted]
        self._pausing = [entry for entry in self._pausing if id(entry[2]) not in wanted]
        heapq.heapify(self._pausing)
        return out

    def put_aside(self, send: Send) -> None:
        """To retry-in, to make room."""
        if send.is_ordered and self._order.retries:
            send.target.keys.go_round(send, send.key or b"")
            self._ends.park(send, _now_us() + int(AWAY_DELAY_S * 1_000_000))
        else:
            self._ends.park(send, _now_us() + ASIDE_DELAY_US)

    def empty(self) -> tuple[list[Send], list[Send]]:
        """Everything that waits: what was never sent in this round, and what pauses between tries."""
        queued = [send for target in self._ordered for send in target.keys.take_out(lambda _send: True)]
        queued += [*self._early, *self._ends.turns]
        self._early = []
        self._ends.turns.clear()
        queued += [send for target in self._ready for send in target.queue]
        for target in self._ready:
            target.queue.clear()
        pausing = [send for _, _, send in self._pausing]
        self._ready.clear()
        self._pausing = []
        return [send for send in queued if not send.tries], [*pausing, *(send for send in queued if send.tries)]

    def _resume(self, now_s: float) -> None:
        """Pauses are over: to the heads of their queues, in the order in which they would have come."""
        due = []
        while self._pausing and self._pausing[0][0] <= now_s:
            due.append(heapq.heappop(self._pausing)[2])
        for send in reversed(due):
            send.target.queue.appendleft(send)
            self._ready.add(send.target)

    # -- order per key ---------------------------------------------------------------------------------------------

    def _add_ordered(self, send: Send, now_s: float) -> None:
        """Give a message its turn, or let it wait behind an earlier one of its key.

        In either kind of lane nothing is sent before it is known which keys are blocked or held.
        """
        target, key = send.target, send.key or b""
        keys = target.keys
        if not self._order.is_ready(send.places[0][0], now_s):
            self._early.append(send)
            return
        if self._order.retries:
            crowded = keys.count >= ORDERED_ROOM and keys.is_busy(key)
            if keys.must_follow(send, key) or crowded:
                self.put_aside(send)
                return
        self._ordered.add(target)
        if keys.enter(send, key):
            self._take_turn(send)

    def _take_turn(self, send: Send) -> None:
        """The first one of its key: to the queue, unless the key is held, or earlier ones went aside."""
        if self._order.is_held(send):
            self._ends.hold(send)
        elif not self._order.retries and (self._order.is_blocked(send) or self._waits_too_long(send, time.monotonic())):
            self._ends.park(send, 0)
        elif self._order.retries and (wait_us := send.meta.not_before_us - _now_us()) > 0:
            most_us = wait_us if send.meta.asked_us else IN_PLACE_CAP_US  # a longer one is that of another clock
            self.add_later(send, time.monotonic() + min(wait_us, most_us) / 1_000_000)
        else:
            send.target.queue.append(send)
            self._ready.add(send.target)

    # -- one destination -------------------------------------------------------------------------------------------

    def _go(self, target: Target, now_s: float) -> None:
        if target.tokens is not None and target.tokens.due(now_s):
            begin_fetch(target, target.tokens, self._sender)
        course = target.course(now_s)
        if course is Course.SEND:
            self._send(target, now_s)
        elif course is not Course.WAIT:
            self._put_away(target, course, now_s)
            return
        if target.queue and self._waits_too_long(target.queue[0], now_s):
            self._spill(target, now_s)

    def _waits_too_long(self, send: Send, now_s: float) -> bool:
        """Whether others of the lane are made to wait by it."""
        return now_s - send.taken_s > send.target.patience_s and self._shared(now_s - SHARED_S)

    def _send(self, target: Target, now_s: float) -> None:
        """As many as the destination and its carrier have room for; it never has more of the carrier than is left."""
        queue, rate = target.queue, target.rate
        carrier = self._sender if target.posts else self._writer
        room = min(target.room(now_s), (carrier.room - target.active + 1) // 2)
        if target.record.to.batch is not None:
            self._send_batches(target, target.record.to.batch, room, now_s)
            return
        while room > 0 and queue:
            send = queue.popleft()
            if self._may_begin(send):
                self._begin(send)
                room -= 1
                if rate is not None:
                    rate.take()

    def _send_batches(self, target: Target, batch: Batch, room: int, now_s: float) -> None:
        """A rate limit counts requests."""
        queue = target.queue
        while room > 0 and (members := next_batch(queue, batch, now_s)):
            for _ in members:
                queue.popleft()
            members = [send for send in members if self._may_begin(send)]
            if members:
                self._begin_batch(target, members, batch)
                room -= 1
                if target.rate is not None:
                    target.rate.take()

    def _begin_batch(self, target: Target, members: list[Send], batch: Batch) -> None:
        number = members[0].together or next(self._numbers)
        now_us, now_s = _now_us(), time.monotonic()
        try:
            body = batch_body(members, batch.format)
            headers = batch_headers(target, members, body, CONTENT_TYPES[batch.format], now_us // 1_000_000)
        except HOST_ERRORS:
            raise
        except Exception:
            self._part(target, members)
            return
        target.active += 1
        if not members[0].tries:
            target.budget.sent()
        for send in members:
            send.together = number
            send.tries += 1
            send.began_us = now_us
            send.request_begins(now_s)
            send.meta.first_us = send.meta.first_us or now_us
        keep_bytes = target.keep_bytes + ITEM_BYTES * len(members)
        url, identity = target.record.to.url, target.secrets.identity
        self._sender.begin(Post(Parcel(target, members), url, headers, body, target.timeout_ms, keep_bytes, identity))

    def _part(self, target: Target, members: list[Send]) -> None:
        """No request can be made of these: each half by itself, down to the one that is to blame, which is dead."""
        if len(members) > 1:
            middle = len(members) // 2
            self.add_together(members[middle:])
            self.add_together(members[:middle])
            return
        self._bury_unsendable(members[0], target)

    def _bury_unsendable(self, send: Send, target: Target) -> None:
        """Dead, because of an error of ours that only this message meets. Called where it is handled: it is logged."""
        log.exception(
            "pipe=%s destination=%s id=%s: no request can be made", send.unit.pipe, target.record.name, send.meta.id
        )
        self._ends.bury(send, REQUEST_INVALID.cause, "no request can be made of it")
        target.refused(REQUEST_INVALID.cause)

    def _may_begin(self, send: Send) -> bool:
        """A send begins only while a place it was read from is ours; else the new owner sends it."""
        for slot, _ in send.places:  # nearly always one
            if self._lane.may_send(slot):
                return True
        self._ends.give_up([send])
        return False

    def _begin(self, send: Send) -> None:
        target, meta, began_us = send.target, send.meta, _now_us()
        try:
            request = self.request_of(send, send.headers, began_us // 1_000_000) if target.posts else None
        except StageError as exc:
            self._ends.bury(send, exc.cause, exc.detail)
            target.refused(exc.cause)
            return
        except HOST_ERRORS:
            raise
        except Exception:
            self._bury_unsendable(send, target)
            return
        target.active += 1
        if not send.tries:
            target.budget.sent()
        send.tries += 1
        send.began_us = began_us
        send.request_begins(time.monotonic())
        if not meta.first_us:
            meta.first_us = began_us
        if request is None:
            self._writer.begin(send)
            return
        identity = target.secrets.identity
        self._sender.begin(
            Post(send, request.url, request.headers, request.body, target.timeout_ms, target.keep_bytes, identity)
        )

    def _spill(self, target: Target, now_s: float) -> None:
        """The destination is slower than what comes for it: others are not to wait behind its messages."""
        if target.ordered and self._order.retries:
            return  # they wait in place
        for _ in range(min(len(target.queue), PUT_AWAY_A_TURN)):
            if now_s - target.queue[0].taken_s <= target.patience_s:
                return
            self._park(target.queue.popleft(), AWAY_DELAY_S, now_s)

    def _put_away(self, target: Target, course: Course, now_s: float) -> None:
        for _ in range(min(len(target.queue), PUT_AWAY_A_TURN)):
            send = target.queue.popleft()
            match course:
                case Course.CANCEL:
                    self._ends.finish(send, Fact.CANCELLED, "")
                case Course.HOLD if target.lets_through(send.meta):
                    self._let_through(target, send, now_s)
                case Course.HOLD:
                    self._ends.hold(send)
                case Course.DIVERT:
                    self._ends.divert(send)
                case _:
                    self._park(send, LOCKED_DELAY_S if target.locked else target.wait_s(now_s), now_s)

    def _let_through(self, target: Target, send: Send, now_s: float) -> None:
        """What goes out from a destination that is held: it waits for a token and for room, and for nothing else."""
        if not target.may_sign_in(now_s) or not self._sender.room or target.room_by_limits(now_s) < 1:
            target.queue.append(send)
        elif self._may_begin(send):
            if target.rate is not None:
                target.rate.take()
            batch = target.record.to.batch
            if batch is None:
                self._begin(send)
            else:
                self._begin_batch(target, [send], batch)

    def _park(self, send: Send, wait_s: float, now_s: float) -> None:
        """To be tried after this wait and some more, or dead if its destination's span is over by then.

        The more is chance: what was put aside together does not come back together.
        """
        now_us = _now_us()
        meta, target = send.meta, send.target
        if not meta.first_us:
            meta.first_us = now_us
        spread_s = random.random() * target.breaker.period_s  # noqa: S311 (jitter, not a secret)
        due_us = now_us + int((wait_s + spread_s) * 1_000_000)
        asked_us = due_us if target.shut_until_s > now_s else 0
        in_span = due_us - meta.first_us <= target.record.to.retry.span_s * 1_000_000
        if not in_span:
            self._ends.bury(send, target.locked or "expired", target.last_reason or "not to be sent to all the while")
        elif send.is_ordered and self._order.retries:
            # In place: nothing overtakes it. It looks again soon, for the breaker may be closed before its time.
            self.add_later(send, now_s + min(max(wait_s + spread_s, AGAIN_S), AWAY_DELAY_S))
        else:
            self._ends.park(send, due_us, asked_us=asked_us)


def _now_us() -> int:
    return time.time_ns() // 1_000


def _take_from(queue: deque[Send], wanted: Callable[[Send], bool]) -> list[Send]:
    """Take what is wanted out of a queue, in its order; the rest stays in its own."""
    taken = [send for send in queue if wanted(send)]
    if taken:
        rest = [send for send in queue if not wanted(send)]
        queue.clear()
        queue.extend(rest)
    return taken
