"""Delivery attempts of a pipe: every failure, and a sample of the successes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Q, QuerySet

from dataplane.ledger.units import format_position
from mgmt.models import DeliveryAttempt

OUTCOMES: Final = ("delivered", "retry", "parked", "dead", "cancelled")
# Phases of an attempt in order; the rest of the total is the wait for the rest of the response.
PARTS: Final = ("dns", "connect", "tls", "first_byte")


@dataclass(frozen=True)
class AttemptFilter:
    """Filter of attempts; an empty field matches all. `cause` is the first word of a reason.

    status: HTTP status of the response; 0 finds attempts without a response
    Times: `since` <= start of the attempt < `until`
    """

    outcome: str = ""
    destination: str = ""
    cause: str = ""
    message: str = ""
    status: int | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class AttemptLine:
    """One attempt as pages show it; `split` gives the duration of each phase in microseconds."""

    id: int
    message_id: str
    position: str
    bucket: int
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
    gives_up_at: datetime | None = None
    answer: str = ""


ALL: Final = AttemptFilter()


def latest_attempts(
    *, pipe_id: str, most: int, wanted: AttemptFilter = ALL, before: tuple[datetime, int] | None = None
) -> list[AttemptLine]:
    """Return up to `most` attempts, newest first; `before` is the (time, id) of the previous page's last attempt."""
    rows = attempt_rows(pipe_id=pipe_id, wanted=wanted)
    if before:
        at, row_id = before
        rows = rows.filter(Q(at__lt=at) | Q(at=at, id__lt=row_id))
    return [attempt_line(row) for row in rows[:most]]


def attempt_rows(*, pipe_id: str, wanted: AttemptFilter = ALL) -> QuerySet[DeliveryAttempt]:
    """Return the attempts of a pipe that match a filter, newest first."""
    exact = {
        "outcome": wanted.outcome if wanted.outcome in OUTCOMES else "",
        "destination": wanted.destination,
        "reason__startswith": wanted.cause,
        "message_id": wanted.message,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
    }
    rows = DeliveryAttempt.objects.filter(pipe_id=pipe_id, **{name: value for name, value in exact.items() if value})
    return (rows if wanted.status is None else rows.filter(status=wanted.status)).order_by("-at", "-id")


def attempts_of(*, pipe_id: str, position: int, most: int) -> list[AttemptLine]:
    """Return the newest `most` recorded attempts of one message, in order of time."""
    rows = DeliveryAttempt.objects.filter(pipe_id=pipe_id, position=position).order_by("-at", "-id")[:most]
    return [attempt_line(row) for row in rows][::-1]


def split_us(timing_us: dict[str, int], *, answered: bool = True) -> tuple[tuple[str, int], ...]:
    """Return the duration of each phase in microseconds, from libcurl's marks.

    libcurl counts every mark from the start of the transfer, and gives 0 for a phase that was not reached. Without a
    response there was no first byte, whatever its mark says: the rest is the time until the failure.
    """
    parts, reached = [], 0
    for name in PARTS if answered else PARTS[:-1]:
        mark = timing_us.get(name, 0)
        if mark > reached:
            parts.append((name.replace("_", " "), mark - reached))
            reached = mark
    rest = timing_us.get("total", 0) - reached
    return (*parts, ("rest" if answered else "until it failed", rest)) if rest > 0 else tuple(parts)


def attempt_line(row: DeliveryAttempt) -> AttemptLine:
    """Return an attempt as pages and API show it."""
    return AttemptLine(
        id=row.id,
        message_id=row.message_id,
        position=format_position(row.position),
        bucket=row.bucket,
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
        gives_up_at=row.gives_up_at,
        answer=row.answer,
    )
