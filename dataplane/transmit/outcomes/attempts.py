"""Attempt log of a transmit lane: every failure and a sample of successes with their count, reported per checkpoint.

Busy destinations would take the whole sample, so a quiet one has its first success in QUIET_US in addition.
"""

from typing import Any, Final

from dataplane.ledger.audit import AUDIT_VERSION, AttemptBatch, AttemptRecord, encode
from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.report_parts import packed
from dataplane.ledger.units import MINUTE_US
from dataplane.record_limits import REPORT_BYTES
from dataplane.runtime.lanes.context import LaneContext
from dataplane.transmit.deliveries.delivery import Delivery, members_of
from dataplane.transmit.http.answer_excerpt import ATTEMPT_CHARS, answer_excerpt
from dataplane.transmit.http.sender import HttpResponse

SAMPLE: Final = 20  # delivered attempts reported in detail per checkpoint; all failures are reported
QUIET_US: Final = 10_000_000  # a destination without a sampled attempt for so long is quiet
MOST_QUIET: Final = 20  # first successes of quiet destinations per checkpoint


class AttemptBook:
    """Collect attempts between two checkpoints."""

    def __init__(self, lane: LaneContext) -> None:
        self._lane = lane
        self._topic = lane.cell.topics["attempts"].name
        self._attempts: list[AttemptRecord] = []
        self._delivered = self._quiet = 0

    def wants(self, token: Any) -> bool:
        """Return True if a success of this transfer will be part of the sample. A hot path."""
        if self._delivered < SAMPLE:
            return True
        if type(token) is Delivery:
            return self._is_quiet(token)
        members = members_of(token)
        return bool(members) and self._is_quiet(members[0])

    def _is_quiet(self, send: Delivery) -> bool:
        return send.began_us - send.target.sampled_us > QUIET_US and self._quiet < MOST_QUIET

    def delivered(self, send: Delivery, answer: HttpResponse) -> None:
        """Count a delivered attempt, and keep its details if it is part of the sample."""
        self._delivered += 1
        self._lane.usage.add(send.meta.pipe, 1, len(send.body), 1)
        if self._delivered > SAMPLE:
            if not self._is_quiet(send):
                return
            self._quiet += 1
        send.target.sampled_us = send.began_us
        self._attempts.append(_attempt(send, answer, "delivered", "", 0))

    def failed(self, send: Delivery, answer: HttpResponse, outcome: str, reason: str, next_us: int = 0) -> None:
        """Record a failed attempt; `next_us` is the Unix time in microseconds of the next one, 0 if there is none."""
        self._lane.usage.add(send.meta.pipe, 1, len(send.body), 1)
        self._attempts.append(_attempt(send, answer, outcome, reason, next_us))

    def report(self) -> None:
        """Produce the attempts since the last checkpoint; many failures (a broker was away) need several records."""
        if not self._delivered and not self._attempts:
            return
        identity = self._lane.identity
        key, delivered = identity.writer.encode(), self._delivered
        for chunk in packed(self._attempts, REPORT_BYTES) if self._attempts else [[]]:
            record = AttemptBatch(AUDIT_VERSION, identity.cell, identity.writer, delivered, chunk)
            self._lane.producer.send(self._topic, None, key=key, value=encode(record))
            delivered = 0
        self._attempts, self._delivered, self._quiet = [], 0, 0


def number_of(send: Delivery, tries: int) -> int:
    """Return the number, from 1, of an attempt of its message: the `tries`th of this round, after all earlier rounds.

    Each earlier round counts as `local_tries` attempts, even if it made fewer.
    """
    return send.meta.tried * send.target.record.to.retry.local_tries + tries


def _minute_of_event(meta: MessageMeta) -> int:
    """Return the bucket of the event in its pipe's account. A copy carries its replay's bucket: apply ingest's rule."""
    if not meta.replay:
        return meta.bucket
    return (meta.ingest_time_us if meta.off_time else meta.event_time_us) // MINUTE_US


def _attempt(send: Delivery, answer: HttpResponse, outcome: str, reason: str, next_us: int) -> AttemptRecord:
    meta, retry = send.meta, send.target.record.to.retry
    will_retry = outcome in ("retry", "parked")
    return AttemptRecord(
        message_id=meta.id,
        position=meta.position,
        pipe=meta.pipe,
        revision=meta.revision,
        destination=meta.destination,
        bucket=_minute_of_event(meta),
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
        answer=answer_excerpt(answer.body, ATTEMPT_CHARS, send.target.secret_texts),
        gives_up_us=meta.first_us + retry.span_s * 1_000_000 if will_retry else 0,
    )
