"""Convert attempts to rows: every failure, and a sample of the successes that stays readable at any rate. Pure."""

from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from controlplane.observer.merge import clean
from dataplane.ledger.audit import AttemptBatch, AttemptRecord
from mgmt.models import DeliveryAttempt as AttemptRow

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS_REMEMBERED: Final = 4096
DELIVERED: Final = "delivered"


class SuccessSampler:
    """Sampler that keeps the first `per_s` successes of each pipe and second; remembers a bounded number of seconds."""

    def __init__(self, per_s: int) -> None:
        self._per_s = per_s
        self._taken: OrderedDict[tuple[str, int], int] = OrderedDict()

    def wants(self, attempt: AttemptRecord) -> bool:
        """Return True if the attempt is to be stored; counts it. Failures and repeated attempts always are."""
        if attempt.outcome != DELIVERED or attempt.number > 1:
            return True
        key = (attempt.pipe, attempt.started_us // 1_000_000)
        taken = self._taken.get(key, 0)
        self._taken[key] = taken + 1
        if len(self._taken) > SECONDS_REMEMBERED:
            self._taken.popitem(last=False)
        return taken < self._per_s

    def rows(self, attempts: AttemptBatch) -> list[AttemptRow]:
        """Return the rows of one attempts record."""
        return [attempt_row(attempt) for attempt in attempts.attempts if self.wants(attempt)]


def attempt_row(attempt: AttemptRecord) -> AttemptRow:
    """Return the row of one attempt."""
    return AttemptRow(
        pipe_id=attempt.pipe,
        destination=attempt.destination,
        message_id=clean(attempt.message_id, 64),
        position=attempt.position,
        revision=attempt.revision,
        bucket=attempt.bucket,
        number=attempt.number,
        at=at_us(attempt.started_us),
        status=attempt.status,
        outcome=attempt.outcome,
        reason=clean(attempt.reason, 200),
        address=clean(attempt.address, 64),
        timing_us=_timing(attempt),
        next_at=at_us(attempt.next_us) if attempt.next_us else None,
        gives_up_at=at_us(attempt.gives_up_us) if attempt.gives_up_us else None,
        answer=clean(attempt.answer, 512),
    )


def at_us(microseconds: int) -> datetime:
    """Return the aware UTC time of microseconds since the epoch, exactly."""
    return EPOCH + timedelta(microseconds=microseconds)


def _timing(attempt: AttemptRecord) -> dict[str, Any]:
    return {
        "dns": attempt.dns_us,
        "connect": attempt.connect_us,
        "tls": attempt.tls_us,
        "first_byte": attempt.first_byte_us,
        "total": attempt.total_us,
    }
