"""Whether a pipe's first event has come, and what became of it: what a page that listens waits for."""

from dataclasses import dataclass
from datetime import datetime

from dataplane.ledger.facts import ACKED, INGEST, Fact
from dataplane.names import transmit_node
from mgmt.models import FactRow
from mgmt.queries.attempts import AttemptLine, latest_attempts
from mgmt.queries.span import start_of


@dataclass(frozen=True)
class First:
    """`since` is the first minute with an ACKed event; `attempt` the newest try at a destination that is known."""

    since: datetime | None
    attempt: AttemptLine | None
    delivered: bool

    @property
    def done(self) -> bool:
        """Nothing more to wait for."""
        return self.delivered or (self.attempt is not None and self.attempt.outcome == "dead")


def first_of(pipe_id: str) -> First:
    """What is known of a pipe's first event."""
    facts = FactRow.objects.filter(pipe_id=pipe_id)
    acked = facts.filter(node=INGEST, fact=Fact.SENT, detail=ACKED).order_by("bucket")
    bucket = acked.values_list("bucket", flat=True).first()
    attempts = latest_attempts(pipe_id=pipe_id, most=1)
    return First(
        since=start_of(bucket) if bucket is not None else None,
        attempt=attempts[0] if attempts else None,
        delivered=facts.filter(node__startswith=transmit_node(""), fact=Fact.DELIVERED).exists(),
    )
