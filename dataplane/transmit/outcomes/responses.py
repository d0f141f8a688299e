"""Handle a response: decide the verdict, update the destination's health, and settle or reschedule the message."""

import random
import time
from typing import Final

import msgspec

from dataplane.causes import Cause
from dataplane.transmit.deliveries.batches import read_items
from dataplane.transmit.deliveries.delivery import Delivery, DeliveryBatch
from dataplane.transmit.destinations.targets import DestinationTarget
from dataplane.transmit.http.answer_excerpt import DEAD_LETTER_CHARS, answer_excerpt
from dataplane.transmit.http.sender import HttpResponse
from dataplane.transmit.key_order import KeyOrder
from dataplane.transmit.outcomes.attempts import AttemptBook
from dataplane.transmit.outcomes.outcomes import Outcomes
from dataplane.transmit.policy.delivery_verdict import DeliveryOutcome, DeliveryVerdict, judge, judge_object_store
from dataplane.transmit.policy.retry_after import retry_after_s
from dataplane.transmit.policy.schedule import RetrySchedule, local_pause_s, next_try
from dataplane.transmit.queues import IN_PLACE_CAP_US, DeliveryQueues

MAX_LOCAL_WAIT_S: Final = 10.0
TOO_LARGE: Final = 413
_DELIVERED: Final = DeliveryOutcome.DELIVERED  # an enum member costs 0.1 us in a hot path
# An access token can be revoked before it expires: then the refusal concerns the token, not the message.
_SIGN_IN_AGAIN: Final = DeliveryVerdict(DeliveryOutcome.RECOVERABLE, Cause.CREDENTIAL)


