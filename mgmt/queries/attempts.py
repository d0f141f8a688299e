"""Attempts of a pipe: every failure, and a sample of the successes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import QuerySet

from dataplane.ledger.units import format_position
from mgmt.models import Attempt

OUTCOMES: Final = ("delivered", "retry", "parked", "dead", "cancelled")
# The parts of an attempt in order; what is left of the total is the wait for the rest of the answer.
PARTS: Final = ("dns", "connect", "tls", "first_byte")


@dataclass(frozen=True)
class AttemptLine:
    """One attempt as pages show it; `split` gives each part's own duration in microseconds."""

    message_id: str
    position: str
    destination: str
    revision: int
    number: int
    at: datetime
    status: int
    outcome: str
    reason: str
    address: str
    total_us: int
    split: tuple[tuple[str, int], ...]
    next_at: datetime | None


def latest_attempts(*, pipe_id: str, most: int, outcome: str = "", destination: str = "") -> list[AttemptLine]:
    """The newest attempts, newest first; empty filters let everything pass."""
    rows: QuerySet[Attempt] = Attempt.objects.filter(pipe_id=pipe_id)
    if outcome in OUTCOMES:
        rows = rows.filter(outcome=outcome)
    if destination:
        rows = rows.filter(destination=destination)
    return [_line(row) for row in rows.order_by("-at", "-id")[:most]]


def split_us(timing_us: dict[str, int], *, answered: bool = True) -> tuple[tuple[str, int], ...]:
    """Each part's own duration. libcurl counts every mark from the start of the transfer, 0 if it did not get there.

    Without an answer there was no first byte, whatever its mark says: the rest is the time until it failed.
    """
    parts, reached = [], 0
    for name in PARTS if answered else PARTS[:-1]:
        mark = timing_us.get(name, 0)
        if mark > reached:
            parts.append((name.replace("_", " "), mark - reached))
            reached = mark
    rest = timing_us.get("total", 0) - reached
    return (*parts, ("rest" if answered else "until it failed", rest)) if rest > 0 else tuple(parts)


def _line(row: Attempt) -> AttemptLine:
    return AttemptLine(
        message_id=row.message_id,
        position=format_position(row.position),
        destination=row.destination,
        revision=row.revision,
        number=row.number,
        at=row.at,
        status=row.status,
        outcome=row.outcome,
        reason=row.reason,
        address=row.address,
        total_us=row.timing_us.get("total", 0),
        split=split_us(row.timing_us, answered=bool(row.status)),
        next_at=row.next_at,
    )
