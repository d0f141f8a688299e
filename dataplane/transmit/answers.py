"""What follows from an answer: the verdict, the destination's health, and where the message goes."""

import random
import time
from typing import Final

from dataplane.ledger.facts import Fact
from dataplane.transmit.attempts import AttemptBook
from dataplane.transmit.ends import Ends
from dataplane.transmit.queues import Queues
from dataplane.transmit.retry_after import retry_after_s
from dataplane.transmit.schedule import local_pause_s, next_try
from dataplane.transmit.sender import Answer
from dataplane.transmit.sends import Send
from dataplane.transmit.shown import DEAD_LETTER_CHARS, shown
from dataplane.transmit.targets import Target
from dataplane.transmit.verdict import Outcome, Verdict, judge

MAX_LOCAL_WAIT_S: Final = 10.0
# An access token can be revoked before its end: the refusal is about it, not about the message.
_SIGN_IN_AGAIN: Final = Verdict(Outcome.RECOVERABLE, "credential", throttled=False)


class Answers:
    """Judges answers one by one."""

    def __init__(self, ends: Ends, queues: Queues, book: AttemptBook) -> None:
        self._ends = ends
        self._queues = queues
        self._book = book

    def take(self, send: Send, answer: Answer, now_s: float) -> None:
        """An attempt ended."""
        target = send.target
        target.active -= 1
        verdict = judge(
            answer.status, answer.curl_code, forbidden=answer.forbidden, rules=target.rules, body=answer.body
        )
        if verdict.outcome is Outcome.DELIVERED:
            target.throttle.answered(now_s, answer.total_us / 1_000_000)
            target.breaker.succeeded(now_s)
            target.in_a_row = 0
            self._book.delivered(send, answer)
            self._ends.finish(send, Fact.DELIVERED, "")
        elif answer.status == 401 and target.tokens is not None and target.tokens.refused(now_s):
            self._failed(send, answer, _SIGN_IN_AGAIN, now_s)
        else:
            self._failed(send, answer, verdict, now_s)

    def _failed(self, send: Send, answer: Answer, verdict: Verdict, now_s: float) -> None:
        target, reason = send.target, _reason(verdict.cause, answer)
        target.last_status, target.last_reason = answer.status, reason
        note_failure(target, verdict, now_s)
        asked_s = retry_after_s(answer.retry_after, time.time()) if answer.retry_after else 0.0
        match verdict.outcome:
            case Outcome.DEAD:
                self._bury(send, answer, verdict.cause, reason)
            case Outcome.GONE:
                self._book.failed(send, answer, "held", reason)
                self._ends.hold(send)
            case _:
                if asked_s:
                    target.shut_until_s = max(target.shut_until_s, now_s + min(asked_s, target.record.to.retry.span_s))
                self._try_again(send, answer, reason, asked_s)

    def _bury(self, send: Send, answer: Answer, cause: str, reason: str) -> None:
        self._book.failed(send, answer, "dead", reason)
        self._ends.bury(send, cause, reason, _answer_text(send, answer))

    def _try_again(self, send: Send, answer: Answer, reason: str, asked_s: float) -> None:
        """At once, if there is a try left, time for it and a retry in the budget; else in the next round."""
        target, meta = send.target, send.meta
        retry = target.record.to.retry
        pause_s = max(asked_s, local_pause_s(send.tries, random.random()))  # noqa: S311 (jitter, not a secret)
        spent_s = send.waited_s + pause_s + answer.total_us / 1_000_000
        worth_it = send.tries < retry.local_tries and spent_s < MAX_LOCAL_WAIT_S and target.breaker.state == "closed"
        if worth_it and target.budget.take():
            send.waited_s = spent_s
            self._book.failed(send, answer, "retry", reason)
            self._queues.add_later(send, time.monotonic() + pause_s)
            return
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
        else:
            self._book.failed(send, answer, "parked", reason, next_.due_us)
            self._ends.park(send, next_.due_us, asked_us=next_.asked_us)


def note_failure(target: Target, verdict: Verdict, now_s: float) -> None:
    """What a failure says of the destination's health. Whoever refuses or asks for less is well."""
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
