"""Queues of a transmit lane: begin the sends that are allowed now, and reschedule those that should not wait longer.

One thread and one ack window per partition serve all destinations: messages for a destination that cannot keep up are
retried later, so that the lane never waits for it.
"""

import heapq
import itertools
import logging
import random
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from dataplane.causes import Cause
from dataplane.ledger.facts import Fact
from dataplane.plan import StageError
from dataplane.plan.rows import CompiledRow
from dataplane.runtime.lanes.context import LaneContext
from dataplane.spec import BatchLimits
from dataplane.transmit.deliveries.batches import ITEM_BYTES, next_batch
from dataplane.transmit.deliveries.delivery import Delivery, DeliveryBatch
from dataplane.transmit.deliveries.rendered_delivery import RequestOf, batch_request_of, request_of
from dataplane.transmit.destinations.targets import DestinationTarget, QueueAction
from dataplane.transmit.destinations.token_requests import begin_fetch
from dataplane.transmit.http.sender import HOST_ERRORS, REQUEST_INVALID, HttpRequest
from dataplane.transmit.key_order import KeyOrder
from dataplane.transmit.outcomes.outcomes import Outcomes
from dataplane.transmit.postgres.request import InsertRequest
from dataplane.transmit.senders import Senders

log = logging.getLogger(__name__)

SHARED_S: Final = 60.0
RESCHEDULE_DELAY_S: Final = 10.0  # the shortest delay tier: meanwhile other destinations get their turn
LOCKED_DELAY_S: Final = 60.0
AGAIN_S: Final = 1.0
REST_S: Final = 60.0
ASIDE_DELAY_US: Final = 1_000_000
IN_PLACE_CAP_US: Final = 60_000_000  # longest pause between attempts of a message that others of its key wait for
ORDERED_ROOM: Final = 2_000  # ordered messages per destination that wait in a retry lane; more go to the retrier
RESCHEDULED_A_PASS: Final = 500  # per destination and pass: a few milliseconds of producing, then others get their turn


