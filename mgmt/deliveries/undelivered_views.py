"""View model of undelivered messages: cause in words, next step and link."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from dataplane.ledger.bins import Bin
from mgmt.deliveries.attempt_views import cause_of
from mgmt.deliveries.cause_wording import problem_in_words, what_to_do
from mgmt.deliveries.queries.undelivered import UndeliveredCause, undelivered
from mgmt.ledger.queries.bucket_range import BucketRange, bucket_at
from mgmt.models import Pipe

DAY_MIN: Final = 24 * 60


@dataclass(frozen=True)
class ProblemLine:
    """Cause in words with a link.

    cause:  "" if it has no help page
    recent: messages that failed in each part of the last hour, oldest first
    """

    fact: UndeliveredCause
    words: str
    todo: str
    link: str
    cause: str
    recent: Sequence[int] = ()


def problems_of(pipes: list[Pipe], now: datetime) -> list[UndeliveredCause]:
    """Return the causes of undelivered messages of the last 24 hours."""
    last = bucket_at(now)
    return undelivered(pipes=pipes, span=BucketRange("24h", last - DAY_MIN, last)) if pipes else []


def problem_line(trouble: UndeliveredCause, recent: Sequence[int] = ()) -> ProblemLine:
    """Return a cause in words."""
    return ProblemLine(
        fact=trouble,
        words=problem_in_words(
            bin_=trouble.bin,
            where=trouble.where,
            cause=trouble.cause,
            reason=trouble.reason,
            status=trouble.status,
        ),
        todo=what_to_do(trouble.bin, trouble.cause),
        link=_link(trouble),
        cause=cause_of(trouble.cause or trouble.reason),
        recent=recent,
    )


def _link(trouble: UndeliveredCause) -> str:
    if trouble.bin == Bin.DEAD:
        query = urlencode({"destination": trouble.where, "cause": trouble.cause})
        return f"{reverse('console:dead', args=[trouble.pipe_id])}?{query}"
    if trouble.bin == Bin.HELD:
        return reverse("console:held", args=[trouble.pipe_id])
    if trouble.bin == Bin.RETRYING and trouble.where:
        query = urlencode({"outcome": "parked", "destination": trouble.where})
        return f"{reverse('console:attempts', args=[trouble.pipe_id])}?{query}"
    minute = bucket_at(trouble.since)
    return f"{reverse('console:minute', args=[trouble.pipe_id, minute])}?{urlencode({'bin': trouble.bin})}"
