"""What follows from an answer: the verdict, the destination's health, and where the message goes."""

import random
import time
from typing import Final

import msgspec

from dataplane.ledger.facts import Fact
from dataplane.transmit.attempts import AttemptBook
from dataplane.transmit.batches import read_items
from dataplane.transmit.ends import Ends
from dataplane.transmit.order import Order
from dataplane.transmit.queues import IN_PLACE_CAP_US, Queues
from dataplane.transmit.retry_after import retry_after_s
from dataplane.transmit.schedule import NextTry, local_pause_s, next_try
from dataplane.transmit.sender import Answer
from dataplane.transmit.sends import Parcel, Send
from dataplane.transmit.shown import DEAD_LETTER_CHARS, shown
from dataplane.transmit.targets import Target
from dataplane.transmit.verdict import Outcome, Verdict, judge

MAX_LOCAL_WAIT_S: Final = 10.0
TOO_LARGE: Final = 413
# An access token can be revoked before its end: the refusal is about it, not about the message.
_SIGN_IN_AGAIN: Final = Verdict(Outcome.RECOVERABLE, "credential")


class Answers:
    """Judges answers one by one."""

    def __init__(self, ends: Ends, queues: Queues, book: AttemptBook, order: Order) -> None:
        self._order = order
        self._ends = ends
        self._queues = queues
        self._book = book

    def take(self, send: Send, answer: Answer, now_s: float) -> None:
        """Judge the answer to a request of one message."""
        target = send.target
        target.active -= 1
        send.request_ends(time.monotonic())
        verdict = _verdict(target, answer, now_s)
        if verdict.outcome is Outcome.DELIVERED:
            note_success(target, answer, now_s)
            self._deliver(send, answer)
        else:
            asked_s = note_failure(target, answer, verdict, now_s)
            self._put([send], answer, verdict, asked_s)

    def take_parcel(self, parcel: Parcel, answer: Answer, now_s: float) -> None:
        """Judge the answer to a batch: one by one where the answer has a status for each message, else as one."""
        target, members = parcel.target, parcel.members
        target.active -= 1
        ended_s = time.monotonic()
        for send in members:
            send.request_ends(ended_s)
        verdict = _verdict(target, answer, now_s)
        if verdict.outcome is not Outcome.DELIVERED:
            asked_s = note_failure(target, answer, verdict, now_s)
            if answer.status == TOO_LARGE and verdict.outcome is Outcome.DEAD and len(members) > 1:
                self._halve(members, answer, _reason(verdict.cause, answer))
            else:
                self._put(members, answer, verdict, asked_s)
            return
        note_success(target, answer, now_s)
        statuses = read_items(answer.body, [send.meta.id for send in members])
        if statuses is None:
            for send in members:
                self._deliver(send, answer)
        else:
            self._put_each(members, statuses, answer)

    def _put_each(self, members: list[Send], statuses: list[int], answer: Answer) -> None:
        again: dict[int, list[Send]] = {}
        for send, status in zip(members, statuses, strict=True):
            told = msgspec.structs.replace(answer, status=status, body=b"")
            verdict = judge(status, 0, rules=send.target.rules)
            match verdict.outcome:
                case Outcome.DELIVERED:
                    self._deliver(send, told)
                case Outcome.RECOVERABLE:
                    again.setdefault(status, []).append(send)
                case _:
                    send.target.refused(verdict.cause)
                    self._put([send], told, verdict, 0.0)
        for status, sends in again.items():
            told = msgspec.structs.replace(answer, status=status, body=b"")
            self._put(sends, told, judge(status, 0, rules=sends[0].target.rules), 0.0)

    def _deliver(self, send: Send, answer: Answer) -> None:
        self._book.delivered(send, answer)
        self._ends.finish(send, Fact.STORED if send.target.is_lake else Fact.DELIVERED, "")

    def _put(self, sends: list[Send], answer: Answer, verdict: Verdict, asked_s: float) -> None:
        """Where sends go that failed together."""
        reason = _reason(verdict.cause, answer)
        match verdict.outcome:
            case Outcome.DEAD:
                for send in sends:
                    self._bury(send, answer, verdict.cause, reason)
            case Outcome.GONE:
                for send in sends:
                    self._book.failed(send, answer, "held", reason)
                    self._ends.hold(send)
            case _:
                self._try_again(sends, answer, reason, asked_s)

    def _bury(self, send: Send, answer: Answer, cause: str, reason: str) -> None:
        self._book.failed(send, answer, "dead", reason)
        self._ends.bury(send, cause, reason, _answer_text(send, answer))

    def _try_again(self, sends: list[Send], answer: Answer, reason: str, asked_s: float) -> None:
        """At once, if there is a try left, time for it and a retry in the budget; else in the next round."""
        first, target = sends[0], sends[0].target
        pause_s = max(asked_s, local_pause_s(first.tries, random.random()))  # noqa: S311 (jitter, not a secret)
        spent_s = first.waited_s + pause_s + answer.total_us / 1_000_000
        left = first.tries < target.record.to.retry.local_tries and spent_s < MAX_LOCAL_WAIT_S
        if not left or target.breaker.state != "closed" or not target.budget.take():
            for send in sends:
                self._next_round(send, answer, reason, asked_s)
            return
        at_s = time.monotonic() + pause_s
        for send in sends:
            send.waited_s = spent_s
            self._book.failed(send, answer, "retry", reason)
            self._queues.add_later(send, at_s)

    def _halve(self, members: list[Send], answer: Answer, reason: str) -> None:
        """Too large together: each half at once, down to the one that is too large alone."""
        middle = len(members) // 2
        for half in (members[:middle], members[middle:]):
            for send in half:
                self._book.failed(send, answer, "retry", reason)
            self._queues.add_together(half)

    def _next_round(self, send: Send, answer: Answer, reason: str, asked_s: float) -> None:
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
            self._bury(send, answer, "expired", f"tried for its whole span, at last: {reason}")
        elif send.is_ordered and self._order.retries:
            self._wait_in_place(send, answer, reason, next_)
        else:
            self._book.failed(send, answer, "parked", reason, next_.due_us)
            self._ends.park(send, next_.due_us, asked_us=next_.asked_us)

    def _wait_in_place(self, send: Send, answer: Answer, reason: str, next_: NextTry) -> None:
        """The next round without leaving the lane, so that nothing overtakes it; therefore sooner, too."""
        now_us = time.time_ns() // 1_000
        due_us = max(min(next_.due_us, now_us + IN_PLACE_CAP_US), next_.asked_us)
        self._book.failed(send, answer, "parked", reason, due_us)
        send.meta.tried += 1
        send.tries, send.waited_s = 0, 0.0
        self._queues.add_later(send, time.monotonic() + (due_us - now_us) / 1_000_000)