class ResponseHandler:
    """Judge responses and apply each verdict to its messages."""

    def __init__(self, ends: Outcomes, queues: DeliveryQueues, book: AttemptBook, order: KeyOrder) -> None:
        self._order = order
        self._ends = ends
        self._queues = queues
        self._book = book

    def take(self, send: Delivery, answer: HttpResponse, now_s: float) -> None:
        """Handle the response to a request of one message."""
        target = send.target
        target.active -= 1
        send.request_ends(time.monotonic())
        verdict = _verdict(target, answer, now_s)
        if verdict.outcome is _DELIVERED:
            note_success(target, answer, now_s)
            self._deliver(send, answer)
        else:
            asked_s = note_failure(target, answer, verdict, now_s, of_copy=send.is_copy)
            self._put([send], answer, verdict, asked_s)

    def take_batch(self, batch: DeliveryBatch, answer: HttpResponse, now_s: float) -> None:
        """Handle the response to a batch: per part or message if it has an outcome for each, otherwise as a whole."""
        batch.target.active -= 1
        ended_s = time.monotonic()
        for send in batch.members:
            send.request_ends(ended_s)
        if not answer.parts:
            self._end_batch(batch, batch.members, answer, now_s)
        for part in answer.parts:
            outcome = msgspec.structs.replace(answer, verdict=part.verdict, message=part.message, parts=())
            self._end_batch(batch, batch.members[part.start : part.end], outcome, now_s)

    def _end_batch(self, batch: DeliveryBatch, members: list[Delivery], answer: HttpResponse, now_s: float) -> None:
        target = batch.target
        verdict = _object_verdict(answer) if batch.is_object else _verdict(target, answer, now_s)
        if verdict.outcome is not DeliveryOutcome.DELIVERED:
            asked_s = note_failure(target, answer, verdict, now_s, of_copy=members[0].is_copy)
            is_refused = batch.is_object or verdict.outcome is DeliveryOutcome.DEAD
            if answer.status == TOO_LARGE and is_refused and len(members) > 1:
                self._halve(members, answer, _reason(verdict.cause, answer))
            else:
                self._put(members, answer, verdict, asked_s)
            return
        note_success(target, answer, now_s)
        statuses = None if batch.is_object else read_items(answer.body, [send.meta.id for send in members])
        if statuses is None:
            for send in members:
                self._deliver(send, answer)
        else:
            self._put_each(members, statuses, answer)

    def _put_each(self, members: list[Delivery], statuses: list[int], answer: HttpResponse) -> None:
        retries: dict[int, list[Delivery]] = {}
        for send, status in zip(members, statuses, strict=True):
            item_answer = msgspec.structs.replace(answer, status=status, body=b"")
            verdict = judge(status, 0, rules=send.target.rules)
            match verdict.outcome:
                case DeliveryOutcome.DELIVERED:
                    self._deliver(send, item_answer)
                case DeliveryOutcome.RECOVERABLE:
                    retries.setdefault(status, []).append(send)
                case _:
                    send.target.refused(verdict.cause, of_copy=send.is_copy)
                    self._put([send], item_answer, verdict, 0.0)
        for status, sends in retries.items():
            item_answer = msgspec.structs.replace(answer, status=status, body=b"")
            self._put(sends, item_answer, judge(status, 0, rules=sends[0].target.rules), 0.0)

    def _deliver(self, send: Delivery, answer: HttpResponse) -> None:
        self._book.delivered(send, answer)
        self._ends.finish(send, send.target.success, "")

    def _put(self, sends: list[Delivery], answer: HttpResponse, verdict: DeliveryVerdict, asked_s: float) -> None:
        """Dead-letter, hold or retry sends that failed together."""
        reason = _reason(verdict.cause, answer)
        match verdict.outcome:
            case DeliveryOutcome.DEAD:
                for send in sends:
                    self._dead_letter(send, answer, verdict.cause, reason)
            case DeliveryOutcome.GONE:
                for send in sends:
                    self._book.failed(send, answer, "cancelled" if send.is_copy else "held", reason)
                    self._ends.hold(send)
            case _:
                self._try_again(sends, answer, reason, asked_s)

    def _dead_letter(self, send: Delivery, answer: HttpResponse, cause: str, reason: str) -> None:
        self._book.failed(send, answer, "dead", reason)
        self._ends.dead_letter(send, cause, reason, _answer_text(send, answer))

    def _try_again(self, sends: list[Delivery], answer: HttpResponse, reason: str, asked_s: float) -> None:
        """Schedule local retries if an attempt, time and retry budget are left; otherwise go to the next round."""
        first, target = sends[0], sends[0].target
        pause_s = max(asked_s, local_pause_s(first.tries, random.random()))  # noqa: S311 (jitter, not a secret)
        spent_s = first.waited_s + pause_s + answer.total_us / 1_000_000
        has_try_left = first.tries < target.record.to.retry.local_tries and spent_s < MAX_LOCAL_WAIT_S
        if not has_try_left or target.breaker.state != "closed" or not target.budget.take():
            for send in sends:
                self._next_round(send, answer, reason, asked_s)
            return
        at_s = time.monotonic() + pause_s
        for send in sends:
            send.waited_s = spent_s
            self._book.failed(send, answer, "retry", reason)
            self._queues.add_later(send, at_s)

    def _halve(self, members: list[Delivery], answer: HttpResponse, reason: str) -> None:
        """Resend the halves of a batch that was too large, down to the message that is too large alone."""
        middle = len(members) // 2
        for half in (members[:middle], members[middle:]):
            for send in half:
                self._book.failed(send, answer, "retry", reason)
            self._queues.add_together(half)

    def _next_round(self, send: Delivery, answer: HttpResponse, reason: str, asked_s: float) -> None:
        meta, retry = send.meta, send.target.record.to.retry
        next_ = next_try(
            meta.tried + 1,
            delays_s=retry.delays_s,
            span_s=retry.span_s,
            first_us=meta.first_us,
            now_us=time.time_ns() // 1_000,
            asked_s=asked_s,
        )
        if next_ is None:
            self._dead_letter(send, answer, Cause.EXPIRED, f"retry period ended; last attempt: {reason}")
        elif send.is_ordered and self._order.retries:
            self._wait_in_place(send, answer, reason, next_)
        else:
            self._book.failed(send, answer, "parked", reason, next_.due_us)
            self._ends.schedule_retry(send, next_.due_us, asked_us=next_.asked_us)

    def _wait_in_place(self, send: Delivery, answer: HttpResponse, reason: str, next_: RetrySchedule) -> None:
        """Wait for the next round in this lane, so that no later message overtakes it.

        The wait is at most IN_PLACE_CAP_US, unless a Retry-After asks for more.
        """
        now_us = time.time_ns() // 1_000
        due_us = max(min(next_.due_us, now_us + IN_PLACE_CAP_US), next_.asked_us)
        self._book.failed(send, answer, "parked", reason, due_us)
        send.meta.tried += 1
        send.tries, send.waited_s = 0, 0.0
        self._queues.add_later(send, time.monotonic() + (due_us - now_us) / 1_000_000)