class DeliveryQueues:
    """Every send that waits: in its destination's queue, or for the end of a pause between two local retries."""

    def __init__(self, lane: LaneContext, ends: Outcomes, senders: Senders, order: KeyOrder) -> None:
        self._lane = lane
        self.request_of: RequestOf = request_of  # renders an attempt of one message
        self._ends = ends
        self._order = order
        self._senders = senders
        self._ready: set[DestinationTarget] = set()  # targets with a queue that is not empty
        self._pausing: list[tuple[float, int, Delivery]] = []  # heap of local retries by monotonic time
        self._numbers = itertools.count()
        self._shared: Callable[[float], bool] = lambda _since_s: False
        self._ordered: set[DestinationTarget] = set()  # targets with messages that wait for their turn
        self._early: list[Delivery] = []  # ordered, and the blocked keys are not known yet

    def add(self, send: Delivery) -> None:
        """Append a send to its destination's queue, or, if it is ordered, behind the earlier ones of its key."""
        if not send.is_ordered:
            send.target.queue.append(send)
            self._ready.add(send.target)
        elif self._early:
            self._early.append(send)  # it must not overtake those
        else:
            self._add_ordered(send, time.monotonic())

    def add_later(self, send: Delivery, at_s: float) -> None:
        """Schedule a local retry at `at_s` (monotonic); it is then sent before all others of its destination."""
        heapq.heappush(self._pausing, (at_s, next(self._numbers), send))

    def add_together(self, sends: list[Delivery]) -> None:
        """Queue sends before all others of their destination, to be sent in one request."""
        number = next(self._numbers)
        for send in reversed(sends):
            send.together = number
            send.target.queue.appendleft(send)
            self._ready.add(send.target)

    def poll(self, now_s: float, *, shared: Callable[[float], bool]) -> None:
        """Begin the sends that may begin and reschedule those that may not.

        `shared(since_s)` returns True if messages for more than one destination were read since then.
        """
        self._shared = shared
        if self._pausing and self._pausing[0][0] <= now_s:
            self._resume(now_s)
        if self._early:
            early, self._early = self._early, []
            for send in early:
                self._add_ordered(send, now_s)
        turns = self._ends.turns
        for _ in range(min(len(turns), RESCHEDULED_A_PASS)):
            self._take_turn(turns.popleft())
        for target in list(self._ready):
            self._go(target, now_s)
            if not target.queue:
                self._ready.discard(target)

    def rest_s(self, now_s: float) -> float:
        """Return the seconds until the next send is due; 0 while any send waits for more than the rest of its batch."""
        if self._early or self._ends.turns:
            return 0.0
        rest_s = self._pausing[0][0] - now_s if self._pausing else REST_S
        for target in self._ready:
            if len(target.queue) != target.batch_length:
                return 0.0
            rest_s = min(rest_s, target.batch_due_s - now_s)
        return rest_s

    def in_place(self) -> int:
        """Return the number of ordered messages that a retry lane holds behind others of their key or until a retry."""
        if not self._order.retries:
            return 0
        pausing = sum(send.is_ordered for _, _, send in self._pausing)
        return pausing + sum(target.keys.count for target in self._ordered)

    def forget(self, lost: Callable[[Delivery], bool]) -> None:
        """Forget the sends that have not begun and that `lost` selects: another lane reads them again."""
        self._ends.on_drain_timeout(self._remove(lost))

    def take_out(self, wanted: set[int]) -> list[Delivery]:
        """Remove and return the waiting sends whose `id()` is in `wanted`."""
        return self._remove(lambda send: id(send) in wanted)

    def _remove(self, wanted: Callable[[Delivery], bool]) -> list[Delivery]:
        """Remove and return the waiting sends that `wanted` selects; those that pause come first."""
        out = [send for _, _, send in self._pausing if wanted(send)]
        self._pausing = [entry for entry in self._pausing if not wanted(entry[2])]
        heapq.heapify(self._pausing)
        for target in self._ordered:
            out += target.keys.take_out(wanted)
        out += [send for send in self._early if wanted(send)]
        self._early = [send for send in self._early if not wanted(send)]
        out += _take_from(self._ends.turns, wanted)
        for target in self._ready:
            out += _take_from(target.queue, wanted)
        return out

    def put_aside(self, send: Delivery) -> None:
        """Schedule a retry of a send, to free its place in the ack window."""
        if send.is_ordered and self._order.retries:
            send.target.keys.go_round(send, send.key or b"")
            self._ends.schedule_retry(send, _now_us() + int(RESCHEDULE_DELAY_S * 1_000_000))
        else:
            self._ends.schedule_retry(send, _now_us() + ASIDE_DELAY_US)

    def empty(self) -> tuple[list[Delivery], list[Delivery]]:
        """Remove everything that waits; return the sends without an attempt in this round, and those with one."""
        found = self._remove(lambda _send: True)
        return [send for send in found if not send.tries], [send for send in found if send.tries]

    def _resume(self, now_s: float) -> None:
        """Move sends whose pause is over to the heads of their queues, in the order in which they became due."""
        due = []
        while self._pausing and self._pausing[0][0] <= now_s:
            due.append(heapq.heappop(self._pausing)[2])
        for send in reversed(due):
            send.target.queue.appendleft(send)
            self._ready.add(send.target)

    # -- order per key ---------------------------------------------------------------------------------------------

    def _add_ordered(self, send: Delivery, now_s: float) -> None:
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

    def _take_turn(self, send: Delivery) -> None:
        """Queue the first message of its key, unless the key is held or earlier messages are in the retry lane."""
        if self._order.is_held(send):
            self._ends.hold(send)
        elif not self._order.retries and (self._order.is_blocked(send) or self._waits_too_long(send, time.monotonic())):
            self._ends.schedule_retry(send, 0)
        elif self._order.retries and (wait_us := send.meta.not_before_us - _now_us()) > 0:
            most_us = wait_us if send.meta.asked_us else IN_PLACE_CAP_US  # a longer one comes from a wrong clock
            self.add_later(send, time.monotonic() + min(wait_us, most_us) / 1_000_000)
        else:
            send.target.queue.append(send)
            self._ready.add(send.target)

    # -- one destination -------------------------------------------------------------------------------------------

    def _go(self, target: DestinationTarget, now_s: float) -> None:
        if target.tokens is not None and target.tokens.due(now_s):
            begin_fetch(target, target.tokens, self._senders.http)
        action = target.queue_action(now_s)
        if action is QueueAction.SEND:
            self._send(target, now_s)
        elif action is not QueueAction.WAIT:
            self._put_away(target, action, now_s)
            return
        if target.queue and self._waits_too_long(target.queue[0], now_s):
            self._spill(target, now_s)

    def _waits_too_long(self, send: Delivery, now_s: float) -> bool:
        """Return True if its destination is blocking the other destinations of the lane."""
        return now_s - send.taken_s > send.target.patience_s and self._shared(now_s - SHARED_S)

    def _send(self, target: DestinationTarget, now_s: float) -> None:
        """Begin as many sends as the limits of the destination and of the sender (or writer) allow."""
        queue, rate = target.queue, target.rate
        room = min(target.room(now_s), self._senders.room_for(target))
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

    def _send_batches(self, target: DestinationTarget, batch: BatchLimits, room: int, now_s: float) -> None:
        """Begin as many batches as `room` allows. A rate limit counts requests, not messages."""
        queue = target.queue
        if len(queue) == target.batch_length and now_s < target.batch_due_s:
            return
        while room > 0 and (members := next_batch(queue, batch, now_s)):
            _take_first(queue, members)
            members = [send for send in members if self._may_begin(send)]
            if members:
                self._begin_batch(target, members)
                room -= 1
                if target.rate is not None:
                    target.rate.take()
        if room > 0 and queue:
            target.batch_length = len(queue)
            target.batch_due_s = min(send.taken_s for send in queue) + batch.max_wait_ms / 1_000
        else:
            target.batch_length = -1

    def _begin_batch(self, target: DestinationTarget, members: list[Delivery]) -> None:
        if target.row is not None:
            self._insert(target, target.row, members)
            return
        now_us = _now_us()
        try:
            request = batch_request_of(target, members, now_us // 1_000_000)
        except HOST_ERRORS:
            raise
        except Exception:
            self._part(target, members)
            return
        self._attempt_begins(target, members, now_us)
        keep_bytes = target.keep_bytes + ITEM_BYTES * len(members)
        token, identity = DeliveryBatch(target, members, target.is_object_store), target.secrets.identity
        self._senders.http.begin(
            HttpRequest(
                token,
                request.url,
                request.headers,
                request.body,
                target.timeout_ms,
                keep_bytes,
                identity,
                target.method,
            )
        )

    def _insert(self, target: DestinationTarget, row_of: CompiledRow, members: list[Delivery]) -> None:
        """Begin to insert the rows of a batch. A message that cannot be a row is dead.

        Rows may be far larger than the bodies by which the batch was limited: the rest returns to the queue.
        """
        to, rows, able, size = row_of.to, [], [], 0
        for place, send in enumerate(members):
            if size >= to.batch.max_bytes or target.suspended:
                target.queue.extendleft(reversed(members[place:]))
                break
            try:
                rows.append(row_of(send.meta, send.body))
                able.append(send)
                size += len(rows[-1])
            except StageError as exc:
                self._ends.dead_letter(send, exc.cause, exc.detail)
                target.refused(exc.cause, of_copy=send.is_copy)
            except HOST_ERRORS:
                raise
            except Exception:
                self._dead_letter_unsendable(send, target)
        if able:
            self._attempt_begins(target, able, _now_us())
            limits = (target.timeout_ms, target.tenant, size)
            self._senders.postgres.begin(
                InsertRequest(DeliveryBatch(target, able), to, target.secrets.password, rows, *limits)
            )

    def _attempt_begins(self, target: DestinationTarget, members: list[Delivery], now_us: int) -> None:
        """Note the beginning of an attempt of a batch."""
        number, now_s = members[0].together or next(self._numbers), time.monotonic()
        target.active += 1
        if not members[0].tries:
            target.budget.sent()
        for send in members:
            send.together = number
            send.tries += 1
            send.began_us = now_us
            send.request_begins(now_s)
            send.meta.first_us = send.meta.first_us or now_us

    def _part(self, target: DestinationTarget, members: list[Delivery]) -> None:
        """Split a batch that cannot be rendered into halves, down to the message that causes the error: it is dead."""
        if len(members) > 1:
            middle = len(members) // 2
            self.add_together(members[middle:])
            self.add_together(members[:middle])
            return
        self._dead_letter_unsendable(members[0], target)

    def _dead_letter_unsendable(self, send: Delivery, target: DestinationTarget) -> None:
        """Dead-letter a message that cannot be rendered because of our own error. Logs the exception being handled."""
        names = (send.meta.pipe, target.record.name, send.meta.id)
        log.exception("could not build a request: pipe=%s destination=%s id=%s", *names)
        self._ends.dead_letter(send, REQUEST_INVALID.cause, "could not build a request from the message")
        target.refused(REQUEST_INVALID.cause, of_copy=send.is_copy)

    def _may_begin(self, send: Delivery) -> bool:
        """Return True if the lane owns a partition that the message was read from; else leave it to the new owner."""
        for slot, _ in send.places:  # nearly always one
            if self._lane.may_send(slot):
                return True
        self._ends.on_drain_timeout([send])
        return False

    def _begin(self, send: Delivery) -> None:
        target, meta, began_us = send.target, send.meta, _now_us()
        try:
            request = self.request_of(send, send.headers, began_us // 1_000_000) if target.posts else None
        except StageError as exc:
            self._ends.dead_letter(send, exc.cause, exc.detail)
            target.refused(exc.cause, of_copy=send.is_copy)
            return
        except HOST_ERRORS:
            raise
        except Exception:
            self._dead_letter_unsendable(send, target)
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
            self._senders.records.begin(send)
            return
        identity = target.secrets.identity
        self._senders.http.begin(
            HttpRequest(
                send, request.url, request.headers, request.body, target.timeout_ms, target.keep_bytes, identity
            )
        )

    def _spill(self, target: DestinationTarget, now_s: float) -> None:
        """Schedule retries for messages that waited too long, because their destination is slower than its traffic.

        Messages that a retry lane keeps in order are left in its queue.
        """
        late = itertools.takewhile(lambda send: now_s - send.taken_s > target.patience_s, target.queue)
        movable = (send for send in late if not (send.is_ordered and self._order.retries))
        spilled = list(itertools.islice(movable, RESCHEDULED_A_PASS))
        _take_first(target.queue, spilled)
        for send in spilled:
            self._schedule_retry(send, RESCHEDULE_DELAY_S, now_s)

    def _put_away(self, target: DestinationTarget, action: QueueAction, now_s: float) -> None:
        for _ in range(min(len(target.queue), RESCHEDULED_A_PASS)):
            send = target.queue.popleft()
            match action:
                case QueueAction.CANCEL:
                    self._ends.finish(send, Fact.CANCELLED, "")
                case QueueAction.HOLD if target.is_exempt_from_hold(send.meta):
                    self._let_through(target, send, now_s)
                case QueueAction.HOLD:
                    self._ends.hold(send)
                case QueueAction.DIVERT:
                    self._ends.divert(send)
                case _:
                    self._schedule_retry(send, LOCKED_DELAY_S if target.locked else target.wait_s(now_s), now_s)

    def _let_through(self, target: DestinationTarget, send: Delivery, now_s: float) -> None:
        """Send a single message of a held destination as soon as it has an access token and the limits allow it."""
        if not target.has_token(now_s) or not self._senders.of(target).room or target.room_by_limits(now_s) < 1:
            target.queue.append(send)
        elif self._may_begin(send):
            if target.rate is not None:
                target.rate.take()
            if target.record.to.batch is None:
                self._begin(send)
            else:
                self._begin_batch(target, [send])

    def _schedule_retry(self, send: Delivery, wait_s: float, now_s: float) -> None:
        """Schedule a retry after `wait_s` and a jitter, or dead-letter a message whose retry horizon would be exceeded.

        The jitter keeps messages that were rescheduled together from returning together.
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
            detail = target.last_reason or "destination unavailable for the whole retry period"
            self._ends.dead_letter(send, target.locked or Cause.EXPIRED, detail)
        elif send.is_ordered and self._order.retries:
            # It waits in this lane, so that nothing overtakes it, and only briefly: the breaker may close early.
            self.add_later(send, now_s + min(max(wait_s + spread_s, AGAIN_S), RESCHEDULE_DELAY_S))
        else:
            self._ends.schedule_retry(send, due_us, asked_us=asked_us)


def _now_us() -> int:
    return time.time_ns() // 1_000


def _take_first(queue: deque[Delivery], sends: list[Delivery]) -> None:
    """Remove sends, which are in the queue's order; those between them stay at its head."""
    between: list[Delivery] = []
    taken = 0
    while taken < len(sends):
        send = queue.popleft()
        if send is sends[taken]:
            taken += 1
        else:
            between.append(send)
    queue.extendleft(reversed(between))


def _take_from(queue: deque[Delivery], wanted: Callable[[Delivery], bool]) -> list[Delivery]:
    """Remove and return the sends that `wanted` selects, in order; the rest keeps its order."""
    taken = [send for send in queue if wanted(send)]
    if taken:
        rest = [send for send in queue if not wanted(send)]
        queue.clear()
        queue.extend(rest)
    return taken