def _verdict(target: Target, answer: Answer, now_s: float) -> Verdict:
    if answer.verdict is not None:
        return answer.verdict
    if answer.status == 401 and target.tokens is not None and target.tokens.refused(now_s):
        return _SIGN_IN_AGAIN
    return judge(answer.status, answer.curl_code, forbidden=answer.forbidden, rules=target.rules, body=answer.body)


def note_success(target: Target, answer: Answer, now_s: float) -> None:
    """What a success says of the destination's health."""
    target.throttle.answered(now_s, answer.total_us / 1_000_000)
    target.breaker.succeeded(now_s)
    target.slowness.answered(now_s, answer.total_us / 1_000_000)
    target.in_a_row = 0


def note_failure(target: Target, answer: Answer, verdict: Verdict, now_s: float) -> float:
    """What a failure says of the destination's health; returns for how long it asks to be left alone, in seconds."""
    target.last_status, target.last_reason = answer.status, _reason(verdict.cause, answer)
    _note_health(target, verdict, now_s)
    if not answer.retry_after or verdict.outcome is not Outcome.RECOVERABLE:
        return 0.0
    asked_s = retry_after_s(answer.retry_after, time.time())
    if asked_s:
        target.shut_until_s = max(target.shut_until_s, now_s + min(asked_s, target.record.to.retry.span_s))
    return asked_s


def _note_health(target: Target, verdict: Verdict, now_s: float) -> None:
    """Whoever refuses or asks for less is well."""
    if verdict.outcome is Outcome.GONE:
        target.suspend(verdict.cause)
    elif verdict.outcome is Outcome.DEAD:
        target.breaker.succeeded(now_s)
        target.refused(verdict.cause)
        return
    elif verdict.throttled:
        target.breaker.succeeded(now_s)
        target.throttle.throttled(now_s)
    else:
        was = target.breaker.state
        target.breaker.failed(now_s, random.random())  # noqa: S311 (jitter, not a secret)
        if was != "open" and target.breaker.state == "open":
            target.opened_us = time.time_ns() // 1_000
    target.in_a_row = 0


def _reason(cause: str, answer: Answer) -> str:
    if answer.status:
        return f"{cause}: answered {answer.status}"
    return f"{cause}: {answer.message}"[:200] if answer.message else cause


def _answer_text(send: Send, answer: Answer) -> str:
    """The status and the beginning of the body, for the dead letter; "" if no answer came."""
    if not answer.status:
        return ""
    return f"{answer.status}\n{shown(answer.body, DEAD_LETTER_CHARS, send.target.secret_texts)}"
