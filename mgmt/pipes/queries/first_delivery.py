"""Arrival and delivery of a pipe's first event, for the page that waits for it."""

from dataclasses import dataclass
from datetime import datetime

from dataplane.ledger.facts import ACKED, INGEST, Fact
from dataplane.names import transmit_node
from mgmt.deliveries.queries.attempts import AttemptLine, latest_attempts
from mgmt.ledger.queries.bucket_range import start_of
from mgmt.models import FactRow


@dataclass(frozen=True)
class FirstDelivery:
    """State of a pipe's first delivery.

    since:   start of the first bucket with an ACKed event
    attempt: the newest recorded delivery attempt
    """

    since: datetime | None
    attempt: AttemptLine | None
    delivered: bool

    @property
    def done(self) -> bool:
        """True if an event was delivered or is dead, so that the page stops waiting."""
        return self.delivered or (self.attempt is not None and self.attempt.outcome == "dead")


def first_delivery(pipe_id: str) -> FirstDelivery:
    """Return the state of a pipe's first delivery."""
    facts = FactRow.objects.filter(pipe_id=pipe_id)
    acked = facts.filter(node=INGEST, fact=Fact.SENT, detail=ACKED).order_by("bucket")
    bucket = acked.values_list("bucket", flat=True).first()
    attempts = latest_attempts(pipe_id=pipe_id, most=1)
    return FirstDelivery(
        since=start_of(bucket) if bucket is not None else None,
        attempt=attempts[0] if attempts else None,
        delivered=facts.filter(node__startswith=transmit_node(""), fact=Fact.DELIVERED).exists(),
    )