def _verdict(target: DestinationTarget, answer: HttpResponse, now_s: float) -> DeliveryVerdict:
    if answer.verdict is not None:
        return answer.verdict
    if answer.status == 401 and target.tokens is not None and target.tokens.refused(now_s):
        return _SIGN_IN_AGAIN
    return judge(answer.status, answer.curl_code, forbidden=answer.forbidden, rules=target.rules, body=answer.body)


def _object_verdict(answer: HttpResponse) -> DeliveryVerdict:
    if answer.verdict is not None:
        return answer.verdict
    return judge_object_store(answer.status, answer.curl_code, forbidden=answer.forbidden)


def note_success(target: DestinationTarget, answer: HttpResponse, now_s: float) -> None:
    """Update the destination's health after a success."""
    target.throttle.answered(now_s, answer.total_us / 1_000_000)
    target.breaker.succeeded(now_s)
    target.slowness.answered(now_s, answer.total_us / 1_000_000)
    target.in_a_row = 0


def note_failure(
    target: DestinationTarget, answer: HttpResponse, verdict: DeliveryVerdict, now_s: float, *, of_copy: bool = False
) -> float:
    """Update the destination's health after a failure; return the seconds that its Retry-After asks for, or 0.

    of_copy: a replay made the message
    """
    target.last_status, target.last_reason = answer.status, _reason(verdict.cause, answer)
    _note_health(target, verdict, now_s, of_copy=of_copy)
    if not answer.retry_after or verdict.outcome is not DeliveryOutcome.RECOVERABLE:
        return 0.0
    asked_s = retry_after_s(answer.retry_after, time.time())
    if asked_s:
        target.shut_until_s = max(target.shut_until_s, now_s + min(asked_s, target.record.to.retry.span_s))
    return asked_s


def _note_health(target: DestinationTarget, verdict: DeliveryVerdict, now_s: float, *, of_copy: bool) -> None:
    """Update breaker and throttle. A destination that refuses or throttles is working: its breaker counts a success."""
    if verdict.outcome is DeliveryOutcome.GONE:
        target.suspend(verdict.cause)
    elif verdict.outcome is DeliveryOutcome.DEAD:
        target.breaker.succeeded(now_s)
        target.refused(verdict.cause, of_copy=of_copy)
        return
    elif verdict.throttled:
        target.breaker.succeeded(now_s)
        target.throttle.throttled(now_s)
    else:
        previous = target.breaker.state
        target.breaker.failed(now_s, random.random())  # noqa: S311 (jitter, not a secret)
        if previous != "open" and target.breaker.state == "open":
            target.opened_us = time.time_ns() // 1_000
    target.in_a_row = 0


def _reason(cause: str, answer: HttpResponse) -> str:
    if answer.status:
        return f"{cause}: returned {answer.status}"
    return f"{cause}: {answer.message}"[:200] if answer.message else cause


def _answer_text(send: Delivery, answer: HttpResponse) -> str:
    """Return the status and the beginning of the body for the dead letter; "" if no answer came."""
    if not answer.status:
        return ""
    return f"{answer.status}\n{answer_excerpt(answer.body, DEAD_LETTER_CHARS, send.target.secret_texts)}"
