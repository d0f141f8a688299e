"""The book of attempts: every failure, of the successes a sample with their number; told at each checkpoint."""

from typing import Final

from dataplane.ledger.audit import AUDIT_VERSION, Attempt, Attempts, encode
from dataplane.ledger.report_parts import packed
from dataplane.record_limits import REPORT_BYTES
from dataplane.runtime.lane import Lane
from dataplane.transmit.sender import Answer
from dataplane.transmit.sends import Send
from dataplane.transmit.shown import ATTEMPT_CHARS, shown

SAMPLE: Final = 20  # delivered attempts told per checkpoint; failures are all told


class AttemptBook:
    """Collects attempts between two checkpoints."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._topic = lane.cell.topics["attempts"].name
        self._attempts: list[Attempt] = []
        self._delivered = 0

    @property
    def samples(self) -> bool:
        """Whether the next success will be among those told."""
        return self._delivered < SAMPLE

    def delivered(self, send: Send, answer: Answer) -> None:
        """A try that went well; one of many."""
        self._delivered += 1
        self._lane.usage.add(send.meta.pipe, 1, len(send.body), 1)
        if self._delivered <= SAMPLE:
            self._attempts.append(_attempt(send, answer, "delivered", "", 0))

    def failed(self, send: Send, answer: Answer, outcome: str, reason: str, next_us: int = 0) -> None:
        """A try that did not; `next_us` is when the next one is due, if there is one."""
        self._lane.usage.add(send.meta.pipe, 1, len(send.body), 1)
        self._attempts.append(_attempt(send, answer, outcome, reason, next_us))

    def report(self) -> None:
        """The attempts since the last checkpoint; many failures (a broker was away) make more than one record."""
        if not self._delivered and not self._attempts:
            return
        identity = self._lane.identity
        key, delivered = identity.writer.encode(), self._delivered
        for some in packed(self._attempts, REPORT_BYTES) if self._attempts else [[]]:
            record = Attempts(AUDIT_VERSION, identity.cell, identity.writer, delivered, some)
            self._lane.outbox.send(self._topic, None, key=key, value=encode(record))
            delivered = 0
        self._attempts, self._delivered = [], 0


def number_of(send: Send, tries: int) -> int:
    """Which try of its message this is, from 1, if it is the `tries`th of its round; rounds before count whole."""
    return send.meta.tried * send.target.record.to.retry.local_tries + tries


def _attempt(send: Send, answer: Answer, outcome: str, reason: str, next_us: int) -> Attempt:
    meta, retry = send.meta, send.target.record.to.retry
    goes_on = outcome in ("retry", "parked")
    return Attempt(
        message_id=meta.id,
        position=meta.position,
        pipe=meta.pipe,
        revision=meta.revision,
        destination=meta.destination,
        bucket=meta.bucket,
        number=number_of(send, send.tries),
        started_us=send.began_us,
        dns_us=answer.dns_us,
        connect_us=answer.connect_us,
        tls_us=answer.tls_us,
        first_byte_us=answer.first_byte_us,
        total_us=answer.total_us,
        status=answer.status,
        outcome=outcome,
        reason=reason,
        address=answer.address,
        next_us=next_us,
        answer=shown(answer.body, ATTEMPT_CHARS, send.target.secret_texts),
        gives_up_us=meta.first_us + retry.span_s * 1_000_000 if goes_on else 0,
    )
